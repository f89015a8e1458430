package dispatcher_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// countingStore counts requests for leases.
type countingStore struct {
	*recorder
	leases *atomic.Int64
}

func (s countingStore) LeaseDeliveries(ctx context.Context, r delivery.LeaseRequest) (delivery.Leased, error) {
	s.leases.Add(1)
	return s.recorder.LeaseDeliveries(ctx, r)
}

// fresh is a worker and the events that its process commits.
type fresh struct {
	*world
	worker *dispatcher.Worker
	leases *atomic.Int64
}

// startFresh runs a worker that knows the endpoint of merchant m as healthy, so
// that its breaker allows four attempts at once.
func startFresh(t *testing.T, s *store.Store, url string) *fresh {
	t.Helper()
	f := &fresh{world: newWorld(t, s, url), leases: new(atomic.Int64)}
	storetest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
	f.Config.Store = countingStore{f.store, f.leases}
	f.worker = dispatcher.New(f.Config)
	f.run(t, f.worker)
	for range 2 {
		f.outcome(t)
	}
	return f
}

// insert inserts an event as a use case does, up to its commit.
func (f *fresh) insert(t *testing.T, n int) []store.Event {
	t.Helper()
	events := []store.Event{{
		ID: fmt.Sprint("evt_", n), Type: invoice.EventReceived, Subject: fmt.Sprint("fresh ", n), MerchantID: "m", InvoiceID: "inv_m_0",
		Body: []byte("{}"), CreatedAt: invoice.Unix(1), DeliveryID: fmt.Sprint("dlv_", n), Due: f.clock.Now(),
	}}
	if err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		f.worker.LeaseEvents(events)
		return tx.InsertEvents(t.Context(), events)
	}); err != nil {
		t.Fatal(err)
	}
	return events
}

// insertLeased inserts events until one is leased: the worker takes in outcomes
// after they were recorded.
func (f *fresh) insertLeased(t *testing.T) store.Event {
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

// A fresh event of a healthy endpoint is posted without a request for a lease.
func TestHandover(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		e := f.insertLeased(t)
		before := f.leases.Load()
		f.worker.Committed([]store.Event{e})
		if o := f.outcome(t); o.DeliveryID != e.DeliveryID || o.Status != delivery.Delivered {
			t.Errorf("outcome %+v of %s, want %s delivered", o.Status, o.DeliveryID, e.DeliveryID)
		}
		if n := f.leases.Load() - before; n != 0 {
			t.Errorf("%d requests for leases", n)
		}
		if r := recordOf(t, s, e.ID); r.Status != delivery.Delivered || len(r.Attempts) != 1 {
			t.Errorf("recorded as %+v", r)
		}
	})
}

// If the process ends between the commit and the handover, the event is posted
// when its lease ends, and not before.
func TestHandoverLost(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := newReceiver(t, status(http.StatusOK))
		f := startFresh(t, s, r.URL)
		e := f.insertLeased(t)
		if err := f.stop(); err != nil {
			t.Fatal(err)
		}
		next := newWorld(t, s, r.URL)
		next.clock.Set(epoch.Add(15*time.Second - time.Millisecond))
		next.start(t)
		storetest.Schedule(t, s, "other", 0, 1, epoch.UnixMilli())
		next.advance(next.clock.Now())
		if o := next.outcome(t); o.Delivery.MerchantID != "other" {
			t.Errorf("before the lease ended %s was posted", o.DeliveryID)
		}
		next.advance(epoch.Add(15 * time.Second))
		if o := next.outcome(t); o.DeliveryID != e.DeliveryID || o.Status != delivery.Delivered {
			t.Errorf("outcome %+v of %s, want %s delivered", o.Status, o.DeliveryID, e.DeliveryID)
		}
	})
}

// An event whose commit took as long as its lease is leased again.
func TestHandoverLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		e := f.insertLeased(t)
		f.clock.Set(epoch.Add(15 * time.Second))
		f.worker.Committed([]store.Event{e})
		if o := f.outcome(t); o.DeliveryID != e.DeliveryID || o.LeaseID == e.LeaseID {
			t.Errorf("%s was attempted under the lease %s, want another", o.DeliveryID, o.LeaseID)
		}
	})
}

// With another worker nothing is leased unseen: both count what is in flight.
func TestHandoverBesideAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		f.worker.Committed([]store.Event{f.insertLeased(t)})
		f.outcome(t)
		if err := s.RegisterWorker(t.Context(), store.Worker{ID: "another"}, epoch, epoch.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
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

// A merchant's fresh events stay within what may be in flight, and those of an
// unknown endpoint are not leased.
func TestHandoverKeepsLimits(t *testing.T) {
	const events, allowed = 40, 8
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var inFlight, most atomic.Int64
		f := startFresh(t, s, newReceiver(t, func(http.ResponseWriter, *http.Request) {
			for n := inFlight.Add(1); ; {
				if held := most.Load(); n <= held || most.CompareAndSwap(held, n) {
					break
				}
			}
			inFlight.Add(-1)
		}).URL)
		f.worker.Committed([]store.Event{f.insertLeased(t)})
		f.outcome(t)
		var leased []store.Event
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
		unknown := []store.Event{{MerchantID: "unknown", DeliveryID: "dlv"}}
		if f.worker.LeaseEvents(unknown); unknown[0].LeaseID != "" {
			t.Error("an event of an unknown endpoint is leased")
		}
	})
}
