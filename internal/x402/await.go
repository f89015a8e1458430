package x402

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/webhooks"
)

// rereadInterval is how often a waiting request reads its authorization, in addition to after each event about its
// invoice: a refusal has no event.
const rereadInterval = time.Second

// await returns an authorization as soon as its outcome is known, and in its present state after MaxWait. It does not
// end with ctx, because the outcome is needed even if ctx was the deadline of a shorter request.
func (s *Service) await(ctx context.Context, a ledger.Authorization) (ledger.Authorization, error) {
	if isDecided(a) {
		return a, nil
	}
	claims := waitingFor(ctx, a)
	if s.waiting.Take(1, claims...) != nil {
		return a, nil
	}
	defer s.waiting.Give(1, claims...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), MaxWait)
	defer cancel()
	defer context.AfterFunc(s.Stopping, cancel)()
	after, err := s.Feed.Head(ctx)
	for err == nil {
		var now ledger.Authorization
		if now, err = s.Store.Authorization(ctx, a.ID); err != nil {
			break
		}
		if a = now; isDecided(a) {
			return a, nil
		}
		after, err = s.Feed.NextMatching(ctx, after, rereadInterval, func(n webhooks.News) bool { return n.IsAbout(a.InvoiceID) })
	}
	if ctx.Err() != nil { // the outcome is still open
		err = nil
	}
	return a, err
}

// waitingFor returns the accounts under which a request waits: the client's at the merchant, and the invoice's.
func waitingFor(ctx context.Context, a ledger.Authorization) []limits.Claim[limits.Party] {
	ofInvoice := limits.Claim[limits.Party]{Client: limits.Party{Object: a.InvoiceID}, Weight: 1, Most: MaxWaitingForInvoice}
	return append(limits.Payer(ctx, a.MerchantID), ofInvoice)
}

// checkValid returns an *x402.Error if the transfer of a paid authorization buys nothing: its invoice is void, or all
// of it was refunded or is being refunded.
func (s *Service) checkValid(ctx context.Context, a ledger.Authorization) error {
	ctx = context.WithoutCancel(ctx)
	inv, err := s.Store.Invoice(ctx, a.InvoiceID)
	if err != nil {
		return err
	}
	if inv.Status == invoice.Void {
		return &Error{Reason: InvalidState, Detail: "The transfer was made, and the invoice is void; ask the merchant for a refund."}
	}
	back, err := s.Ledger.AmountReturned(ctx, a.Payment.ID)
	if err != nil || back.Less(a.Value) {
		return err
	}
	return &Error{Reason: InvalidState, Detail: "The payment was refunded, or is being refunded; sign another."}
}

// isDecided reports whether the outcome of an authorization is known: its payment is in a block, or can never be.
func isDecided(a ledger.Authorization) bool {
	return a.Paid() || a.Status == ledger.AuthorizationRefused
}
