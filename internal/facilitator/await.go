package facilitator

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/eventfeed"
	"github.com/quittance/quittance/internal/store"
)

// rereadInterval is how often a request that waits reads its authorization, besides after
// each event about its invoice: a refusal has no event.
const rereadInterval = time.Second

// await returns an authorization as soon as its outcome is known, and as it is then after
// MaxWait. It does not end with ctx, because the outcome is wanted even if that was the
// deadline of a shorter request.
func (s *Service) await(ctx context.Context, a store.Authorization) (store.Authorization, error) {
	if isDecided(a) {
		return a, nil
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return a, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MaxWait)
	defer cancel()
	defer context.AfterFunc(s.Stopping, cancel)()
	after, err := s.Feed.Head(ctx)
	for err == nil {
		var now store.Authorization
		if now, err = s.Store.Authorization(ctx, a.ID); err != nil {
			break
		}
		if a = now; isDecided(a) {
			return a, nil
		}
		after, err = s.Feed.NextMatching(ctx, after, rereadInterval, func(n eventfeed.News) bool { return n.IsAbout(a.InvoiceID) })
	}
	if ctx.Err() != nil { // the outcome is still open
		err = nil
	}
	return a, err
}

// isDecided reports whether the outcome of an authorization is known: its payment is in a
// block, or it never will be.
func isDecided(a store.Authorization) bool {
	return a.Paid() || a.Status == store.AuthorizationRefused
}
