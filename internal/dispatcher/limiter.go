package dispatcher

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
)

const (
	// limiterPause is how long nothing begins after a shortage.
	limiterPause = time.Second
	// putBackBackoff is how long the queues of a merchant are left alone after one
	// of its deliveries was put back.
	putBackBackoff = time.Second
)

// limiter limits how many attempts are in flight after this process ran out of
// a resource: to half as many as there were, and then to twice as many with
// each second without another shortage.
type limiter struct {
	limit  int       // 0 for none
	raised time.Time // when limit was changed last
	until  time.Time // until when nothing begins
}

// backOff notes a shortage while a number of attempts were in flight.
func (l *limiter) backOff(inFlight int, now time.Time) {
	if now.Before(l.until) {
		return // of those that began together
	}
	l.limit, l.raised, l.until = max(1, inFlight/2), now, now.Add(limiterPause)
}

// room returns how many more attempts may begin while a number are in flight.
// There are slots in all.
func (l *limiter) room(inFlight, slots int, now time.Time) int {
	for ; l.limit > 0 && now.Sub(l.raised) >= limiterPause; l.raised = l.raised.Add(limiterPause) {
		if l.limit *= 2; l.limit >= slots {
			l.limit = 0
		}
	}
	if l.limit == 0 {
		return slots
	}
	return max(0, l.limit-inFlight)
}

// paused reports whether nothing may begin yet.
func (l *limiter) paused(now time.Time) bool { return now.Before(l.until) }

// putBack takes in an attempt that failed through this process's own fault.
// Nothing is counted against the endpoint, and the lease is released.
func (r *run) putBack(f finished) {
	d := f.outcome.Delivery
	r.returned[f.outcome.LeaseID] = append(r.returned[f.outcome.LeaseID], d.Seq)
	lane := r.lanes[0]
	if d.Attempts > 0 {
		lane = r.lanes[1]
	}
	lane.cache.add(delivery.Queue{MerchantID: d.MerchantID, Head: d.Due, HeadSeq: d.Seq})
	r.merchant(d.MerchantID).backoffUntil = r.conf.Schedule().Add(putBackBackoff)
	r.conf.Metrics.putBack.Inc()
	if f.fault == poster.FaultShortage {
		r.limiter.backOff(len(r.attempts), time.Now())
	}
}

// releaseReturned releases the leases on deliveries that were put back. If that
// fails, they fall due when their leases end.
func (r *run) releaseReturned(ctx context.Context) {
	if len(r.returned) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	for leaseID, seqs := range r.returned {
		if _, err := r.conf.Store.ReleaseDeliveries(ctx, leaseID, seqs, r.conf.Schedule()); err != nil {
			r.conf.Logger.ErrorContext(ctx, "release of webhook deliveries failed, they fall due when their leases end", "err", err)
			break
		}
	}
	clear(r.returned)
}
