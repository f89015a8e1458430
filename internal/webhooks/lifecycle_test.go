package webhooks_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestStop checks that a stopping worker lets an exchange finish within its grace period,
// and releases the lease of one that does not.
func TestStop(t *testing.T) {
	t.Run("within the grace", func(t *testing.T) {
		s := dbtest.Open(t, dbtest.SQLite(t))
		dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
		arrived, answer := make(chan struct{}, 2), make(chan struct{})
		r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
			arrived <- struct{}{}
			<-answer
		})
		w := newWorld(t, s, r.URL)
		w.Limits = webhooks.Limits{PerMerchant: 1, Timeout: patience, Grace: patience}
		w.start(t)
		receive(t, arrived, "the request")
		w.cancel() // before the answer, after which the second delivery would begin
		close(answer)
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if o := w.outcome(t); o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v", o)
		}
		if n := len(r.requests()); n != 1 {
			t.Errorf("%d requests, want the one that had begun", n)
		}
	})
	t.Run("given back", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, s *db.DB) {
			events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			events = append(events, dbtest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli())...)
			arrived, never := make(chan struct{}, 2), make(chan struct{})
			r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
				arrived <- struct{}{}
				<-never
			})
			t.Cleanup(func() { close(never) })
			w := newWorld(t, s, r.URL)
			w.Limits = webhooks.Limits{Timeout: patience, Grace: time.Millisecond}
			w.start(t)
			receive(t, arrived, "a request")
			receive(t, arrived, "another")
			if err := w.stop(); err != nil {
				t.Error(err)
			}
			for _, e := range events {
				if r := recordOf(t, s, e.ID); len(r.Attempts) != 0 || r.Status != webhooks.Pending {
					t.Errorf("record %+v; want no attempt", r)
				}
			}
			// The time is the same, so a lease that was not released would still be valid.
			ok := newReceiver(t, status(http.StatusOK))
			w = newWorld(t, s, ok.URL)
			w.start(t)
			w.outcome(t)
			w.outcome(t)
		})
	})
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli()-3000)
	var calls atomic.Int32
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	w := newWorld(t, s, r.URL)
	w.Metrics = webhooks.NewMetrics(reg)
	w.start(t)
	w.advance(w.outcome(t).NextDue)
	w.outcome(t)
	expect.OK(t, w.stop())
	families, err := reg.Gather()
	expect.OK(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"quittance_webhook_attempts_total delivered": 1, "quittance_webhook_attempts_total pending": 1,
		"quittance_webhook_attempt_duration_seconds": 2, "quittance_webhook_failed_total": 0, "quittance_webhook_in_flight first": 0, "quittance_webhook_in_flight retry": 0,
		"quittance_webhook_endpoints gone": 0, "quittance_webhook_endpoints open": 0,
		"quittance_webhook_oldest_due_seconds": 0,
		"quittance_webhook_stalled_total":      0,
		"quittance_webhook_put_back_total":     0,
		"quittance_webhook_waiting_merchants":  0,
	}
	delete(got, "quittance_webhook_endpoints closed") // counted at the last resync, which was before or after the attempts
	expect.NoDiff(t, cmp.Diff(want, got), "metrics")
}
