package deliver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
)

// maxWaiting is how many merchants without an endpoint one resync looks up.
const maxWaiting = 10_000

// reachable returns those of the queues whose merchants have an endpoint, and
// the endpoints. The others are not asked again until there is one: their
// deliveries wait and are not attempted.
func (r *run) reachable(ctx context.Context, turns []delivery.Queue, now time.Time) ([]delivery.Queue, map[string]poster.Endpoint, error) {
	ids := make([]string, len(turns))
	for i, q := range turns {
		ids[i] = q.MerchantID
	}
	endpoints, err := r.Endpoints(ctx, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("look up webhook endpoints: %w", err)
	}
	var with []delivery.Queue
	for _, q := range turns {
		if _, ok := endpoints[q.MerchantID]; ok {
			with = append(with, q)
			continue
		}
		r.setUnreachable(q.MerchantID, true)
		r.place(q.MerchantID, now.UnixMilli())
	}
	if len(with) < len(turns) {
		merchants := len(r.waiting)
		r.log.add("unreachable", func(int) {
			r.Logger.InfoContext(r.work, "events wait, since their merchants have no webhook endpoint", "merchants", merchants)
		})
	}
	return with, endpoints, nil
}

func (r *run) setUnreachable(merchantID string, is bool) {
	r.merchant(merchantID).unreachable = is
	if is {
		r.waiting[merchantID] = true
	} else {
		delete(r.waiting, merchantID)
	}
	r.Metrics.waiting.Set(float64(len(r.waiting)))
}

// waitingSample returns merchants without an endpoint, to look them up again.
func (r *run) waitingSample() []string {
	ids := slices.Collect(maps.Keys(r.waiting)) // in random order, so that each has its turn
	return ids[:min(len(ids), maxWaiting)]
}

// reached schedules the queues of merchants that have an endpoint now.
func (r *run) reached(found map[string]poster.Endpoint, nowMS int64) {
	for id := range found {
		r.setUnreachable(id, false)
		r.place(id, nowMS)
	}
}
