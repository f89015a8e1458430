package webhooks_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// counting is a store that counts lease requests.
type counting struct {
	*recorder
	leases atomic.Int64
}

func (c *counting) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	c.leases.Add(1)
	return c.recorder.LeaseDeliveries(ctx, r)
}

// TestWithoutEndpoint checks that the events of a merchant without an endpoint wait without attempts, leases or log
// lines, and are delivered once an endpoint is set.
func TestWithoutEndpoint(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const events = 300
		r := newReceiver(t, status(http.StatusOK))
		all1 := dbtest.Schedule(t, s, "m", 0, events, epoch.UnixMilli()-events)
		w := newWorld(t, s, r.URL)
		var log logtest.Buffer
		w.Logger = slog.New(slog.NewTextHandler(&log, nil))
		conn := &counting{recorder: w.store}
		w.Store = conn
		var configured atomic.Bool
		w.Endpoints = all(func(id string) (webhooks.Endpoint, bool) {
			return webhooks.Endpoint{URL: r.URL, Secret: secret}, id != "m" || configured.Load()
		})
		w.start(t)
		for i := range 3 { // other merchants' deliveries, which show that the worker runs
			dbtest.Schedule(t, s, "n", i, 1, epoch.UnixMilli())
			w.advance(epoch.Add(time.Duration(i) * time.Second))
			if o := w.outcome(t); o.Delivery.MerchantID != "n" {
				t.Fatalf("outcome %+v", o)
			}
		}
		if rec := recordOf(t, s, all1[0].ID); rec.Status != webhooks.Pending || len(rec.Attempts) != 0 {
			t.Errorf("the first event: %+v", rec)
		}
		if b, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"}); err != nil || b["m"].Failures != 0 {
			t.Errorf("its breaker: %+v, %v", b["m"], err)
		}
		if n := conn.leases.Load(); n > 20 {
			t.Errorf("%d times something was leased for 3 events", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=INFO msg=\"events wait") {
			t.Errorf("it logged %d lines:\n%s", n, log.String())
		}
		configured.Store(true)
		w.advance(epoch.Add(10 * time.Second))
		for range events {
			if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 1 {
				t.Fatalf("outcome %+v", o)
			}
		}
	})
}
