package db_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
)

// fakeStore is the store of the last reading, with the database's clock as the source.
type fakeStore struct {
	source time.Time
	last   db.ClockReading
	away   bool
}

var errAway = errors.New("the database does not answer")

func (s *fakeStore) ReadClock(_ context.Context, _ time.Time, next func(last db.ClockReading, source time.Time) db.ClockReading) (db.ClockReading, error) {
	if s.away {
		return db.ClockReading{}, errAway
	}
	s.last = next(s.last, s.source)
	return s.last, nil
}

// replica is a process on a separate machine.
type replica struct {
	elapsed time.Duration
	counts  bool // its monotonic clock includes the time in which it is frozen
	frozen  bool
	clock   *db.Clock
}

// world has a database and replicas. gaps has the length of each time without a reading.
type world struct {
	t        *rapid.T
	store    *fakeStore
	replicas []*replica
	gap      time.Duration // until now
	gaps     []time.Duration
	jumps    int
	jumped   bool // since the last reading
}

func (w *world) open(r *replica) {
	c, err := db.OpenClock(context.Background(), db.ClockConfig{
		Store: w.store, Wall: func() time.Time { return w.store.source }, Elapsed: func() time.Duration { return r.elapsed },
		Logger: slog.New(slog.DiscardHandler),
	})
	expect.OK(w.t, err)
	r.clock = c
}

// pass advances time without a reading.
func (w *world) pass(d time.Duration) {
	w.store.source = w.store.source.Add(d)
	for _, r := range w.replicas {
		if !r.frozen || r.counts {
			r.elapsed += d
		}
	}
	w.gap += d
}

// read makes the running replicas read the clock, and ends the gap if one of them could.
func (w *world) read() {
	for _, r := range w.replicas {
		if r.frozen {
			continue
		}
		if err := r.clock.Read(context.Background()); err != nil && !errors.Is(err, errAway) {
			w.t.Fatal(err)
		} else if err == nil {
			w.gaps, w.gap, w.jumped = append(w.gaps, w.gap), 0, false
		}
	}
}

// most returns how far the schedule may have advanced.
func (w *world) most() time.Duration {
	sum := min(w.gap, time.Hour) + time.Duration(w.jumps)*2*time.Second
	for _, g := range w.gaps {
		sum += min(g, time.Hour) + 2*time.Second
	}
	return sum
}

// Whatever happens to two replicas and their database, the schedule advances by no more than
// an hour in any time without a reading, and never goes back.
func TestGapsAreCapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, store: &fakeStore{source: began}}
		for range rapid.IntRange(1, 3).Draw(t, "replicas") {
			r := &replica{counts: rapid.Bool().Draw(t, "counts")}
			w.replicas = append(w.replicas, r)
			w.open(r)
		}
		lastRead := w.store.last.Now
		one := func() *replica { return w.replicas[rapid.IntRange(0, len(w.replicas)-1).Draw(t, "replica")] }
		hours := func() time.Duration { return time.Duration(rapid.IntRange(0, 60*60).Draw(t, "minutes")) * time.Minute }
		t.Repeat(map[string]func(*rapid.T){
			"run":    func(*rapid.T) { w.pass(5 * time.Second); w.read() },
			"outage": func(*rapid.T) { w.pass(hours()) },
			"away":   func(*rapid.T) { w.store.away = true; w.pass(5 * time.Second); w.read(); w.pass(hours()) },
			"back":   func(*rapid.T) { w.store.away = false; w.read() },
			"freeze": func(*rapid.T) { one().frozen = true },
			"thaw":   func(*rapid.T) { one().frozen = false },
			"restart": func(*rapid.T) {
				if r := one(); !w.store.away {
					if w.jumped { // a starting process mistakes the jump for an outage
						w.gaps = append(w.gaps, time.Hour)
					}
					r.elapsed, r.frozen = 0, false
					w.open(r)
					w.read()
				}
			},
			"jump": func(*rapid.T) {
				w.store.source = w.store.source.Add(hours() - 30*time.Hour)
				w.jumps++
				w.jumped = true
			},
			"": func(t *rapid.T) {
				if w.store.last.Now.Before(lastRead) {
					t.Fatalf("the stored time went back from %s to %s", lastRead, w.store.last.Now)
				}
				lastRead = w.store.last.Now
				for i, r := range w.replicas {
					if got := r.clock.Now().Sub(began); got > w.most() {
						t.Fatalf("replica %d: the schedule advanced by %s, want at most %s, in gaps %s", i, got, w.most(), w.gaps)
					}
				}
			},
		})
	})
}

// A process counts an hour if it was frozen for 30 hours, or if its database did not answer for 30
// hours, before its next reading and after it.
func TestOutageOfRunningProcess(t *testing.T) {
	for name, c := range map[string]struct{ elapses, counts time.Duration }{
		"the monotonic clock runs": {30 * time.Hour, time.Hour}, "it stands still": {0, 0},
	} {
		s := &fakeStore{source: began}
		r := &replica{}
		w := &world{store: s, replicas: []*replica{r}}
		w.open(r)
		s.source, r.elapsed = began.Add(30*time.Hour), c.elapses
		if got := r.clock.Now().Sub(began); got != c.counts {
			t.Errorf("%s: before the reading %s have passed, want %s", name, got, c.counts)
		}
		if err := r.clock.Read(t.Context()); err != nil || r.clock.Now().Sub(began) != c.counts {
			t.Errorf("%s: after the reading %s have passed, want %s (%v)", name, r.clock.Now().Sub(began), c.counts, err)
		}
		s.source, r.elapsed = s.source.Add(time.Minute), r.elapsed+time.Minute
		if err := r.clock.Read(t.Context()); err != nil || r.clock.Now().Sub(began) != c.counts+time.Minute {
			t.Errorf("%s: a minute later %s have passed (%v)", name, r.clock.Now().Sub(began), err)
		}
	}
}

// A replica that was frozen while another ran continues with the other's time.
func TestFrozenReplica(t *testing.T) {
	for _, counts := range []bool{true, false} {
		s := &fakeStore{source: began}
		running, frozen := &replica{}, &replica{frozen: true, counts: counts}
		w := &world{store: s, replicas: []*replica{running, frozen}}
		w.open(running)
		w.open(frozen)
		for range 30 * 60 {
			w.pass(time.Minute)
			w.read()
		}
		frozen.frozen = false
		if got := frozen.clock.Now().Sub(began); got > time.Hour {
			t.Errorf("before its reading %s have passed, want an hour at most", got)
		}
		w.read()
		for name, r := range map[string]*replica{"running": running, "frozen": frozen} {
			if got := r.clock.Now().Sub(began); got != 30*time.Hour {
				t.Errorf("%s: %s have passed, want 30 hours", name, got)
			}
		}
	}
}
