package webhooks

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

const (
	// resyncEvery is the longest time between two resyncs.
	resyncEvery = 5 * time.Second
	// resyncPause is the shortest time between the begins of two resyncs: each reads all queues.
	resyncPause = 250 * time.Millisecond
	// registration is how long a worker counts as running after it registered.
	registration = time.Minute
	// expireEvery is the shortest time between two runs of expiring, unless the first left some deliveries.
	expireEvery = time.Minute
	// MaxKnown is how many merchants without a queue a worker remembers.
	MaxKnown = 65_536
	// expireMerchants is how many merchants' deliveries one transaction expires, and expireBatch is the maximum number
	// of deliveries, because other work waits for it. After expireBatches transactions the rest is left to the next
	// resync.
	expireMerchants = 64
	expireBatch     = 256
	expireBatches   = 64
)

// snapshot is the result of a resync.
type snapshot struct {
	number   int // number of the resync
	queues   []Queue
	breakers map[string]Breaker // of the queues' merchants
	counts   map[BreakerState]int64
	reached  map[string]Endpoint // of merchants that had no endpoint
	err      error
}

// resyncer reads all queues in the background, one resync at a time. It takes long while a long snapshot is open on
// PostgreSQL. Expiring runs in the background, too, and apart from resyncs, which must not wait for it.
type resyncer struct {
	count             int       // number of resyncs begun
	began             time.Time // when the last one began, by time.Now
	asked             bool      // another one must begin, resyncPause after it
	reading, expiring periodic
	group             sync.WaitGroup
}

// periodic is background work that is repeated.
type periodic struct {
	running bool
	next    time.Time // when it must begin again
}

func (p *periodic) due(now time.Time) bool { return !p.running && !now.Before(p.next) }

func (p *periodic) begin(now time.Time, every time.Duration) {
	p.running, p.next = true, now.Add(every)
}

// end records that the work ended. If there is more, it begins again immediately.
func (p *periodic) end(more bool) {
	p.running = false
	if more {
		p.next = time.Time{}
	}
}

// wait waits for the background work until the context ends, and reports whether all of it has ended.
func (s *resyncer) wait(ctx context.Context) bool {
	over := make(chan struct{})
	go func() {
		s.group.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// refresh starts a resync when one is due, or when the worker was woken because a delivery is to be sent again or an
// endpoint was set.
func (r *run) refresh(now time.Time, woken bool) {
	r.resync.asked = r.resync.asked || woken // a running resync may have passed the change
	if r.resync.asked && time.Since(r.resync.began) >= resyncPause {
		r.resync.reading.next = time.Time{}
	}
	if !r.resync.reading.due(now) {
		return
	}
	r.resync.reading.begin(now, resyncEvery)
	r.resync.began, r.resync.asked = time.Now(), false
	r.resync.count++
	number, waiting := r.resync.count, r.waitingSample()
	r.resync.group.Go(func() {
		task := r.conf.Watchdog.Begin("deliveries: resync")
		defer task.End()
		ctx, cancel := context.WithTimeout(r.work, resyncTimeout)
		defer cancel()
		found := r.readSchedule(ctx, number, waiting)
		if found.err != nil {
			clock.Sleep(r.work, r.conf.Limits.Poll, nil)
		}
		r.inbox.put(func(m *mail) { m.resyncs = append(m.resyncs, found) })
	})
}

// readSchedule registers the worker, and reads all queues, their breakers, and the endpoints of merchants that had no
// endpoint.
func (r *run) readSchedule(ctx context.Context, number int, waiting []string) (found snapshot) {
	found.number = number
	now := r.conf.Schedule()
	if found.err = r.conf.Store.RegisterWorker(ctx, r.id, r.conf.Configured, now, now.Add(registration)); found.err != nil {
		return found
	}
	if found.queues, found.err = r.conf.Store.Queues(ctx); found.err != nil {
		return found
	}
	merchants := make([]string, len(found.queues))
	for i, q := range found.queues {
		merchants[i] = q.MerchantID
	}
	if found.breakers, found.err = r.conf.Store.Breakers(ctx, merchants); found.err != nil {
		return found
	}
	if found.counts, found.err = r.conf.Store.BreakerCounts(ctx); found.err != nil || len(waiting) == 0 {
		return found
	}
	found.reached, found.err = r.conf.Endpoints(ctx, waiting)
	return found
}

// applySnapshot updates the schedule from a resync. If this worker read a breaker after the resync began, the worker's
// version is newer.
func (r *run) applySnapshot(found snapshot, now time.Time) {
	r.resync.reading.end(found.err != nil)
	if found.err != nil {
		if r.work.Err() == nil {
			r.conf.Logger.ErrorContext(r.work, "resync of the delivery queues failed, will retry", "err", found.err)
		}
		return
	}
	for id, b := range found.breakers {
		if m := r.schedule.merchant(id); m.resync < found.number {
			m.breaker = b
		}
	}
	for _, q := range found.queues {
		r.schedule.add(q)
	}
	for id := range found.breakers {
		r.place(id, now)
	}
	if len(r.schedule.merchants) > MaxKnown {
		r.schedule.forget()
	}
	r.reached(found.reached, now)
	r.dropWaiting(func(id string) bool { _, waits := found.breakers[id]; return waits }, now)
	r.conf.Metrics.observeBreakers(found.counts)
	r.beginExpiring(found.queues, now)
}

// beginExpiring starts to fail the deliveries that are past their deadlines, because no worker attempts them behind an
// open breaker.
func (r *run) beginExpiring(queues []Queue, now time.Time) {
	if !r.resync.expiring.due(now) {
		return
	}
	var late []string
	for _, q := range queues {
		if q.End.Before(now) {
			late = append(late, q.MerchantID)
		}
	}
	if late == nil {
		return
	}
	unreachable := maps.Clone(r.waiting)
	r.resync.expiring.begin(now, expireEvery)
	r.resync.group.Go(func() {
		task := r.conf.Watchdog.Begin("deliveries: expire")
		defer task.End()
		ctx, cancel := context.WithTimeout(r.work, resyncTimeout)
		defer cancel()
		more, err := r.expire(ctx, late, unreachable, now)
		if err != nil && r.work.Err() == nil {
			r.conf.Logger.ErrorContext(ctx, "expiry of webhook deliveries failed, will retry", "err", err)
		}
		r.inbox.put(func(m *mail) { m.expiries = append(m.expiries, more) })
	})
}

// expire fails deliveries that are past their deadlines, up to a number of batches, and reports whether there are more.
func (r *run) expire(ctx context.Context, merchantIDs []string, unreachable map[string]bool, now time.Time) (more bool, err error) {
	batches := expireBatches
	for part := range slices.Chunk(merchantIDs, expireMerchants) {
		request := OverdueRequest{Endpoints: r.conf.Configured, MerchantIDs: part, Unreachable: make(map[string]bool), Now: now, Limit: expireBatch}
		for _, id := range part {
			if unreachable[id] {
				request.Unreachable[id] = true
			}
		}
		for again := true; again; batches-- {
			if batches == 0 {
				return true, nil
			}
			var expired map[string]int
			if expired, again, err = r.conf.Store.FailOverdueDeliveries(ctx, request); err != nil {
				return false, err
			}
			for merchantID, n := range expired {
				r.reportExpired(merchantID, n, unreachable[merchantID])
			}
			again = again && len(expired) > 0 // without any, the rest is in flight
		}
	}
	return false, nil
}

func (r *run) reportExpired(merchantID string, n int, unreachable bool) {
	r.conf.Metrics.failed.Add(float64(n))
	why := "their deadlines passed while the endpoint was left alone"
	if unreachable {
		why = "the merchant has had no usable endpoint for 24 hours (none, or a secret that cannot be decrypted)"
	}
	r.log.addMany("expired:"+merchantID, n, func(count int) {
		r.conf.Logger.ErrorContext(r.work, "webhook deliveries failed", "reason", why, "merchant", merchantID, "deliveries", count)
	})
}

// maxWaiting is how many merchants without an endpoint one resync looks up.
const maxWaiting = 10_000

func (r *run) setUnreachable(merchantID string, is bool) {
	r.schedule.merchant(merchantID).unreachable = is
	if is {
		r.waiting[merchantID] = true
	} else {
		delete(r.waiting, merchantID)
	}
	r.conf.Metrics.waiting.Set(float64(len(r.waiting)))
}

// dropWaiting forgets the merchants without an endpoint of which no delivery waits any more.
func (r *run) dropWaiting(waits func(merchantID string) bool, now time.Time) {
	for id := range r.waiting {
		if !waits(id) {
			m := r.schedule.merchant(id)
			m.Queue = Queue{MerchantID: id}
			r.setUnreachable(id, false)
			r.place(id, now)
		}
	}
}

// waitingSample returns merchants without an endpoint, to look them up again.
func (r *run) waitingSample() []string {
	ids := slices.Collect(maps.Keys(r.waiting)) // in random order, so that each has its turn
	return ids[:min(len(ids), maxWaiting)]
}

// reached schedules the queues of merchants that have an endpoint now.
func (r *run) reached(found map[string]Endpoint, now time.Time) {
	for id := range found {
		r.setUnreachable(id, false)
		r.place(id, now)
	}
}
