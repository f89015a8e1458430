package limits

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

// stopped is a clock that tests set.
type stopped struct{ at time.Time }

func (c *stopped) now() time.Time { return c.at }

func TestEdge(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	b := NewBuckets[string](Limit{"test", 4, 8 * time.Second}, 100, c.now)
	for want := 3; want >= 0; want-- {
		if r := b.Take("a"); !r.OK || r.Remaining != want || r.Err() != nil {
			t.Errorf("a use within the quota: %+v; want %d remaining", r, want)
		}
	}
	r := b.Take("a")
	var exceeded *ExceededError
	if r.OK || !errors.As(r.Err(), &exceeded) || exceeded.RetryAfter != "2" || r.Header() != `"test";r=0;t=2` {
		t.Errorf("a use beyond the quota: %+v, %v, %s", r, r.Err(), r.Header())
	}
	if r := b.Take("b"); !r.OK || r.Header() != `"test";r=3;t=6` {
		t.Errorf("another key: %+v, %s", r, r.Header())
	}
	c.at = c.at.Add(2*time.Second - 1)
	if b.Take("a").OK {
		t.Error("a use is allowed before its token is back")
	}
	c.at = c.at.Add(1)
	if !b.Take("a").OK || b.Take("a").OK {
		t.Error("after the interval, want one use")
	}
	c.at = c.at.Add(time.Hour)
	if r := b.Take("a"); r.Remaining != 3 {
		t.Errorf("after an hour %d remain; want a full bucket less one", r.Remaining)
	}
	expect.Equal(t, b.Limit().Policy(), `"test";q=4;w=8`, "the policy is")
}

// TestClockSetBack sets the clock back by an hour. A client waits no longer than a window.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	b := NewBuckets[string](Limit{"test", 2, 4 * time.Second}, 100, c.now)
	b.Take("a")
	b.Take("a")
	c.at = c.at.Add(-time.Hour)
	if r := b.Take("a"); r.OK || r.wait > 4*time.Second {
		t.Errorf("%+v", r)
	}
	c.at = c.at.Add(time.Hour + 4*time.Second)
	if !b.Take("a").OK {
		t.Error("the client is locked out")
	}
}

// TestBounded uses more keys than are kept.
func TestBounded(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	b := NewBuckets[int](Limit{"test", 1, time.Second}, 100, c.now)
	for key := range 10_000 {
		if !b.Take(key).OK {
			t.Fatal("a new key is refused")
		}
		if n := len(b.full.younger) + len(b.full.older); n > 100 {
			t.Fatalf("%d keys are kept", n)
		}
		if key >= 49 && b.Take(key-49).OK {
			t.Fatal("a key that was used lately was forgotten")
		}
	}
}

// TestRate compares the buckets with the definition: at most twice the quota in any window, and the
// rate in the long run.
func TestRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{"test", rapid.IntRange(1, 50).Draw(t, "quota"), time.Duration(rapid.IntRange(1, 60).Draw(t, "window")) * time.Second}
		begun := time.Unix(1_764_000_000, 0)
		c := &stopped{begun}
		b := NewBuckets[string](limit, 10, c.now)
		allowed := 0
		for range rapid.IntRange(1, 500).Draw(t, "uses") {
			c.at = c.at.Add(time.Duration(rapid.Int64Range(0, int64(2*limit.interval())).Draw(t, "pause")))
			if r := b.Take("a"); r.OK && rapid.Bool().Draw(t, "return") {
				b.Return("a")
			} else if r.OK {
				allowed++
			}
			if most := limit.Quota + int(c.at.Sub(begun)/limit.interval()); allowed > most {
				t.Fatalf("%d uses in %s; want at most %d", allowed, c.at.Sub(begun), most)
			}
		}
	})
}

func TestReturn(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	b := NewBuckets[string](Limit{"test", 2, 2 * time.Second}, 100, c.now)
	b.Take("a")
	b.Take("a")
	b.Return("a")
	if !b.Take("a").OK || b.Take("a").OK {
		t.Error("after a return, want one use")
	}
	for range 5 {
		b.Return("a") // more than were taken
		b.Return("b")
	}
	for _, key := range []string{"a", "b"} {
		for _, want := range []bool{true, true, false} {
			if b.Take(key).OK != want {
				t.Errorf("a full bucket of %s has other than the quota", key)
			}
		}
	}
}

func TestGreylist(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	g := NewGreylist[int](time.Second, 100, c.now)
	for range 2 {
		if g.CameBack(1) {
			t.Error("a key came back at once")
		}
	}
	c.at = c.at.Add(time.Second - 1)
	if g.CameBack(1) || g.CameBack(2) {
		t.Error("a key came back before the pause")
	}
	c.at = c.at.Add(1)
	if !g.CameBack(1) || g.CameBack(2) {
		t.Error("after the pause of the first key, want that one back")
	}
	c.at = c.at.Add(-time.Hour)
	if g.CameBack(1) {
		t.Error("a key came back before it came")
	}
	for key := range 10_000 {
		g.CameBack(key)
		if n := len(g.first.younger) + len(g.first.older); n > 100 {
			t.Fatalf("%d keys are kept", n)
		}
	}
}
