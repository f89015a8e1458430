package deliver

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/delivery"
)

func TestLaneRoom(t *testing.T) {
	l := &lane{steady: 4, doubtful: 3, flights: make(map[*flight]time.Time)}
	now := time.UnixMilli(1_700_000_000_000).Add(time.Minute)
	add := func(n int, age time.Duration) {
		for range n {
			l.flights[&flight{}] = now.Add(-age)
		}
	}
	want := func(what string, steady, doubtful int) {
		t.Helper()
		if s, d := l.room(now); s != steady || d != doubtful {
			t.Errorf("%s: room for %d and %d, want %d and %d", what, s, d, steady, doubtful)
		}
	}
	want("empty", 4, 3)
	add(2, 0)
	l.begun = 1
	want("two quick ones and a doubtful one", 2, 2)
	add(1, lingering-1)
	want("a third that is about to linger", 1, 2)
	add(1, lingering)
	want("one that lingers has moved", 1, 1)
	add(2, lingering)
	want("of two more one found a place", 0, 0)
	if n := (l.begun + len(l.flights)); n != 7 {
		t.Errorf("%d under way, want 7", n)
	}
}

func queue(m string, dueMS, seq int64) delivery.Queue {
	return delivery.Queue{MerchantID: m, HeadMS: dueMS, HeadSeq: seq}
}

func TestRosterHeads(t *testing.T) {
	r := newRoster()
	for _, m := range []string{"d", "a", "c", "b"} {
		r.add(queue(m, 10, 7))
	}
	r.add(queue("a", 20, 1)) // it is due earlier already
	r.add(queue("b", 10, 8)) // and has an older one
	r.add(queue("b", 10, 6))
	r.add(queue("d", 5, 9))
	r.set(queue("c", 0, 0))
	want := map[string]delivery.Queue{"a": queue("a", 10, 7), "b": queue("b", 10, 6), "d": queue("d", 5, 9)}
	if diff := cmp.Diff(want, r.heads); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
}

func TestRosterTurns(t *testing.T) {
	r := newRoster()
	for _, m := range []string{"a", "b", "c", "d", "x", "y", "z"} {
		r.add(queue(m, 10, 1))
		r.place(m, m < "x", false, 0, 10)
	}
	asked := map[string]bool{}
	for _, step := range []struct {
		what             string
		steady, doubtful int
		afresh           bool
		want             []string
		more             bool
	}{
		{"the first of both kinds", 2, 1, true, []string{"a", "b", "x"}, true},
		{"those behind them", 9, 1, false, []string{"c", "d", "y"}, true},
		{"with no room for doubtful ones", 9, 0, false, nil, true},
		{"the last", 9, 9, false, []string{"z"}, false},
		{"none twice", 9, 9, false, nil, false},
		{"another time, from the beginning", 1, 2, true, []string{"a", "x", "y"}, true},
		{"and on from there", 2, 2, true, []string{"b", "c", "z", "x"}, true},
	} {
		if step.afresh {
			clear(asked)
		}
		queues, more := r.turns(step.steady, step.doubtful, asked)
		var got []string
		for _, q := range queues {
			got = append(got, q.MerchantID)
		}
		if !slices.Equal(got, step.want) || more != step.more {
			t.Errorf("%s: %q, more %t; want %q, %t", step.what, got, more, step.want, step.more)
		}
	}
	for i := range 2 * maxTurns {
		m := string(rune(0x4e00 + i))
		r.add(queue(m, 1, 1))
		r.place(m, i%2 == 0, false, 0, 10)
	}
	clear(asked)
	if queues, more := r.turns(1000, 1000, asked); len(queues) != maxTurns || !more {
		t.Errorf("%d turns at once, more %t; want %d, true", len(queues), more, maxTurns)
	}
}

// What is outdated does not pile up.
func TestRosterStaysSmall(t *testing.T) {
	r := newRoster()
	r.add(queue("m", 1, 1))
	for i := range int64(100 * maxTurns) {
		r.place("m", true, false, 1000+i, 10)
	}
	if len(r.asleep) > maxTurns+2 {
		t.Errorf("%d entries for one queue", len(r.asleep))
	}
	if wakes := r.wakes(); wakes != 1000+100*maxTurns-1 {
		t.Errorf("it wakes at %d", wakes)
	}
}

// Whatever happens, those are asked whose queue is due, whose endpoint is not
// left alone and that are not full, by their kind, and the rest is woken when
// its time comes.
func TestRosterProperties(t *testing.T) {
	type known struct {
		steady, full bool
		heldUntilMS  int64
	}
	rapid.Check(t, func(t *rapid.T) {
		r := newRoster()
		nowMS := int64(1000)
		all := map[string]known{}
		place := func(m string) { r.place(m, all[m].steady, all[m].full, all[m].heldUntilMS, nowMS) }
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			m := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "merchant")
			at := nowMS + rapid.Int64Range(-50, 50).Draw(t, "at")
			k := all[m]
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				r.add(queue(m, at, rapid.Int64Range(0, 3).Draw(t, "seq")))
			case 1:
				r.set(queue(m, at, 1))
			case 2:
				r.set(queue(m, 0, 0))
			case 3:
				k.full = !k.full
			case 4:
				k.steady, k.heldUntilMS = rapid.Bool().Draw(t, "steady"), at
			case 5:
				nowMS += rapid.Int64Range(0, 60).Draw(t, "passes")
			}
			all[m] = k
			place(m)
			for m, ok := r.woken(nowMS); ok; m, ok = r.woken(nowMS) {
				place(m)
			}
			var wakes int64
			want := map[bool][]string{}
			for _, m := range []string{"a", "b", "c", "d", "e"} {
				q, ok := r.heads[m]
				if !ok {
					continue
				}
				switch wake := max(q.HeadMS, all[m].heldUntilMS); {
				case wake > nowMS && (wakes == 0 || wake < wakes):
					wakes = wake
				case wake <= nowMS && !all[m].full:
					want[all[m].steady] = append(want[all[m].steady], m)
				}
			}
			for kind, ring := range r.ready {
				if !slices.Equal(ring.order, want[kind]) {
					t.Fatalf("steady %t: %q are ready, want %q", kind, ring.order, want[kind])
				}
			}
			if got := r.wakes(); got != wakes {
				t.Fatalf("wakes at %d, want %d", got, wakes)
			}
		}
	})
}
