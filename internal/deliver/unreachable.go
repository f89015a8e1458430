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

// maxWaiting is of how many merchants at most one survey asks anew whether they
// have an endpoint.
const maxWaiting = 10_000

// reachable returns those of the queues whose merchants have an endpoint, and
// the endpoints. The others are not asked again until there is one: what is in
// them waits untried, at no cost.
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
		r.lines.add("unreachable", func(int) {
			r.Logger.InfoContext(r.work, "events wait, since their merchants have no webhook endpoint", "merchants", merchants)
		})
	}
	return with, endpoints, nil
}

func (r *run) setUnreachable(merchantID string, is bool) {
	r.know(merchantID).unreachable = is
	if is {
		r.waiting[merchantID] = true
	} else {
		delete(r.waiting, merchantID)
	}
	r.Metrics.waiting.Set(float64(len(r.waiting)))
}

// waitingNow returns merchants to ask anew for their endpoints.
func (r *run) waitingNow() []string {
	ids := slices.Collect(maps.Keys(r.waiting)) // in no order, so that each has its turn
	return ids[:min(len(ids), maxWaiting)]
}

// reached has deliveries taken up that waited for an endpoint.
func (r *run) reached(found map[string]poster.Endpoint, nowMS int64) {
	for id := range found {
		r.setUnreachable(id, false)
		r.place(id, nowMS)
	}
}
