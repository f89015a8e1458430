package webhooks

import (
	"maps"
	"slices"
	"time"
)

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
