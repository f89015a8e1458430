package dispatcher_test

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	schedule "github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
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

// on sets the worker's clocks to those of the machine.
func (w *world) on(t *testing.T, s *store.Store, m *machine) *schedule.Clock {
	t.Helper()
	c, err := schedule.Open(t.Context(), schedule.Config{Store: s, Wall: m.Wall, Elapsed: m.Elapsed, Logger: slog.New(slog.DiscardHandler)})
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

// TestClockJumps checks that setting the clock back by hours delays no retry, and that
// setting it forward by two days neither hastens a retry nor fails a pending delivery.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -3 * time.Hour, "forward": 48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Open(t, storetest.SQLite(t))
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
			events := storetest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			w.start(t)
			if o := w.outcome(t); o.Status != delivery.Pending {
				t.Fatalf("outcome %+v", o)
			}
			m.pass(time.Second, jump)
			// The outcome of another merchant shows that the worker has run.
			storetest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli()+1000)
			w.look()
			if o := w.outcome(t); o.Delivery.MerchantID != "n" {
				t.Fatalf("outcome %+v, want n's", o)
			}
			if rec := recordOf(t, s, events[0].ID); rec.Status != delivery.Pending || len(rec.Attempts) != 1 {
				t.Fatalf("after the jump: %+v", rec)
			}
			m.pass(6*time.Second, 0)
			w.look()
			for { // merchant n fails as well
				if o := w.outcome(t); o.Delivery.MerchantID == "m" {
					if o.Status != delivery.Pending || o.Attempt.Number != 2 || o.Attempt.Duration > time.Minute {
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
					if o.Status != delivery.Delivered || o.Attempt.Number != 3 {
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
	s := storetest.Open(t, storetest.SQLite(t))
	bad := newReceiver(t, status(http.StatusBadGateway))
	m := &machine{wall: epoch}
	w := newWorld(t, s, bad.URL)
	w.on(t, s, m)
	events := storetest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w.start(t)
	w.outcome(t)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	m = &machine{wall: epoch.Add(48 * time.Hour)}
	w = newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
	w.on(t, s, m)
	w.start(t)
	if o := w.outcome(t); o.Status != delivery.Delivered || o.Attempt.Number != 2 {
		t.Errorf("outcome %+v", o)
	}
	if rec := recordOf(t, s, events[0].ID); rec.Status != delivery.Delivered {
		t.Errorf("record %+v", rec)
	}
}
