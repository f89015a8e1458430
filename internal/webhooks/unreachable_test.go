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
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// counting is a store that counts lease requests and deliveries failed at their deadline.
type counting struct {
	*recorder
	leases  atomic.Int64
	expired chan map[string]int
}

func (c *counting) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	c.leases.Add(1)
	return c.recorder.LeaseDeliveries(ctx, r)
}

func (c *counting) FailOverdueDeliveries(ctx context.Context, r webhooks.OverdueRequest) (map[string]int, bool, error) {
	expired, more, err := c.recorder.FailOverdueDeliveries(ctx, r)
	if len(expired) > 0 {
		c.expired <- expired
	}
	return expired, more, err
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
		conn := &counting{recorder: w.store, expired: make(chan map[string]int, 100)}
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

// TestWithoutEndpointForADay checks that events without an endpoint fail at their
// deadline, with few log lines, and can be redelivered.
func TestWithoutEndpointForADay(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	const events = 300
	all1 := dbtest.Schedule(t, s, "m", 0, events, epoch.UnixMilli()-events)
	w := newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
	var log logtest.Buffer
	w.Logger = slog.New(slog.NewTextHandler(&log, nil))
	conn := &counting{recorder: w.store, expired: make(chan map[string]int, 100)}
	w.Store = conn
	found := w.Endpoints
	var configured atomic.Bool
	w.Endpoints = func(ctx context.Context, ids []string) (map[string]webhooks.Endpoint, error) {
		if !configured.Load() {
			return map[string]webhooks.Endpoint{}, nil
		}
		return found(ctx, ids)
	}
	w.start(t)
	day := epoch.Add(24*time.Hour + time.Second)
	w.advance(day)
	for left := events; left > 0; {
		select {
		case expired := <-conn.expired:
			left -= expired["m"]
		case <-time.After(50 * time.Millisecond):
			day = day.Add(time.Minute)
			w.advance(day)
		}
	}
	if rec := recordOf(t, s, all1[0].ID); rec.Status != webhooks.Failed || len(rec.Attempts) != 0 {
		t.Errorf("the first event: %+v", rec)
	}
	configured.Store(true)
	expect.OK(t, s.Update(t.Context(), func(tx *db.Tx) error {
		n, _, err := webhooks.RedeliverMany(t.Context(), tx, webhooks.RedeliverFilter{OnlyFailed: true}, day, events)
		if n != events {
			t.Errorf("%d are sent again", n)
		}
		return err
	}))
	w.advance(day.Add(10 * time.Second))
	for range events {
		if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 1 {
			t.Fatalf("outcome %+v", o)
		}
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "\n"); n > 4 || !strings.Contains(log.String(), "no endpoint for 24 hours") {
		t.Errorf("it logged %d lines:\n%s", n, log.String())
	}
}

// TestFailuresAreOneLine checks that the failures of one endpoint are logged as one line per minute, with a count.
func TestFailuresAreOneLine(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 4, epoch.UnixMilli()-4)
	w := newWorld(t, s, newReceiver(t, status(http.StatusBadGateway)).URL)
	var log logtest.Buffer
	w.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.start(t)
	for range 4 {
		w.outcome(t)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "webhook attempts failed") != 2 || !strings.Contains(text, "attempts=1 ") || !strings.Contains(text, "attempts=3 ") {
		t.Errorf("it logged\n%s", text)
	}
}
