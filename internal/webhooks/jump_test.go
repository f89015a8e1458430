package webhooks_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// machine is the clock of a computer, which can be set.
type machine struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) Wall() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall
}

func (m *machine) Elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.elapsed
}

// pass advances the time by d, and sets the clock forward by jump.
func (m *machine) pass(d, jump time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = m.wall.Add(d + jump)
	m.elapsed += d
}

// on makes the worker use the machine's clocks.
func (w *world) on(t *testing.T, s *db.DB, m *machine) *db.Clock {
	t.Helper()
	c, err := db.OpenClock(t.Context(), db.ClockConfig{Store: s, Wall: m.Wall, Elapsed: m.Elapsed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.Now, w.Schedule = m.Wall, c.Now
	return c
}

// look wakes the worker.
func (w *world) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// TestClockJumps checks that setting the clock back by hours delays no retry, and that setting it forward by two days
// neither speeds up a retry nor fails a pending delivery.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -3 * time.Hour, "forward": 48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := dbtest.Open(t, dbtest.SQLite(t))
			var down atomic.Bool
			down.Store(true)
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				if down.Load() {
					w.WriteHeader(http.StatusBadGateway)
				}
			})
			m := &machine{wall: epoch}
			w := newWorld(t, s, r.URL)
			w.on(t, s, m)
			events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			w.start(t)
			if o := w.outcome(t); o.Status != webhooks.Pending {
				t.Fatalf("outcome %+v", o)
			}
			m.pass(time.Second, jump)
			// The outcome of another merchant shows that the worker has run.
			dbtest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli()+1000)
			w.look()
			if o := w.outcome(t); o.Delivery.MerchantID != "n" {
				t.Fatalf("outcome %+v, want n's", o)
			}
			if rec := recordOf(t, s, events[0].ID); rec.Status != webhooks.Pending || len(rec.Attempts) != 1 {
				t.Fatalf("after the jump: %+v", rec)
			}
			m.pass(6*time.Second, 0)
			w.look()
			for { // merchant n fails as well
				if o := w.outcome(t); o.Delivery.MerchantID == "m" {
					if o.Status != webhooks.Pending || o.Attempt.Number != 2 || o.Attempt.Duration > time.Minute {
						t.Fatalf("the retry's outcome %+v, %+v", o, o.Attempt)
					}
					break
				}
			}
			down.Store(false)
			m.pass(time.Minute, -jump)
			w.look()
			for {
				if o := w.outcome(t); o.Delivery.MerchantID == "m" {
					if o.Status != webhooks.Delivered || o.Attempt.Number != 3 {
						t.Fatalf("when the clock has come back: %+v, %+v", o, o.Attempt)
					}
					break
				}
			}
		})
	}
}

// TestStartWithClockAhead checks that a process that starts with its clock two days
// ahead fails no delivery.
func TestStartWithClockAhead(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	bad := newReceiver(t, status(http.StatusBadGateway))
	m := &machine{wall: epoch}
	w := newWorld(t, s, bad.URL)
	w.on(t, s, m)
	events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w.start(t)
	w.outcome(t)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	m = &machine{wall: epoch.Add(48 * time.Hour)}
	w = newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
	w.on(t, s, m)
	w.start(t)
	if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 2 {
		t.Errorf("outcome %+v", o)
	}
	if rec := recordOf(t, s, events[0].ID); rec.Status != webhooks.Delivered {
		t.Errorf("record %+v", rec)
	}
}

// reads is a store that signals each reading of the clock.
type reads struct {
	*db.DB
	done chan struct{}
}

func (r reads) ReadClock(ctx context.Context, own time.Time, next func(db.ClockReading, time.Time) db.ClockReading) (db.ClockReading, error) {
	now, err := r.DB.ReadClock(ctx, own, next)
	r.done <- struct{}{}
	return now, err
}

// TestOutageOfThirtyHours stops a running process for 30 hours. Afterwards, deliveries that were tried once must be
// tried again, and no delivery may fail. The worker continues before the clock is read.
func TestOutageOfThirtyHours(t *testing.T) {
	const n = 384
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var down atomic.Bool
		down.Store(true)
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if down.Load() {
				w.WriteHeader(http.StatusBadGateway)
			}
		})
		wall := epoch
		if s.Shared() { // the process's clock is the source
			wall = time.Now()
		}
		m := &machine{wall: wall}
		w := newWorld(t, s, r.URL)
		// Every event has a different merchant, so that no breaker delays the first attempts.
		read, wake := reads{s, make(chan struct{}, 1)}, make(chan struct{}, 1)
		c, err := db.OpenClock(t.Context(), db.ClockConfig{
			Store: read, Wall: m.Wall, Elapsed: m.Elapsed, Wake: wake, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		<-read.done
		w.Now, w.Schedule = m.Wall, c.Now
		var events []webhooks.Event
		for i := range n {
			events = append(events, dbtest.Schedule(t, s, fmt.Sprintf("m%d", i), 0, 1, c.Now().UnixMilli())...)
		}
		w.start(t)
		for range n {
			if o := w.outcome(t); o.Status != webhooks.Pending || o.Attempt.Number != 1 {
				t.Fatalf("the first attempt: %+v", o)
			}
		}
		down.Store(false)
		m.pass(30*time.Hour, 0)
		w.look()
		for range n {
			if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 2 {
				t.Fatalf("after the outage: %+v", o)
			}
		}
		wake <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(ctx) }()
		receive(t, read.done, "a reading of the clock")
		cancel()
		<-ended
		w.look()
		for _, e := range events {
			if rec := recordOf(t, s, e.ID); rec.Status != webhooks.Delivered {
				t.Errorf("event %s is %s", e.ID, rec.Status)
			}
		}
	})
}
