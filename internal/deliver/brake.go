package deliver

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
)

const (
	// brakePause is how long nothing begins after a shortage of our own.
	brakePause = time.Second
	// putBackRest is how long a merchant's queues rest whose delivery was put
	// back.
	putBackRest = time.Second
)

// brake bounds how many attempts are under way after a shortage of our own: half
// as many as there were, and twice as many with each second that passes without
// another.
type brake struct {
	most   int       // 0 for no bound
	raised time.Time // when most was changed last
	until  time.Time // until when nothing begins
}

// pull notes a shortage while so many attempts were under way.
func (b *brake) pull(underWay int, now time.Time) {
	if now.Before(b.until) {
		return // of those that began together
	}
	b.most, b.raised, b.until = max(1, underWay/2), now, now.Add(brakePause)
}

// room returns how many more may begin while so many are under way, of slots
// in all.
func (b *brake) room(underWay, slots int, now time.Time) int {
	for ; b.most > 0 && now.Sub(b.raised) >= brakePause; b.raised = b.raised.Add(brakePause) {
		if b.most *= 2; b.most >= slots {
			b.most = 0
		}
	}
	if b.most == 0 {
		return slots
	}
	return max(0, b.most-underWay)
}

// holds reports whether nothing may begin yet.
func (b *brake) holds(now time.Time) bool { return now.Before(b.until) }

// putBack takes in an attempt that failed for a reason of our own. Nothing is
// counted against its endpoint, and the delivery is given back.
func (r *run) putBack(f finished) {
	d := f.outcome.Delivery
	r.returned[f.outcome.LeaseID] = append(r.returned[f.outcome.LeaseID], d.Seq)
	lane := r.lanes[0]
	if d.Attempts > 0 {
		lane = r.lanes[1]
	}
	lane.roster.add(delivery.Queue{MerchantID: d.MerchantID, HeadMS: d.DueMS, HeadSeq: d.Seq})
	r.know(d.MerchantID).restedMS = r.Schedule().Add(putBackRest).UnixMilli()
	r.Metrics.putBack.Inc()
	if f.fault == poster.FaultShortage {
		r.brake.pull(len(r.flights), time.Now())
	}
}

// giveBack gives back what was put back. What cannot be given back falls due
// when its lease ends.
func (r *run) giveBack(ctx context.Context) {
	if len(r.returned) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	for leaseID, seqs := range r.returned {
		if _, err := r.Store.ReleaseDeliveries(ctx, leaseID, seqs); err != nil {
			r.Logger.ErrorContext(ctx, "webhook deliveries cannot be given back; they fall due when their leases end", "error", err)
			break
		}
	}
	clear(r.returned)
}
