package webhooks_test

import (
	"context"
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

// slowLeases is a store that blocks lease requests for the merchant "slow" until release is closed.
type slowLeases struct {
	*recorder
	began, release chan struct{}
}

func (s slowLeases) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	if r.Queues[0].MerchantID == "slow" {
		s.began <- struct{}{}
		<-s.release
	}
	return s.recorder.LeaseDeliveries(ctx, r)
}

// startWithSlowLeases runs a worker that has merchant m's endpoint in its cache as healthy. Its lease request for the
// merchant "slow" is blocked.
func startWithSlowLeases(t *testing.T, s *db.DB, url string) (f *fresh, release func()) {
	t.Helper()
	f = &fresh{world: newWorld(t, s, url)}
	slow := slowLeases{f.store, make(chan struct{}, 1), make(chan struct{})}
	release = sync.OnceFunc(func() { close(slow.release) })
	dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
	f.WorkerConfig.Store = slow
	f.worker = webhooks.NewWorker(f.WorkerConfig)
	f.run(t, f.worker)
	t.Cleanup(release) // before the worker stops
	for range 2 {
		f.outcome(t)
	}
	dbtest.Schedule(t, s, "slow", 0, 1, epoch.UnixMilli())
	f.advance(epoch)
	receive(t, slow.began, "a request for the leases of slow")
	return f, release
}

// TestLeaseDelaysNoFreshEvent checks that fresh events of a healthy endpoint do not wait for a blocked lease request.
func TestLeaseDelaysNoFreshEvent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		f, release := startWithSlowLeases(t, s, newReceiver(t, status(http.StatusOK)).URL)
		e := f.insertLeased(t)
		f.worker.Committed([]webhooks.Event{e})
		if o := f.outcome(t); o.DeliveryID != e.DeliveryID || o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v of %s, want %s delivered", o.Status, o.DeliveryID, e.DeliveryID)
		}
		release()
		if o := f.outcome(t); o.Delivery.MerchantID != "slow" {
			t.Errorf("outcome of %s, want slow's", o.Delivery.MerchantID)
		}
	})
}

// TestLeaseGivesWay checks that more urgent work goes first, for a short time, before a lease request.
func TestLeaseGivesWay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli()-1)
		r := newReceiver(t, status(http.StatusOK))
		w := newWorld(t, s, r.URL)
		var gave atomic.Int64
		w.GiveWay = func(_ context.Context, most time.Duration) {
			if most <= 0 || most > 50*time.Millisecond || gave.Add(1) == 1 && len(r.requests()) > 0 {
				t.Errorf("it gives way for %v after %d posts", most, len(r.requests()))
			}
		}
		w.start(t)
		if o := w.outcome(t); o.Status != webhooks.Delivered || gave.Load() == 0 {
			t.Errorf("outcome %v after giving way %d times", o.Status, gave.Load())
		}
	})
}

// TestStopReleasesLateLeases checks that a stopping worker waits for its lease request, and releases the leases.
func TestStopReleasesLateLeases(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		r := newReceiver(t, status(http.StatusOK))
		f, release := startWithSlowLeases(t, s, r.URL)
		stopped := make(chan error, 1)
		go func() { stopped <- f.stop() }()
		release()
		expect.OK(t, receive(t, stopped, "the worker's end"))
		if len(r.requests()) == 2 { // unless the worker had the leases before it stopped
			if d := leaseOne(t, s, "next", epoch, epoch.Add(time.Second)); d.MerchantID != "slow" {
				t.Errorf("leased a delivery of %s, want slow's", d.MerchantID)
			}
		}
	})
}

// TestBackoffFromQueueInFlightElsewhere checks that a worker backs off from a queue after the merchant reached its
// limit in flight at another worker.
func TestBackoffFromQueueInFlightElsewhere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-2)
		leaseOne(t, s, "elsewhere", epoch, epoch.Add(time.Minute))
		w := newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
		leases := new(atomic.Int64)
		w.Store = countingStore{w.store, leases}
		w.start(t)
		const others = 20
		now := epoch
		for i := range others {
			dbtest.Schedule(t, s, "other", i, 1, epoch.UnixMilli())
			w.advance(now)
			var o outcome
			select {
			case o = <-w.store.outcomes:
			case <-time.After(patience / 10): // an earlier request did not find "other", and the clock does not advance
				now = now.Add(time.Second)
				w.advance(now)
				o = w.outcome(t)
			}
			if o.Delivery.MerchantID != "other" {
				t.Fatalf("outcome of %s", o.Delivery.MerchantID)
			}
		}
		if n := leases.Load(); n > 2*others {
			t.Errorf("%d requests for leases while %d events were delivered", n, others)
		}
	})
}
