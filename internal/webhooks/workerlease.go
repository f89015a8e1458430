package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// leaseRest is how long a lease request lets waiting creates go first.
const leaseRest = 10 * time.Millisecond

// leaseRequest is a request for leases from queues of healthy or of suspect endpoints. It runs in the background, one
// of each kind at a time. A merchant is part of one request at a time.
type leaseRequest struct {
	LeaseRequest
	kind      kind
	endpoints map[string]Endpoint
	leased    Leased
	err       error
}

// slots returns how many slots the request may fill; a nil request fills no slot.
func (q *leaseRequest) slots() int {
	if q == nil {
		return 0
	}
	return q.Healthy + q.Suspect
}

// fillSlots requests leases from due queues, as far as there is room.
func (r *run) fillSlots(ctx context.Context, now time.Time) {
	forHealthy, forSuspect := r.slots.room(now)
	left := r.limiter.room(len(r.attempts), r.conf.Limits.slots(), time.Now())
	r.requestLeases(ctx, healthy, min(forHealthy, left), now)
	// It may exceed the rest by one, so that neither kind starves the other.
	r.requestLeases(ctx, suspect, min(forSuspect, (left+1)/2), now)
}

// requestLeases starts a request, unless one of the kind is running or no queue is due.
func (r *run) requestLeases(ctx context.Context, k kind, room int, now time.Time) {
	if r.slots.requests[k] != nil {
		return
	}
	queues := r.schedule.take(k, room, now)
	if len(queues) == 0 {
		return
	}
	limit, inFlight := 0, make(map[string][]int64)
	for _, queue := range queues {
		m := r.schedule.merchant(queue.MerchantID)
		limit += m.allowed(r.conf.Limits.PerMerchant) - len(m.inFlight)
		if len(m.inFlight) > 0 {
			inFlight[queue.MerchantID] = slices.Clone(m.inFlight)
		}
		r.place(queue.MerchantID, now)
	}
	q := &leaseRequest{kind: k, LeaseRequest: LeaseRequest{
		LeaseID: r.ids.New("lse_"), Now: now, Until: now.Add(r.conf.Limits.Lease),
		Queues: queues, InFlight: inFlight, PerMerchant: r.conf.Limits.PerMerchant,
	}}
	if k == healthy {
		q.Healthy = min(limit, room)
	} else {
		q.Suspect = min(limit, room)
	}
	r.slots.requests[k] = q
	go func() {
		if q.err = r.lease(q); q.err != nil {
			clock.Sleep(ctx, r.conf.Limits.Poll, nil)
		}
		r.inbox.put(func(m *mail) { m.leases = append(m.leases, q) })
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
	reachable.Queues = slices.DeleteFunc(slices.Clone(q.Queues), func(queue Queue) bool {
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
		r.start(job{d, q.LeaseID, q.Until, q.endpoints[d.MerchantID]}, now)
	}
	for _, queue := range q.Queues {
		m := r.schedule.merchant(queue.MerchantID)
		if q.err == nil && !leased[queue.MerchantID] && m.holdsDue(q.Now) {
			m.backoffUntil = q.Now.Add(servedElsewhere) // other workers serve it, or have all its allowed attempts in flight
		}
		r.place(queue.MerchantID, now)
	}
}

// endRequest returns the queues of a request to the schedule.
func (r *run) endRequest(q *leaseRequest) {
	r.slots.requests[q.kind] = nil
	for _, queue := range q.leased.Queues {
		r.schedule.putBack(queue.Queue)
		r.setBreaker(queue.MerchantID, queue.Breaker)
	}
	for _, queue := range q.Queues {
		if r.schedule.merchant(queue.MerchantID).leasing { // it was not looked at
			r.schedule.putBack(queue)
		}
	}
}

// running returns the lease requests that are running.
func (r *run) running() (requests []*leaseRequest) {
	for _, q := range r.slots.requests {
		if q != nil {
			requests = append(requests, q)
		}
	}
	return requests
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

// giveBack marks a lease that this worker does not use to be released.
func (r *run) giveBack(leaseID string, seq int64) {
	r.returned[leaseID] = append(r.returned[leaseID], seq)
}

// release releases the leases that were given back, and returns how many. If that fails, the deliveries become due when
// the leases end.
func (r *run) release(ctx context.Context) (released int64, err error) {
	if len(r.returned) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var errs []error
	for leaseID, seqs := range r.returned {
		n, err := r.conf.Store.ReleaseDeliveries(ctx, leaseID, seqs, r.conf.Schedule())
		released, errs = released+n, append(errs, err)
	}
	clear(r.returned)
	return released, errors.Join(errs...)
}

// slots are the worker's parallel attempts. Healthy endpoints have slots of their own, which suspect ones cannot fill,
// so that no healthy endpoint waits for endpoints that are dead or slow.
type slots struct {
	healthy int // slots
	suspect int // slots
	// suspectAttempts counts the attempts in flight to suspect endpoints.
	suspectAttempts int
	// attempts holds the attempts in flight to healthy endpoints, with their start times.
	attempts map[*sending]time.Time
	requests [full]*leaseRequest // those that are running, for healthy and for suspect endpoints; nil for no request
}

func newSlots(healthy, suspect int) *slots {
	return &slots{healthy: healthy, suspect: suspect, attempts: make(map[*sending]time.Time)}
}

// slowAfter is how long an exchange with a healthy endpoint may take before it moves to a suspect slot, if one is free:
// an endpoint that stops answering must not occupy a healthy slot until its time limit.
const slowAfter = time.Second

// room returns how many more attempts may begin, to healthy and to suspect endpoints.
func (s *slots) room(now time.Time) (forHealthy, forSuspect int) {
	forSuspect = s.suspect - s.suspectAttempts - s.requests[suspect].slots()
	slow := 0
	for _, started := range s.attempts {
		if now.Sub(started) >= slowAfter {
			slow++
		}
	}
	moved := min(slow, max(0, forSuspect))
	return s.healthy - len(s.attempts) - s.requests[healthy].slots() + moved, forSuspect - moved
}
