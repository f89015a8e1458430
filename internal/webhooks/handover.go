package webhooks

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxHandover is how many leased events may be on their way to the worker.
const maxHandover = 64

// handover passes events from the transactions that insert them to the worker of the same process. The insert writes
// the lease, so that an event is posted without another statement if its endpoint is healthy and has no waiting
// deliveries. If the process ends in between, the delivery becomes due when its lease ends.
//
// room and free are estimates: the worker releases a lease that it cannot use.
type handover struct {
	mu      sync.Mutex
	leaseID string         // empty while the worker does not lease
	before  time.Time      // leases must end before it
	room    int            // how many more deliveries may be leased
	free    map[string]int // the same, by merchant
}

// LeaseEvents marks as leased to this worker the events with deliveries that the worker can attempt immediately. It is called
// in the transaction that inserts the events, before the insert.
func (w *Worker) LeaseEvents(events []Event) {
	h := &w.handover
	until := w.conf.Schedule().Add(w.conf.Limits.Lease)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leaseID == "" || until.After(h.before) {
		return
	}
	for i := range events {
		e := &events[i]
		if h.room > 0 && h.free[e.MerchantID] > 0 && e.DeliveryID != "" {
			h.room--
			h.free[e.MerchantID]--
			e.LeaseID, e.LeaseUntil = h.leaseID, until
		}
	}
}

// Committed passes events to the worker after their transaction.
func (w *Worker) Committed(events []Event) {
	w.inbox.put(func(m *mail) {
		for _, e := range events {
			if e.Seq == 0 || e.DeliveryID == "" {
				continue
			}
			if e.LeaseID == "" {
				e.Body = nil // the body is read when the delivery is leased
			}
			m.fresh = append(m.fresh, e)
		}
	})
}

// open allows events to be leased until a time, with an id.
func (h *handover) open(leaseID string, before time.Time, room int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaseID, h.before, h.room = leaseID, before, room
}

// setFree sets how many deliveries of a merchant may be leased.
func (h *handover) setFree(merchantID string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n == 0 {
		delete(h.free, merchantID)
	} else {
		h.free[merchantID] = n
	}
}

// takeFresh starts the attempts of fresh events that are leased, and adds the
// others to the queues.
func (r *run) takeFresh(fresh []Event, now time.Time) error {
	var leased []string
	for _, e := range fresh {
		if e.LeaseID != "" {
			leased = append(leased, e.MerchantID)
		}
	}
	slices.Sort(leased)
	endpoints, err := r.endpointsOf(slices.Compact(leased))
	for _, e := range fresh {
		to, reachable := endpoints[e.MerchantID]
		inTime := e.LeaseUntil.Sub(now) > r.conf.Limits.Lease/2 // the commit may have taken long
		if e.LeaseID != "" && inTime && reachable && r.mayStart(e.MerchantID, now) {
			d := Delivery{
				ID: e.DeliveryID, Seq: e.Seq, EventID: e.ID, MerchantID: e.MerchantID, EventType: string(e.Type), Body: e.Body,
				Due: e.Due, Deadline: e.Due.Add(RetryWindow),
			}
			r.start(r.lanes[first], job{d, e.LeaseID, e.LeaseUntil, to}, now)
		} else {
			r.giveBack(e.LeaseID, e.Seq)
			r.schedule.add(first, Queue{MerchantID: e.MerchantID, Head: e.Due, HeadSeq: e.Seq})
		}
		r.place(e.MerchantID, now)
	}
	return err
}

func (r *run) endpointsOf(merchantIDs []string) (map[string]Endpoint, error) {
	if len(merchantIDs) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	return r.conf.Endpoints(ctx, merchantIDs)
}

// mayStart reports whether a fresh event may be posted before the waiting ones.
func (r *run) mayStart(merchantID string, now time.Time) bool {
	room, _ := r.lanes[first].room(now)
	return room > 0 && r.freeOf(merchantID, now) > 0 &&
		!r.limiter.paused(time.Now()) && r.limiter.room(len(r.attempts), r.conf.Limits.slots(), time.Now()) > 0
}

// freeOf returns how many fresh deliveries of a merchant may be posted immediately: 0 unless its endpoint is healthy
// and has no waiting deliveries.
func (r *run) freeOf(merchantID string, now time.Time) int {
	m := r.schedule.merchant(merchantID)
	if !m.breaker.Healthy || m.breaker.Until.After(now) || m.backoffUntil.After(now) || m.leasing || m.unreachable {
		return 0
	}
	if m.queues[first].holdsDue(now) || m.queues[retry].holdsDue(now) {
		return 0
	}
	return max(0, m.allowed(r.conf.Limits.PerMerchant)-len(m.inFlight))
}

// openHandover allows events to be leased, unless other deliveries wait for slots.
func (r *run) openHandover(now time.Time, starved bool) {
	room, _ := r.lanes[first].room(now)
	if starved {
		room = 0
	}
	r.handover.open(r.id, r.registeredUntil, max(0, min(room, maxHandover)))
}
