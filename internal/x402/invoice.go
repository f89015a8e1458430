package x402

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ErrNotPayable is returned for an invoice that can no longer, or not yet, be paid.
var ErrNotPayable = errors.New("the invoice awaits no payment")

// ErrNotTaken is returned for an invoice on a chain where the service sends no
// authorizations.
var ErrNotTaken = errors.New("the service sends no authorizations on the chain")

// Requirements returns the requirements for a payment of an invoice. Errors are ErrNotPayable, ErrNotTaken and errors
// of the chain's nodes.
func (s *Service) Requirements(ctx context.Context, inv invoice.Invoice) (Requirements, error) {
	due := inv.Due()
	left := inv.ExpiresAt.Sub(s.Now()).Truncate(time.Second)
	if due.IsZero() || left < invoice.MinAuthorizationWindow {
		return Requirements{}, ErrNotPayable
	}
	c, ok := s.byKey[inv.ChainKey]
	if !ok || !s.Takes(inv.ChainKey) {
		return Requirements{}, ErrNotTaken
	}
	domain, err := s.Chains.Domain(chain.OnBehalfOf(ctx, inv.MerchantID), inv.ChainKey, inv.Token)
	if err != nil {
		return Requirements{}, fmt.Errorf("read the domain of token %s on %s: %w", inv.Token, inv.ChainKey, err)
	}
	return Requirements{ChainID: c.ID, Token: inv.Token, PayTo: inv.PayTo(), Amount: due, Timeout: min(Timeout, left), Domain: domain}, nil
}

// Pay pays an invoice and waits for its block. A payment that was accepted before is not sent again; the answer is its
// outcome. It returns an error only for failures that do not concern the payment.
func (s *Service) Pay(ctx context.Context, inv invoice.Invoice, p Payment) (apitypes.X402SettleResponse, error) {
	c, ok := s.byKey[inv.ChainKey]
	if !ok {
		return apitypes.X402SettleResponse{}, ErrNotTaken
	}
	accepted, err := s.Store.AuthorizationByNonce(ctx, inv.ChainKey, inv.Token, p.Authorization.From, p.Authorization.Nonce)
	if errors.Is(err, db.ErrNotFound) {
		err = checkTransfer(c, inv, p)
		if err == nil {
			accepted, err = s.Ledger.Authorize(ctx, inv.ID, p.Authorization)
		}
	} else if err == nil && (accepted.InvoiceID != inv.ID || !accepted.Equal(p.Authorization)) {
		err = invoice.Refuse(invoice.RefusedMismatch)
	}
	if err != nil {
		return failure(p, s.orPending(ctx, inv, err))
	}
	if accepted, err = s.await(ctx, accepted); err != nil {
		return s.outcome(ctx, c, accepted), err
	}
	return s.outcomeOf(ctx, c, p, accepted)
}

// orPending returns why a payment is refused. While another payment of the invoice is open, that is always the reason,
// because a client must not be asked for a payment then.
func (s *Service) orPending(ctx context.Context, inv invoice.Invoice, err error) error {
	switch _, pendingErr := s.Store.PendingAuthorization(ctx, inv.ID); {
	case pendingErr == nil:
		return invoice.Refuse(invoice.RefusedPending)
	case !errors.Is(pendingErr, db.ErrNotFound):
		return pendingErr
	}
	return err
}

// checkTransfer returns an *x402.Error unless the payment is on the invoice's chain, in its token, to its address and
// over the amount due.
func checkTransfer(c chain.Chain, inv invoice.Invoice, p Payment) error {
	want := Requirements{ChainID: c.ID, Token: inv.Token, PayTo: inv.PayTo(), Amount: inv.Due()}
	if want.Amount.IsZero() {
		return &Error{Reason: InvalidState, Detail: ErrNotPayable.Error()}
	}
	return Request{Payment: p, Requirements: want}.Check()
}

// Pending waits for the outcome of the invoice's payment in progress, and returns its answer. ok is false if there is
// no payment in progress.
func (s *Service) Pending(ctx context.Context, inv invoice.Invoice) (r apitypes.X402SettleResponse, ok bool, err error) {
	a, err := s.Store.PendingAuthorization(ctx, inv.ID)
	if errors.Is(err, db.ErrNotFound) {
		return r, false, nil
	}
	if err == nil {
		a, err = s.await(ctx, a)
	}
	if err != nil {
		return r, false, err
	}
	c := s.byKey[inv.ChainKey]
	r, err = s.outcomeOf(ctx, c, Payment{Accepted: Requirements{ChainID: c.ID}, Authorization: a.Authorization}, a)
	return r, err == nil, err
}
