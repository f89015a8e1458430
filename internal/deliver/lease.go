package deliver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/wait"
)

// leaseRequest is a request for leases from queues of one lane, to healthy or to
// suspect endpoints. It runs in the background, so that fresh events do not wait
// for it. A merchant is part of one request at a time.
type leaseRequest struct {
	lane      *lane
	healthy   bool
	leaseID   string
	now       time.Time
	until     time.Time // when the leases end
	limit     int
	queues    []delivery.Queue
	inFlight  map[string][]int64 // of this worker, by merchant
	endpoints map[string]poster.Endpoint
	leased    delivery.Leased
	err       error
}

// fillLane requests leases from the lane's queues that are due, as far as there is
// room.
func (r *run) fillLane(ctx context.Context, l *lane, now time.Time) {
	for m, ok := l.cache.fired(now); ok; m, ok = l.cache.fired(now) {
		r.place(m, now)
	}
	healthy, suspect := l.room(now)
	left := r.limiter.room(len(r.attempts), r.slots(), time.Now())
	r.requestLeases(ctx, l, true, min(healthy, left), now)
	r.requestLeases(ctx, l, false, min(suspect, (left+1)/2), now) // may exceed left by one, so that neither kind starves the other
}

// slots is how many attempts may be in flight.
func (r *run) slots() int { return cap(r.finished) }

// requestLeases begins a request, unless one of the lane and kind is under way or
// nothing is due.
func (r *run) requestLeases(ctx context.Context, l *lane, healthy bool, room int, now time.Time) {
	if l.leasing[healthy] > 0 {
		return
	}
	queues := l.cache.turns(healthy, room)
	if len(queues) == 0 {
		return
	}
	q := &leaseRequest{
		lane: l, healthy: healthy, leaseID: r.ids.New("lse_"), now: now, until: now.Add(r.conf.Limits.Lease),
		queues: queues, inFlight: make(map[string][]int64),
	}
	for _, queue := range queues {
		m := r.merchant(queue.MerchantID)
		m.leasing = true
		q.limit += m.allowed(r.conf.Limits.PerMerchant) - len(m.inFlight)
		if len(m.inFlight) > 0 {
			q.inFlight[queue.MerchantID] = slices.Clone(m.inFlight)
		}
		r.place(queue.MerchantID, now)
	}
	q.limit = min(q.limit, room)
	l.leasing[healthy] = q.limit
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
	ids := make([]string, len(q.queues))
	for i, queue := range q.queues {
		ids[i] = queue.MerchantID
	}
	var err error
	if q.endpoints, err = r.conf.Endpoints(ctx, ids); err != nil {
		return fmt.Errorf("look up webhook endpoints: %w", err)
	}
	request := delivery.LeaseRequest{
		LeaseID: q.leaseID, Now: q.now, Until: q.until, Lane: q.lane.name,
		InFlight: q.inFlight, PerMerchant: r.conf.Limits.PerMerchant,
	}
	for _, queue := range q.queues {
		if _, ok := q.endpoints[queue.MerchantID]; ok {
			request.Queues = append(request.Queues, queue)
		}
	}
	if len(request.Queues) == 0 {
		return nil
	}
	if q.healthy {
		request.Healthy = q.limit
	} else {
		request.Suspect = q.limit
	}
	q.leased, err = r.conf.Store.LeaseDeliveries(ctx, request)
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
		r.start(q.lane, job{d, q.leaseID, q.until, q.endpoints[d.MerchantID]}, now)
	}
	for _, queue := range q.queues {
		m := r.merchant(queue.MerchantID)
		if head, ok := q.lane.cache.heads[queue.MerchantID]; q.err == nil && !leased[queue.MerchantID] && ok && !head.Head.After(q.now) {
			m.backoffUntil = q.now.Add(servedElsewhere) // other workers serve it, or have all it allows in flight
		}
		r.place(queue.MerchantID, now)
	}
}

// endRequest lets the queues of a request be asked again.
func (r *run) endRequest(q *leaseRequest) {
	r.leasing--
	q.lane.leasing[q.healthy] = 0
	for _, queue := range q.queues {
		r.merchant(queue.MerchantID).leasing = false
		delete(q.lane.cache.asked, queue.MerchantID)
	}
}

// noteUnreachable notes which merchants of a request have no endpoint. They are not
// asked again until there is one: their deliveries wait and are not attempted.
func (r *run) noteUnreachable(q *leaseRequest) {
	if len(q.endpoints) == len(q.queues) {
		return
	}
	for _, queue := range q.queues {
		if _, ok := q.endpoints[queue.MerchantID]; !ok {
			r.setUnreachable(queue.MerchantID, true)
		}
	}
	merchants := len(r.waiting)
	r.log.add("unreachable", func(int) {
		r.conf.Logger.InfoContext(r.work, "events wait, since their merchants have no webhook endpoint", "merchants", merchants)
	})
}
