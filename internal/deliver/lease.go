package deliver

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// fillLane asks once for each queue of the lane that is due, as far as there is
// room.
func (r *run) fillLane(l *lane, now time.Time) error {
	for m, ok := l.cache.fired(now.UnixMilli()); ok; m, ok = l.cache.fired(now.UnixMilli()) {
		r.place(m, now.UnixMilli())
	}
	asked := make(map[string]bool)
	for {
		healthy, suspect := l.room(now)
		left := r.limiter.room(len(r.attempts), r.slots(), time.Now())
		healthy = max(0, min(healthy, left))
		suspect = max(0, min(suspect, (left+1)/2)) // may exceed left by one, so that neither kind starves the other
		turns := l.cache.turns(healthy, suspect, asked)
		if len(turns) == 0 {
			return nil
		}
		if err := r.lease(l, turns, healthy, suspect, now); err != nil {
			return err
		}
	}
}

// slots is how many attempts may be in flight.
func (r *run) slots() int { return cap(r.finished) }

// lease leases from queues and starts the attempts.
func (r *run) lease(l *lane, turns []delivery.Queue, healthy, suspect int, now time.Time) error {
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	turns, endpoints, err := r.reachable(ctx, turns, now)
	if err != nil || len(turns) == 0 {
		return err
	}
	until := now.Add(r.Limits.Lease)
	leaseID := r.ids.New("lse_")
	leased, err := r.Store.LeaseDeliveries(ctx, delivery.LeaseRequest{
		LeaseID: leaseID, NowMS: now.UnixMilli(), UntilMS: until.UnixMilli(), Lane: l.name, Queues: turns,
		Worker: r.id, InFlight: r.inFlight(turns), Healthy: healthy, Suspect: suspect, PerMerchant: r.Limits.PerMerchant,
	})
	if err != nil {
		return err
	}
	for _, q := range leased.Queues {
		l.cache.set(q.Queue)
		r.setBreaker(q.MerchantID, q.Breaker)
	}
	for _, d := range leased.Deliveries {
		r.start(l, job{d, leaseID, until, endpoints[d.MerchantID]}, now)
	}
	for _, q := range turns {
		m := r.merchant(q.MerchantID)
		if head, ok := l.cache.heads[q.MerchantID]; ok && head.HeadMS <= now.UnixMilli() && len(m.inFlight) == 0 {
			m.backoffUntilMS = now.Add(servedElsewhere).UnixMilli() // other workers serve it, or have all it allows in flight
		}
		r.place(q.MerchantID, now.UnixMilli())
	}
	return nil
}

// inFlight returns what this worker has in flight of the merchants.
func (r *run) inFlight(turns []delivery.Queue) map[string][]int64 {
	inFlight := make(map[string][]int64)
	for _, t := range turns {
		if seqs := r.merchant(t.MerchantID).inFlight; len(seqs) > 0 {
			inFlight[t.MerchantID] = seqs
		}
	}
	return inFlight
}
