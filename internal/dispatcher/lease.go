package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/wait"
)

// leaseRest is how long a lease request lets waiting creates go first.
const leaseRest = 10 * time.Millisecond

// leaseRequest is a request for leases from queues of one lane, to healthy or to
// suspect endpoints. It runs in the background, so that fresh events do not wait
// for it. A merchant is part of one request at a time.
type leaseRequest struct {
	delivery.LeaseRequest
	lane      *lane
	healthy   bool
	endpoints map[string]poster.Endpoint
	leased    delivery.Leased
	err       error
}

// fillLane requests leases from the lane's due queues, as far as there is room.
func (r *run) fillLane(ctx context.Context, l *lane, now time.Time) {
	for m, ok := l.cache.fired(now); ok; m, ok = l.cache.fired(now) {
		r.place(m, now)
	}
	healthy, suspect := l.room(now)
	left := r.limiter.room(len(r.attempts), r.slots(), time.Now())
	r.requestLeases(ctx, l, true, min(healthy, left), now)
	r.requestLeases(ctx, l, false, min(suspect, (left+1)/2), now) // may exceed the rest by one, so that neither kind starves the other
}

// slots is the maximum number of attempts in flight.
func (r *run) slots() int { return cap(r.finished) }

// requestLeases starts a request, unless one of the lane and kind is running or no queue is due.
func (r *run) requestLeases(ctx context.Context, l *lane, healthy bool, room int, now time.Time) {
	if l.leasing[healthy] > 0 {
		return
	}
	queues := l.cache.turns(healthy, room)
	if len(queues) == 0 {
		return
	}
	limit, inFlight := 0, make(map[string][]int64)
	for _, queue := range queues {
		m := r.merchant(queue.MerchantID)
		m.leasing = true
		limit += m.allowed(r.conf.Limits.PerMerchant) - len(m.inFlight)
		if len(m.inFlight) > 0 {
			inFlight[queue.MerchantID] = slices.Clone(m.inFlight)
		}
		r.place(queue.MerchantID, now)
	}
	q := &leaseRequest{lane: l, healthy: healthy, LeaseRequest: delivery.LeaseRequest{
		LeaseID: r.ids.New("lse_"), Now: now, Until: now.Add(r.conf.Limits.Lease), Lane: l.name,
		Queues: queues, InFlight: inFlight, PerMerchant: r.conf.Limits.PerMerchant,
	}}
	l.leasing[healthy] = min(limit, room)
	if healthy {
		q.Healthy = l.leasing[true]
	} else {
		q.Suspect = l.leasing[false]
	}
	r.leasing++
	go func() {
		if q.err = r.lease(q); q.err != nil {
			wait.Sleep(ctx, r.conf.Limits.Poll, nil)
		}
		r.leases <- q
	}()
}

// lease carries out a request.
func (r *run) lease(q *leaseRequest) error {
	task := r.conf.Watchdog.Begin("deliveries: lease")
	defer task.End()
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	ids := make([]string, len(q.Queues))
	for i, queue := range q.Queues {
		ids[i] = queue.MerchantID
	}
	r.conf.GiveWay(ctx, leaseRest)
	var err error
	if q.endpoints, err = r.conf.Endpoints(ctx, ids); err != nil {
		return fmt.Errorf("look up webhook endpoints: %w", err)
	}
	reachable := q.LeaseRequest
	reachable.Queues = slices.DeleteFunc(slices.Clone(q.Queues), func(queue delivery.Queue) bool {
		_, ok := q.endpoints[queue.MerchantID]
		return !ok
	})
	if len(reachable.Queues) > 0 {
		q.leased, err = r.conf.Store.LeaseDeliveries(ctx, reachable)
	}
	return err
}

// applyLeases starts the attempts that a request leased.
func (r *run) applyLeases(q *leaseRequest) {
	for _, queue := range q.leased.Queues {
		q.lane.cache.answered(queue.Queue)
		r.setBreaker(queue.MerchantID, queue.Breaker)
	}
	r.endRequest(q)
	if q.err != nil {
		r.conf.Logger.ErrorContext(r.work, "lease of deliveries failed, will retry", "err", q.err)
	} else {
		r.noteUnreachable(q)
	}
	now := r.conf.Schedule()
	leased := make(map[string]bool)
	for _, d := range q.leased.Deliveries {
		leased[d.MerchantID] = true
		r.start(q.lane, job{d, q.LeaseID, q.Until, q.endpoints[d.MerchantID]}, now)
	}
	for _, queue := range q.Queues {
		m := r.merchant(queue.MerchantID)
		if head, ok := q.lane.cache.heads[queue.MerchantID]; q.err == nil && !leased[queue.MerchantID] && ok && !head.Head.After(q.Now) {
			m.backoffUntil = q.Now.Add(servedElsewhere) // other workers serve it, or have all its allowed attempts in flight
		}
		r.place(queue.MerchantID, now)
	}
}

// endRequest allows the queues of a request to be asked again.
func (r *run) endRequest(q *leaseRequest) {
	r.leasing--
	q.lane.leasing[q.healthy] = 0
	for _, queue := range q.Queues {
		r.merchant(queue.MerchantID).leasing = false
		delete(q.lane.cache.asked, queue.MerchantID)
	}
}

// noteUnreachable records which merchants of a request have no endpoint. They are not asked again until they have one:
// their deliveries wait and are not attempted.
func (r *run) noteUnreachable(q *leaseRequest) {
	if len(q.endpoints) == len(q.Queues) {
		return
	}
	for _, queue := range q.Queues {
		if _, ok := q.endpoints[queue.MerchantID]; !ok {
			r.setUnreachable(queue.MerchantID, true)
		}
	}
	merchants := len(r.waiting)
	r.log.add("unreachable", func(int) {
		r.conf.Logger.InfoContext(r.work, "events wait, since their merchants have no webhook endpoint", "merchants", merchants)
	})
}
