package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// countingStore counts lease requests.
type countingStore struct {
	*recorder
	leases *atomic.Int64
}

func (s countingStore) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	s.leases.Add(1)
	return s.recorder.LeaseDeliveries(ctx, r)
}

// fresh is a worker and the events that its process commits.
type fresh struct {
	*world
	worker *webhooks.Worker
	leases *atomic.Int64
}

// startFresh runs a worker with merchant m's endpoint in its cache as healthy, so that the breaker allows four attempts
// at the same time.
func startFresh(t *testing.T, s *db.DB, url string) *fresh {
	t.Helper()
	f := &fresh{world: newWorld(t, s, url), leases: new(atomic.Int64)}
	dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
	f.WorkerConfig.Store = countingStore{f.store, f.leases}
	f.worker = webhooks.NewWorker(f.WorkerConfig)
	f.run(t, f.worker)
	for range 2 {
		f.outcome(t)
	}
	return f
}

// insert commits event n, leased if the worker allows it, without handing it over.
func (f *fresh) insert(t *testing.T, n int) []webhooks.Event {
	t.Helper()
	events := []webhooks.Event{{
		ID: fmt.Sprint("evt_", n), Type: invoice.EventReceived, Subject: fmt.Sprint("fresh ", n), MerchantID: "m", InvoiceID: "inv_m_0",
		Body: []byte("{}"), CreatedAt: invoice.Unix(1), DeliveryID: fmt.Sprint("dlv_", n), Due: f.clock.Now(),
	}}
	expect.OK(t, f.store.Update(t.Context(), func(tx *db.Tx) error {
		f.worker.LeaseEvents(events)
		return webhooks.InsertEvents(t.Context(), tx, events)
	}))
	return events
}

// insertLeased inserts events until one is inserted with a lease. Before that, the worker may not have processed the
// recorded outcomes yet.
func (f *fresh) insertLeased(t *testing.T) webhooks.Event {
	t.Helper()
	for n := 100; ; n++ {
		events := f.insert(t, n)
		if events[0].LeaseID != "" {
			return events[0]
		}
		f.worker.Committed(events)
		f.outcome(t)
	}
}

// TestHandover checks that a fresh event of a healthy endpoint is posted without a lease request.
func TestHandover(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		e := f.insertLeased(t)
		before := f.leases.Load()
		f.worker.Committed([]webhooks.Event{e})
		if o := f.outcome(t); o.DeliveryID != e.DeliveryID || o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v of %s, want %s delivered", o.Status, o.DeliveryID, e.DeliveryID)
		}
		if n := f.leases.Load() - before; n != 0 {
			t.Errorf("%d requests for leases", n)
		}
		if r := recordOf(t, s, e.ID); r.Status != webhooks.Delivered || len(r.Attempts) != 1 {
			t.Errorf("recorded as %+v", r)
		}
	})
}

// TestHandoverLost checks that an event with a lost handover is posted when its lease ends, and not before.
func TestHandoverLost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		r := newReceiver(t, status(http.StatusOK))
		f := startFresh(t, s, r.URL)
		e := f.insertLeased(t)
		expect.OK(t, f.stop())
		next := newWorld(t, s, r.URL)
		next.clock.Set(epoch.Add(15*time.Second - time.Millisecond))
		next.start(t)
		dbtest.Schedule(t, s, "other", 0, 1, epoch.UnixMilli())
		next.advance(next.clock.Now())
		if o := next.outcome(t); o.Delivery.MerchantID != "other" {
			t.Errorf("before the lease ended %s was posted", o.DeliveryID)
		}
		next.advance(epoch.Add(15 * time.Second))
		if o := next.outcome(t); o.DeliveryID != e.DeliveryID || o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v of %s, want %s delivered", o.Status, o.DeliveryID, e.DeliveryID)
		}
	})
}

// TestHandoverLate checks that an event is leased again if its commit took longer than its lease.
func TestHandoverLate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		e := f.insertLeased(t)
		f.clock.Set(epoch.Add(15 * time.Second))
		f.worker.Committed([]webhooks.Event{e})
		if o := f.outcome(t); o.DeliveryID != e.DeliveryID || o.LeaseID == e.LeaseID {
			t.Errorf("%s was attempted under the lease %s, want another", o.DeliveryID, o.LeaseID)
		}
	})
}

// TestHandoverWithAnotherWorker checks that events are inserted without a lease while a second
// worker is registered, because both count deliveries in flight.
func TestHandoverWithAnotherWorker(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		f.worker.Committed([]webhooks.Event{f.insertLeased(t)})
		f.outcome(t)
		expect.OK(t, webhooks.NewTables(s).RegisterWorker(t.Context(), webhooks.Deliverer{ID: "another"}, epoch, epoch.Add(time.Minute)))
		for n := range 3 {
			events := f.insert(t, n)
			if e := events[0]; e.LeaseID != "" || !e.LeaseUntil.IsZero() {
				t.Errorf("the event was inserted with the lease %s", e.LeaseID)
			}
			f.worker.Committed(events)
			if o := f.outcome(t); o.DeliveryID != events[0].DeliveryID {
				t.Errorf("%s was posted, want %s", o.DeliveryID, events[0].DeliveryID)
			}
		}
	})
}

// TestHandoverKeepsLimits checks that leased inserts respect a merchant's limit of deliveries in flight, and that
// events of an unknown endpoint are inserted without a lease.
func TestHandoverKeepsLimits(t *testing.T) {
	const events, allowed = 40, 8
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var inFlight, most atomic.Int64
		f := startFresh(t, s, newReceiver(t, func(http.ResponseWriter, *http.Request) {
			for n := inFlight.Add(1); ; {
				if held := most.Load(); n <= held || most.CompareAndSwap(held, n) {
					break
				}
			}
			inFlight.Add(-1)
		}).URL)
		f.worker.Committed([]webhooks.Event{f.insertLeased(t)})
		f.outcome(t)
		var leased []webhooks.Event
		for n := range events {
			leased = append(leased, f.insert(t, n)...)
		}
		f.worker.Committed(leased)
		for range events {
			f.outcome(t)
		}
		if n := most.Load(); n > allowed {
			t.Errorf("%d exchanges with one merchant at once, want %d at most", n, allowed)
		}
		unknown := []webhooks.Event{{MerchantID: "unknown", DeliveryID: "dlv"}}
		if f.worker.LeaseEvents(unknown); unknown[0].LeaseID != "" {
			t.Error("an event of an unknown endpoint is leased")
		}
	})
}
