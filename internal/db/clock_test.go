package db_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// machine has a clock that can be set, and a process that runs.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

// run advances time.
func (m *machine) run(d time.Duration) {
	m.wall = m.wall.Add(d)
	m.elapsed += d
}

func (m *machine) open(t *testing.T, s *db.DB) *db.Clock {
	t.Helper()
	c, err := db.OpenClock(t.Context(), db.ClockConfig{
		Store: s, Logger: slog.New(slog.DiscardHandler),
		Wall: func() time.Time { return m.wall }, Elapsed: func() time.Duration { return m.elapsed },
	})
	expect.OK(t, err)
	return c
}

var began = time.UnixMilli(1_700_000_000_000)

const day = 24 * time.Hour

// While a process runs, jumps in either direction do not move the schedule's time, whether the clock comes back or not.
func TestJumpsWhileRunning(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	m := &machine{wall: began}
	c := m.open(t, s)
	passed := time.Duration(0)
	for _, jump := range []time.Duration{0, 2 * day, -2 * day, -3 * time.Hour, 3 * time.Hour, 400 * day, -5 * time.Hour} {
		m.wall = m.wall.Add(jump)
		for range 3 {
			m.run(5 * time.Second)
			passed += 5 * time.Second
			expect.Equal(t, c.Now().Sub(began), passed, "after a jump by %s: … have passed:", jump)
			expect.OK(t, c.Read(t.Context()))
			expect.Equal(t, c.Now().Sub(began), passed, "after a jump by %s, read: … have passed:", jump)
		}
		if back := c.Wall(c.Now()); !back.Equal(m.wall) {
			t.Errorf("after a jump by %s it shows %s as %s", jump, m.wall, back)
		}
		if confirmed := c.Confirmed(); confirmed.After(m.wall) || confirmed.After(c.Now()) {
			t.Errorf("after a jump by %s the confirmed time is %s", jump, confirmed)
		}
	}
}

// Small corrections are followed forward; after a backward one the clock waits.
func TestSmallCorrections(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	m := &machine{wall: began}
	c := m.open(t, s)
	m.run(10 * time.Second)
	m.wall = m.wall.Add(time.Second)
	if err := c.Read(t.Context()); err != nil || !c.Now().Equal(m.wall) || c.Offset() != 0 {
		t.Errorf("a second forward: %s, want %s (%v)", c.Now(), m.wall, err)
	}
	before := c.Now()
	m.wall = m.wall.Add(-time.Second)
	if err := c.Read(t.Context()); err != nil || !c.Now().Equal(before) || c.Offset() != 0 {
		t.Errorf("a second back: %s, want %s (%v)", c.Now(), before, err)
	}
}

// The time between two processes counts as an hour at most, and as 0 if the clock was set back.
func TestTimeBetweenProcesses(t *testing.T) {
	for _, c := range []struct{ away, counts time.Duration }{
		{10 * time.Minute, 10 * time.Minute}, {time.Hour, time.Hour}, {2 * day, time.Hour}, {-3 * time.Hour, 0}, {-400 * day, 0},
	} {
		s := dbtest.Open(t, dbtest.SQLite(t))
		m := &machine{wall: began}
		m.open(t, s)
		m = &machine{wall: began.Add(c.away)}
		expect.Equal(t, m.open(t, s).Now().Sub(began), c.counts, "away for %s: … are counted:", c.away)
	}
}

// Replicas share one time, which is the database's on PostgreSQL: their clocks may be hours apart.
func TestReplicas(t *testing.T) {
	s := dbtest.Open(t, dbtest.MigratedPostgres(t))
	one, two := &machine{wall: time.Now()}, &machine{wall: time.Now().Add(-5 * time.Hour)}
	c, d := one.open(t, s), two.open(t, s)
	if apart := d.Now().Sub(c.Now()); apart < 0 || apart > time.Minute {
		t.Errorf("they are %s apart", apart)
	}
	if off := time.Until(c.Now()); off.Abs() > time.Minute {
		t.Errorf("it is %s ahead of the database's", off)
	}
	if off := d.Offset(); off < 4*time.Hour {
		t.Errorf("the other's offset is %s, want about 5 hours", off)
	}
}

// Old data is deleted by the machine's time after that has been stable for a day of running. A clock that is ahead for
// a day deletes no data early, even if the process restarts in that time. A clock that stays ahead is followed.
func TestConfirmed(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	m := &machine{wall: began}
	c := m.open(t, s)
	passed := time.Duration(0)
	run := func(hours int) {
		for range hours {
			m.run(time.Hour)
			passed += time.Hour
			expect.OK(t, c.Read(t.Context()))
		}
	}
	want := func(when string, want time.Duration) {
		t.Helper()
		expect.Equal(t, c.Confirmed().Sub(began), want, "%s … are confirmed:", when)
	}
	run(100)
	want("without a jump", passed)
	m.wall = m.wall.Add(200 * 365 * day)
	want("200 years ahead", passed)
	run(12)
	c = m.open(t, s)
	run(11)
	want("200 years ahead for 23 hours", passed)
	m.wall = m.wall.Add(-200 * 365 * day)
	run(100)
	want("after it", passed)
	m.wall = m.wall.Add(-5 * time.Hour)
	want("set back", passed-5*time.Hour)
	run(100)
	m.wall = m.wall.Add(5 * time.Hour)
	want("as soon as it is right again", passed-5*time.Hour)
	run(50)
	want("two days later", passed)
	m.wall = m.wall.Add(3 * time.Hour)
	run(50)
	want("two days after it was set forward for good", passed+3*time.Hour)
}

// A service that is off for most of each day keeps data longer by a bounded time.
func TestConfirmedWhileOffAtNight(t *testing.T) {
	for on, most := range map[time.Duration]time.Duration{8 * time.Hour: 5 * day, time.Hour: 24 * day} {
		s := &fakeStore{source: began}
		for n := range 400 {
			r := &replica{}
			w := &world{store: s, replicas: []*replica{r}}
			w.open(r)
			for range on / time.Hour {
				w.pass(time.Hour)
				w.read()
			}
			if lag := s.source.Sub(r.clock.Confirmed()); lag < 0 || lag > most {
				t.Fatalf("on for %s a day: after %d days the confirmed time is %s behind, want at most %s", on, n, lag, most)
			}
			s.source = s.source.Add(day - on)
		}
	}
}

// A reading of an older version is confirmed after a day.
func TestConfirmedAfterUpgrade(t *testing.T) {
	s := &fakeStore{source: began, last: db.ClockReading{Now: began.Add(-100 * day), Source: began}}
	r := &replica{}
	w := &world{store: s, replicas: []*replica{r}}
	w.open(r)
	expect.Equal(t, began.Sub(r.clock.Confirmed()), 100*day, "at first the confirmed time is … behind:")
	for range 49 {
		w.pass(time.Hour)
		w.read()
	}
	expect.Equal(t, s.source.Sub(r.clock.Confirmed()), 0, "after two days it is … behind:")
}

// TestClockReading checks that a reading is stored with all its fields, also a reading that is behind
// or centuries ahead.
func TestClockReading(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		base := time.UnixMilli(1_700_000_000_123).UTC()
		last := db.ClockReading{}
		for _, next := range []db.ClockReading{
			{Now: base, Since: base},
			{Now: base.Add(time.Hour), Since: base.Add(time.Minute), Before: -time.Hour, Offset: 290 * 365 * 24 * time.Hour},
			{Now: base.Add(2 * time.Hour), Since: base.Add(time.Hour), Before: 5 * time.Millisecond, Offset: -290 * 365 * 24 * time.Hour},
		} {
			got, err := s.ReadClock(t.Context(), base, func(stored db.ClockReading, _ time.Time) db.ClockReading {
				stored.Source = time.Time{} // on PostgreSQL it is its own clock
				expect.NoDiff(t, gocmp.Diff(last, stored), "stored")
				return next
			})
			rowtest.Must(t, err)
			expect.NoDiff(t, gocmp.Diff(next, got), "returned")
			last = next
		}
	})
}

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
		expect.Equal(t, r.clock.Now().Sub(began), c.counts, "%s: before the reading … have passed:", name)
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
			expect.Equal(t, r.clock.Now().Sub(began), 30*time.Hour, "%s: … have passed:", name)
		}
	}
}

// hanging is a store of readings that does not answer from the second one on.
type hanging struct {
	store db.ClockStore
	began chan struct{}
	ended chan struct{}
}

func (h *hanging) ReadClock(ctx context.Context, own time.Time, next func(db.ClockReading, time.Time) db.ClockReading) (db.ClockReading, error) {
	if h.began == nil {
		h.began = make(chan struct{})
		return h.store.ReadClock(ctx, own, next)
	}
	close(h.began)
	<-h.ended
	return db.ClockReading{}, errors.New("too late")
}

// TestClockThatHangs stores a reading on a disk that never answers, as a network disk does without an error. The clock
// reports it, so that the service is not ready.
func TestClockThatHangs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		h, elapsed := &hanging{store: s, ended: make(chan struct{})}, new(atomic.Int64)
		wake := make(chan struct{}, 1)
		c, err := db.OpenClock(t.Context(), db.ClockConfig{
			Store: h, Wall: time.Now, Elapsed: func() time.Duration { return time.Duration(elapsed.Load()) }, Wake: wake, Logger: slog.New(slog.DiscardHandler),
		})
		expect.OK(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx) })
		wake <- struct{}{}
		<-h.began
		elapsed.Store(int64(9 * time.Second))
		expect.NoError(t, c.Err())
		elapsed.Store(int64(11 * time.Second))
		if c.Err() == nil {
			t.Error("the clock does not report that its reading hangs")
		}
		stop()
		close(h.ended)
		running.Wait()
	})
}
