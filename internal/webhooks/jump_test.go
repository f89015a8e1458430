package webhooks_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
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
			c, err := db.OpenClock(t.Context(), db.ClockConfig{Store: s, Wall: m.Wall, Elapsed: m.Elapsed, Logger: w.Logger})
			expect.OK(t, err)
			w.Now, w.Schedule = m.Wall, c.Now
			events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			w.start(t)
			if o := w.outcome(t); o.Status != webhooks.Pending {
				t.Fatalf("outcome %+v", o)
			}
			m.pass(time.Second, jump)
			// The outcome of another merchant shows that the worker has run.
			dbtest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli()+1000)
			w.advance(epoch) // wakes it
			if o := w.outcome(t); o.Delivery.MerchantID != "n" {
				t.Fatalf("outcome %+v, want n's", o)
			}
			if rec := recordOf(t, s, events[0].ID); rec.Status != webhooks.Pending || len(rec.Attempts) != 1 {
				t.Fatalf("after the jump: %+v", rec)
			}
			m.pass(6*time.Second, 0)
			w.advance(epoch) // wakes it
			for {            // merchant n fails as well
				if o := w.outcome(t); o.Delivery.MerchantID == "m" {
					if o.Status != webhooks.Pending || o.Attempt.Number != 2 || o.Attempt.Duration > time.Minute {
						t.Fatalf("the retry's outcome %+v, %+v", o, o.Attempt)
					}
					break
				}
			}
			down.Store(false)
			m.pass(time.Minute, -jump)
			w.advance(epoch) // wakes it
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
