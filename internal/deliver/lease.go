package deliver

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// fillLane asks for each queue of the lane that is due once, as far as there
// is room. It reports whether to go on at once, after a look at what is new:
// with doubtful endpoints beyond the first few.
func (r *run) fillLane(l *lane, now time.Time) (more bool, err error) {
	for m, ok := l.roster.woken(now.UnixMilli()); ok; m, ok = l.roster.woken(now.UnixMilli()) {
		r.place(m, now.UnixMilli())
	}
	asked := make(map[string]bool)
	gently := atOnce
	for {
		steady, doubtful := l.room(now)
		left := r.brake.room(len(r.flights), r.slots(), time.Now())
		steady = max(0, min(steady, left))
		doubtful = max(0, min(doubtful, (left+1)/2)) // beyond it, if need be: neither kind starves the other
		turns, more := l.roster.turns(steady, min(doubtful, gently), asked)
		if len(turns) == 0 {
			return more && gently == 0 && doubtful > 0, nil
		}
		started, err := r.lease(l, turns, steady, min(doubtful, gently), now)
		if err != nil {
			return false, err
		}
		gently -= started
	}
}

// slots is how many attempts may be under way.
func (r *run) slots() int { return cap(r.finished) }

// lease leases from queues and starts what it got. It returns how many of the
// exchanges are with doubtful endpoints.
func (r *run) lease(l *lane, turns []delivery.Queue, steady, doubtful int, now time.Time) (started int, err error) {
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	turns, endpoints, err := r.reachable(ctx, turns, now)
	if err != nil || len(turns) == 0 {
		return 0, err
	}
	until := now.Add(r.Limits.Lease)
	leaseID := r.ids.New("lse_")
	leased, err := r.Store.LeaseDeliveries(ctx, delivery.LeaseRequest{
		LeaseID: leaseID, NowMS: now.UnixMilli(), UntilMS: until.UnixMilli(), Lane: l.name, Queues: turns,
		Worker: r.id, InFlight: r.busy(turns), Healthy: steady, Suspect: doubtful, PerMerchant: r.Limits.PerMerchant,
	})
	if err != nil {
		return 0, err
	}
	for _, q := range leased.Queues {
		delete(l.ending, q.MerchantID)
		l.roster.set(q.Queue)
		r.learned(q.MerchantID, q.Breaker)
	}
	for _, d := range leased.Deliveries {
		if d.Suspect {
			started++
		}
		r.begin(l, job{d, leaseID, until, endpoints[d.MerchantID]}, now)
	}
	for _, q := range turns {
		m := r.know(q.MerchantID)
		if head, ok := l.roster.heads[q.MerchantID]; ok && head.HeadMS <= now.UnixMilli() && len(m.busy) == 0 {
			m.restedMS = now.Add(elsewhere).UnixMilli() // others serve it, or have it full
		}
		r.place(q.MerchantID, now.UnixMilli())
	}
	return started, nil
}

// busy returns what is under way of the merchants.
func (r *run) busy(turns []delivery.Queue) map[string][]int64 {
	busy := make(map[string][]int64)
	for _, t := range turns {
		if seqs := r.know(t.MerchantID).busy; len(seqs) > 0 {
			busy[t.MerchantID] = seqs
		}
	}
	return busy
}
