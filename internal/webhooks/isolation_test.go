package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// byPrefix returns a lookup that gives url to merchants with ids that begin with prefix, and others to all other
// merchants.
func byPrefix(prefix, url, others string) func(string) (webhooks.Endpoint, bool) {
	return func(merchantID string) (webhooks.Endpoint, bool) {
		if strings.HasPrefix(merchantID, prefix) {
			return webhooks.Endpoint{URL: url, Secret: secret}, true
		}
		return webhooks.Endpoint{URL: others, Secret: secret}, true
	}
}

// TestMostEndpointsDead checks that healthy endpoints receive all events while nine of ten
// endpoints with long queues hang.
func TestMostEndpointsDead(t *testing.T) {
	const merchants, each = 10, 12
	release := make(chan struct{})
	hole := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	r := newReceiver(t, status(http.StatusOK))
	s := dbtest.Open(t, dbtest.SQLite(t))
	for i := range 9 * merchants {
		dbtest.Schedule(t, s, fmt.Sprintf("dead%02d", i), 0, each, epoch.UnixMilli()-1000)
	}
	for i := range merchants {
		dbtest.Schedule(t, s, fmt.Sprintf("well%d", i), 0, each, epoch.UnixMilli()-100)
	}
	w := newWorld(t, s, r.URL)
	w.Limits = webhooks.Limits{Timeout: patience, Grace: time.Millisecond}
	w.Endpoints = all(byPrefix("dead", hole.URL, r.URL))
	w.start(t)
	for range merchants * each {
		if o := w.outcome(t); !strings.HasPrefix(o.DeliveryID, "dlv_well") || o.Status != webhooks.Delivered {
			t.Fatalf("outcome %+v", o)
		}
	}
	if n := len(hole.requests()); n > 9*merchants {
		t.Errorf("%d exchanges with %d endpoints that never answered, want one each at most", n, 9*merchants)
	}
}

// TestBreakerOpensAndRampsUp checks that five consecutive failures open the breaker, that no event is sent until the
// probe, and that the limit doubles with each success after it.
func TestBreakerOpensAndRampsUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var down atomic.Bool
		down.Store(true)
		arrived, answer := make(chan struct{}, 100), make(chan struct{})
		goOn := sync.OnceFunc(func() { close(answer) })
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if down.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			arrived <- struct{}{}
			<-answer
		})
		t.Cleanup(goOn)
		dbtest.Schedule(t, s, "m", 0, 40, epoch.UnixMilli()-40)
		w := newWorld(t, s, r.URL)
		w.Endpoints = all(byPrefix("m", r.URL, newReceiver(t, status(http.StatusOK)).URL))
		w.start(t)
		for range 5 {
			w.outcome(t)
		}
		// The outcome of another merchant shows that the worker has run.
		dbtest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli())
		w.advance(epoch.Add(20 * time.Second))
		if o := w.outcome(t); o.Delivery.MerchantID != "n" || len(r.requests()) != 5 {
			t.Errorf("%d requests, the last outcome is %+v; want 5, and n's", len(r.requests()), o)
		}
		down.Store(false)
		w.advance(epoch.Add(37 * time.Second))    // the pause of 30 s with 20 % jitter has ended, and the first retries are due
		for _, together := range []int{1, 1, 2} { // the probe, then the numbers that the breaker allows
			for range together {
				receive(t, arrived, fmt.Sprintf("one of %d requests of the ramp", together))
			}
			select {
			case <-arrived:
				t.Errorf("more than %d at once", together)
			case <-time.After(20 * time.Millisecond):
			}
			if together == 1 {
				answer <- struct{}{}
				w.outcome(t)
			}
		}
		goOn()
		for range 38 {
			if o := w.outcome(t); o.Status != webhooks.Delivered {
				t.Errorf("outcome %+v", o)
			}
		}
	})
}

// TestEndpointAnswers410 checks that an endpoint that answers 410 is probed once an hour,
// and that its events stay pending.
func TestEndpointAnswers410(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	var code atomic.Int32
	code.Store(http.StatusGone)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
	dbtest.Schedule(t, s, "m", 0, 3, epoch.UnixMilli()-3)
	w := newWorld(t, s, r.URL)
	w.start(t)
	if o := w.outcome(t); o.Status != webhooks.Pending || o.Attempt.StatusCode != http.StatusGone {
		t.Errorf("outcome %+v, %+v", o, o.Attempt)
	}
	if b, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"}); err != nil || b["m"].State != webhooks.BreakerGone {
		t.Errorf("breaker %+v, %v; want it gone", b["m"], err)
	}
	code.Store(http.StatusOK)
	w.advance(epoch.Add(73 * time.Minute))
	for range 3 {
		if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Started.Before(epoch.Add(48*time.Minute)) {
			t.Errorf("outcome %+v, %+v", o, o.Attempt)
		}
	}
}

// failingExpiry is a store with a FailOverdueDeliveries that returns an error.
type failingExpiry struct {
	*recorder
	asked chan struct{}
}

func (u failingExpiry) FailOverdueDeliveries(context.Context, webhooks.OverdueRequest) (map[string]int, bool, error) {
	select {
	case u.asked <- struct{}{}:
	default:
	}
	return nil, false, errors.New("no")
}

// TestDeliversWhileExpiryFails checks that other deliveries continue when failing overdue ones returns an error.
func TestDeliversWhileExpiryFails(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "late", 0, 1, epoch.Add(-2*webhooks.RetryWindow).UnixMilli())
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
	unable := failingExpiry{w.store, make(chan struct{}, 1)}
	w.Store = unable
	w.start(t)
	receive(t, unable.asked, "a look at what ran out of time")
	w.outcome(t)
	w.outcome(t)
}

// TestRedeliveryAfterFailure checks that a failed delivery that is redelivered has a new
// deadline, the same id, and attempt numbers that continue.
func TestRedeliveryAfterFailure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var code atomic.Int32
		code.Store(http.StatusBadGateway)
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
		events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
		w := newWorld(t, s, r.URL)
		w.start(t)
		o := w.outcome(t)
		for o.Status == webhooks.Pending {
			w.advance(o.NextDue)
			o = w.outcome(t)
		}
		number := o.Attempt.Number
		again := epoch.Add(100 * time.Hour)
		w.clock.Set(again)
		expect.OK(t, s.Update(t.Context(), func(tx *db.Tx) error {
			_, err := webhooks.Redeliver(t.Context(), tx, events[0].ID, again)
			return err
		}))
		w.advance(again)
		o = w.outcome(t)
		next := o.NextDue.Sub(again)
		if o.Status != webhooks.Pending || o.Attempt.Number != number+1 || next < 4*time.Second || next > 6*time.Second {
			t.Errorf("the first attempt of the new schedule: %+v, %+v; want it tried again in 5s", o, o.Attempt)
		}
		code.Store(http.StatusOK)
		w.advance(again.Add(time.Hour))
		if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != number+2 || o.DeliveryID != events[0].DeliveryID {
			t.Errorf("outcome %+v, %+v", o, o.Attempt)
		}
		for _, got := range r.requests() {
			if id := got.header.Get("X-Service-Delivery"); id != events[0].DeliveryID {
				t.Errorf("posted as %s, want %s", id, events[0].DeliveryID)
			}
		}
	})
}
