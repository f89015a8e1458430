package webhooks_test

import (
	"net/http"
	"strings"
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
