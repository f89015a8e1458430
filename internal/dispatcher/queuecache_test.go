package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/times"
)

func TestLaneRoom(t *testing.T) {
	l := &lane{healthy: 4, suspect: 3, attempts: make(map[*attempt]time.Time)}
	now := time.UnixMilli(1_700_000_000_000).Add(time.Minute)
	add := func(n int, age time.Duration) {
		for range n {
			l.attempts[&attempt{}] = now.Add(-age)
		}
	}
	want := func(what string, healthy, suspect int) {
		t.Helper()
		if s, d := l.room(now); s != healthy || d != suspect {
			t.Errorf("%s: room for %d and %d, want %d and %d", what, s, d, healthy, suspect)
		}
	}
	want("empty", 4, 3)
	add(2, 0)
	l.suspectAttempts = 1
	want("two quick ones and a suspect one", 2, 2)
	add(1, slowAfter-1)
	want("a third that is about to linger", 1, 2)
	add(1, slowAfter)
	want("one that lingers has moved", 1, 1)
	add(2, slowAfter)
	want("of two more one found a place", 0, 0)
	if n := (l.suspectAttempts + len(l.attempts)); n != 7 {
		t.Errorf("%d under way, want 7", n)
	}
}

func queue(m string, due, seq int64) delivery.Queue {
	return delivery.Queue{MerchantID: m, Head: at(due), HeadSeq: seq}
}

// at returns a time some milliseconds after the zero time; 0 is the zero time.
func at(ms int64) time.Time { return time.Time{}.Add(time.Duration(ms) * time.Millisecond) }

func TestQueueCacheHeads(t *testing.T) {
	c := newQueueCache()
	for _, m := range []string{"d", "a", "c", "b"} {
		c.add(queue(m, 10, 7))
	}
	c.add(queue("a", 20, 1)) // later than the head, so it has no effect
	c.add(queue("b", 10, 8)) // the head is older
	c.add(queue("b", 10, 6))
	c.add(queue("d", 5, 9))
	c.set(queue("c", 0, 0))
	want := map[string]delivery.Queue{"a": queue("a", 10, 7), "b": queue("b", 10, 6), "d": queue("d", 5, 9)}
	if diff := cmp.Diff(want, c.heads); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
}

func TestQueueCacheTurns(t *testing.T) {
	c := newQueueCache()
	for _, m := range []string{"a", "b", "c", "d", "x", "y", "z"} {
		c.add(queue(m, 10, 1))
		c.place(m, m < "x", false, at(0), at(10))
	}
	for _, step := range []struct {
		what    string
		healthy bool
		limit   int
		want    []string
	}{
		{"the first healthy ones", true, 2, []string{"a", "b"}},
		{"the first suspect one", false, 1, []string{"x"}},
		{"those behind them, and on from the beginning", true, 3, []string{"c", "d", "a"}},
		{"no room", false, 0, nil},
		{"each once", false, 9, []string{"y", "z", "x"}},
	} {
		var got []string
		for _, q := range c.turns(step.healthy, step.limit) {
			got = append(got, q.MerchantID)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
	for i := range 2 * maxTurns {
		m := string(rune(0x4e00 + i))
		c.add(queue(m, 1, 1))
		c.place(m, true, false, at(0), at(10))
	}
	if queues := c.turns(true, 1000); len(queues) != maxTurns {
		t.Errorf("%d turns at once, want %d", len(queues), maxTurns)
	}
}

// TestQueueCacheAsked checks that a head that is added during a lease request is not
// overwritten by the answer.
func TestQueueCacheAsked(t *testing.T) {
	c := newQueueCache()
	ask := func() {
		c.add(queue("m", 10, 1))
		c.place("m", true, false, at(0), at(10))
		if len(c.turns(true, 1)) != 1 {
			t.Fatal("the queue is not asked")
		}
	}
	ask()
	c.add(queue("m", 30, 3))
	c.add(queue("m", 20, 2))
	c.answered(queue("m", 0, 0))
	if got := c.heads["m"]; got != queue("m", 20, 2) {
		t.Errorf("begins at %+v, want what was added meanwhile", got)
	}
	c.set(queue("m", 0, 0))
	ask()
	c.answered(queue("m", 0, 0))
	if got, ok := c.heads["m"]; ok {
		t.Errorf("begins at %+v, want it empty", got)
	}
}

// TestQueueCacheStaysSmall checks that outdated timers are removed.
func TestQueueCacheStaysSmall(t *testing.T) {
	c := newQueueCache()
	c.add(queue("m", 1, 1))
	for i := range int64(100 * maxTurns) {
		c.place("m", true, false, at(1000+i), at(10))
	}
	if len(c.timers) > maxTurns+2 {
		t.Errorf("%d entries for one queue", len(c.timers))
	}
	if wakes := c.nextTimer(); !wakes.Equal(at(1000 + 100*maxTurns - 1)) {
		t.Errorf("it has its next timer at %s", wakes)
	}
}

// TestQueueCacheProperties compares the queue cache with a model: a queue gets a turn if
// it is due, its endpoint is not paused and it is not blocked; every other queue has a
// timer for the time when that changes.
func TestQueueCacheProperties(t *testing.T) {
	type known struct {
		healthy, blocked bool
		heldUntil        time.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		c := newQueueCache()
		now := at(1000)
		all := map[string]known{}
		place := func(m string) { c.place(m, all[m].healthy, all[m].blocked, all[m].heldUntil, now) }
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			m := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "merchant")
			ms := rapid.Int64Range(-50, 50).Draw(t, "at") + now.Sub(at(0)).Milliseconds()
			k := all[m]
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				c.add(queue(m, ms, rapid.Int64Range(0, 3).Draw(t, "seq")))
			case 1:
				c.set(queue(m, ms, 1))
			case 2:
				c.set(queue(m, 0, 0))
			case 3:
				k.blocked = !k.blocked
			case 4:
				k.healthy, k.heldUntil = rapid.Bool().Draw(t, "healthy"), at(ms)
			case 5:
				now = now.Add(time.Duration(rapid.Int64Range(0, 60).Draw(t, "passes")) * time.Millisecond)
			}
			all[m] = k
			place(m)
			for m, ok := c.fired(now); ok; m, ok = c.fired(now) {
				place(m)
			}
			var wakes time.Time
			want := map[bool][]string{}
			for _, m := range []string{"a", "b", "c", "d", "e"} {
				q, ok := c.heads[m]
				if !ok {
					continue
				}
				switch wake := times.Later(q.Head, all[m].heldUntil); {
				case wake.After(now) && (wakes.IsZero() || wake.Before(wakes)):
					wakes = wake
				case !wake.After(now) && !all[m].blocked:
					want[all[m].healthy] = append(want[all[m].healthy], m)
				}
			}
			for kind, ready := range c.ready {
				if !slices.Equal(ready.order, want[kind]) {
					t.Fatalf("healthy %t: %q are ready, want %q", kind, ready.order, want[kind])
				}
			}
			if got := c.nextTimer(); !got.Equal(wakes) {
				t.Fatalf("has its next timer at %s, want %s", got, wakes)
			}
		}
	})
}
