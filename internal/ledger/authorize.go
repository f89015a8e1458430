package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AuthorizationChecker checks authorizations at the nodes of a chain.
type AuthorizationChecker interface {
	// CheckAuthorization simulates an authorization at the chain's newest block. The error is
	// an *invoice.RefusalError if it would fail there, and another one if no node answers.
	CheckAuthorization(ctx context.Context, chainKey string, token invoice.Address, a invoice.Authorization) (AuthorizationCheck, error)
}

// AuthorizationCheck is the result of a simulation of an authorization.
type AuthorizationCheck struct {
	Time time.Time // of the newest block
	Gas  uint64    // used by the transfer
	// IsUsed is set if the token has seen the nonce: the authorization, or another one with the same
	// nonce, was carried out or canceled.
	IsUsed bool
}

// AuthorizationBudget bounds the authorizations of a chain that are accepted in any 24 hours.
type AuthorizationBudget struct {
	PerMerchant int64 // for the invoices of one merchant
	PerPayer    int64 // of one payer
	PerDay      int64 // all of them
}

// budgetWindow is how long an authorization counts against a budget.
const budgetWindow = 24 * time.Hour

// Gasless configures where the service sends authorizations that payers have signed.
type Gasless struct {
	Checker AuthorizationChecker
	// Budgets are the budgets by chain key. Other chains take no authorizations.
	Budgets map[string]AuthorizationBudget
}

// Authorize accepts a payer's authorization for an invoice: it checks it, permanently binds its nonce
// to the invoice, and leaves it to the transaction manager to send. If the authorization was accepted
// before, its current state is returned, so that a repetition has no effect.
//
// Errors are db.ErrNotFound for an unknown invoice, and *invoice.RefusalError; with these, no row was
// stored. After another error, the authorization can be submitted again.
func (s *Service) Authorize(ctx context.Context, invoiceID string, a invoice.Authorization) (Authorization, error) {
	a = a.Normal()
	inv, err := NewReader(s.conf.Store).Invoice(ctx, invoiceID)
	if err != nil {
		return Authorization{}, err
	}
	known, err := boundTo(ctx, s.conf.Store, inv, a)
	if err != nil || known.ID != "" {
		return known, err
	}
	checked, err := s.CheckAuthorization(ctx, inv, a)
	if err != nil {
		// The same request may have been accepted since, which fails the checks of this one.
		if known, again := boundTo(ctx, s.conf.Store, inv, a); again == nil && known.ID != "" {
			return known, nil
		}
		return Authorization{}, err
	}
	err = s.conf.Store.Update(ctx, func(tx *db.Tx) (err error) {
		known, err = s.acceptAuthorization(ctx, tx, inv, a, checked)
		return err
	})
	if err != nil {
		s.countAuthorization(inv.ChainKey, err)
		return Authorization{}, err
	}
	s.conf.Signals.OnAuthorization(inv.ChainKey, "")
	s.conf.Signals.WakeTxManager(inv.ChainKey)
	return known, nil
}

// CheckAuthorization checks an authorization for an invoice, which need not be stored, without
// accepting it. It returns the same errors as Authorize.
func (s *Service) CheckAuthorization(ctx context.Context, inv invoice.Invoice, a invoice.Authorization) (checked AuthorizationCheck, err error) {
	defer func() { s.countAuthorization(inv.ChainKey, err) }()
	now := s.conf.Now()
	if err := inv.CheckAuthorization(a, now, now); err != nil {
		return AuthorizationCheck{}, err
	}
	if err := s.mayAccept(ctx, s.conf.Store, inv, a); err != nil {
		return AuthorizationCheck{}, err
	}
	checked, err = s.conf.Gasless.Checker.CheckAuthorization(chain.OnBehalfOf(ctx, inv.MerchantID), inv.ChainKey, inv.Token, a.Normal())
	if err != nil {
		return AuthorizationCheck{}, err
	}
	// Another account may have submitted the authorization. If its nonce names the invoice, so does its
	// transfer, and the indexer finds the outcome.
	if checked.IsUsed && !inv.IsNamedByNonce(a.Nonce) {
		return AuthorizationCheck{}, invoice.Refuse(invoice.RefusedNonceUsed)
	}
	return checked, inv.CheckAuthorization(a, clock.Earlier(now, checked.Time), clock.Later(now, checked.Time))
}

// countAuthorization signals a refusal.
func (s *Service) countAuthorization(chainKey string, err error) {
	if refusal := (*invoice.RefusalError)(nil); errors.As(err, &refusal) {
		s.conf.Signals.OnAuthorization(chainKey, refusal.Reason)
	}
}

// acceptAuthorization stores an authorization that was checked, under the cursor of its chain, so that
// the checked facts do not change until the transaction ends.
func (s *Service) acceptAuthorization(ctx context.Context, tx *db.Tx, inv invoice.Invoice, a invoice.Authorization, checked AuthorizationCheck) (Authorization, error) {
	if err := lockForAuthorization(ctx, tx, inv.ChainKey); err != nil {
		return Authorization{}, err
	}
	inv, err := NewReader(tx).Invoice(ctx, inv.ID) // read again under the lock
	if err != nil {
		return Authorization{}, err
	}
	if known, err := boundTo(ctx, tx, inv, a); err != nil || known.ID != "" {
		return known, err
	}
	accepted := s.newAuthorization(inv, a, checked)
	// A block may have been read since the check.
	if made, err := madeFor(ctx, tx, inv, a); err != nil || made.ID != "" {
		return acceptMade(ctx, tx, accepted, made, err)
	}
	if err := s.checkAgain(ctx, tx, inv, a, checked); err != nil {
		return Authorization{}, err
	}
	return accepted, InsertAuthorization(ctx, tx, accepted)
}

// lockForAuthorization locks the cursor of a chain, or refuses authorizations if the chain is not read.
func lockForAuthorization(ctx context.Context, tx *db.Tx, chainKey string) error {
	_, err := lockRunning(ctx, tx, chainKey)
	if errors.Is(err, ErrHalted) || errors.Is(err, db.ErrNotFound) {
		return invoice.Refuse(invoice.RefusedGaslessOff, "The service does not read the chain now, so it could not see the payment.")
	}
	return err
}

// newAuthorization returns the row of an accepted authorization.
func (s *Service) newAuthorization(inv invoice.Invoice, a invoice.Authorization, checked AuthorizationCheck) Authorization {
	return Authorization{
		Authorization: a, ID: s.ids.New(invoice.PrefixAuthorization), ChainKey: inv.ChainKey, Token: inv.Token,
		InvoiceID: inv.ID, MerchantID: inv.MerchantID, Gas: checked.Gas, Status: AuthorizationAccepted, CreatedAt: s.conf.Now(), Scheduled: s.conf.Schedule(),
	}
}

// checkAgain repeats, under the cursor of the chain, what CheckAuthorization checked before it asked a node.
func (s *Service) checkAgain(ctx context.Context, tx *db.Tx, inv invoice.Invoice, a invoice.Authorization, checked AuthorizationCheck) error {
	now := s.conf.Now()
	if err := inv.CheckAuthorization(a, clock.Earlier(now, checked.Time), clock.Later(now, checked.Time)); err != nil {
		return err
	}
	return s.mayAccept(ctx, tx, inv, a)
}

// madeFor returns the payment of the invoice that another account's transaction has made with the
// authorization, or an empty one. It is known to be for the invoice only if its nonce names the
// invoice. Everybody can read any other nonce on the chain, with its signature.
func madeFor(ctx context.Context, r db.Querier, inv invoice.Invoice, a invoice.Authorization) (PaymentRow, error) {
	if !inv.IsNamedByNonce(a.Nonce) {
		return PaymentRow{}, nil
	}
	p, err := paymentByNonce(ctx, r, inv.ChainKey, inv.Token, a.From, a.Nonce)
	if errors.Is(err, db.ErrNotFound) || err == nil && (p.InvoiceID != inv.ID || p.To != a.To || p.Amount != a.Value) {
		return PaymentRow{}, nil
	}
	return p, err
}

// acceptMade stores an authorization with the payment that it has made.
func acceptMade(ctx context.Context, tx *db.Tx, a Authorization, p PaymentRow, err error) (Authorization, error) {
	if err == nil {
		err = InsertAuthorization(ctx, tx, a)
	}
	if err == nil {
		err = SetAuthorizationPayments(ctx, tx, map[string]string{a.ID: p.ID})
	}
	a.Payment = &AuthorizedPayment{ID: p.ID, TxHash: p.TxHash, Status: p.Status}
	return a, err
}

// boundTo returns the accepted authorization if it equals a, and an empty one if the nonce is not
// bound. A nonce that is bound to something else is RefusedMismatch.
func boundTo(ctx context.Context, r db.Querier, inv invoice.Invoice, a invoice.Authorization) (Authorization, error) {
	known, err := NewReader(r).AuthorizationByNonce(ctx, inv.ChainKey, inv.Token, a.From, a.Nonce)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return Authorization{}, nil
	case err != nil:
		return Authorization{}, err
	case known.InvoiceID != inv.ID || !known.Equal(a):
		return Authorization{}, invoice.Refuse(invoice.RefusedMismatch)
	}
	return known, nil
}

// mayAccept returns the reason why a new authorization for the invoice is refused, as far as stored rows show.
func (s *Service) mayAccept(ctx context.Context, r db.Querier, inv invoice.Invoice, a invoice.Authorization) error {
	budget, on := s.conf.Gasless.Budgets[inv.ChainKey]
	if !on || s.conf.Gasless.Checker == nil {
		return invoice.Refuse(invoice.RefusedGaslessOff)
	}
	named, err := InvoicesByCommitment(ctx, r, []invoice.Hash{a.Nonce})
	if err != nil {
		return err
	}
	if other := named[a.Nonce]; other != "" && other != inv.ID {
		return invoice.Refuse(invoice.RefusedNonceOfOther)
	}
	// The node may have answered from a block below the payment's block.
	switch _, err := paymentByNonce(ctx, r, inv.ChainKey, inv.Token, a.From, a.Nonce); {
	case err == nil:
		return invoice.Refuse(invoice.RefusedNonceUsed)
	case !errors.Is(err, db.ErrNotFound):
		return err
	}
	switch _, err := NewReader(r).PendingAuthorization(ctx, inv.ID); {
	case err == nil:
		return invoice.Refuse(invoice.RefusedPending)
	case !errors.Is(err, db.ErrNotFound):
		return err
	}
	all, merchant, payer, err := CountAuthorizations(ctx, r, inv.ChainKey, inv.MerchantID, a.From, WindowBefore(s.conf.Now(), s.conf.Schedule(), budgetWindow))
	if err != nil {
		return err
	}
	for _, bound := range []struct {
		whose string
		used  int64
		most  int64
	}{
		{"this payer", payer, budget.PerPayer}, {"this merchant", merchant, budget.PerMerchant}, {"all payers", all, budget.PerDay},
	} {
		if bound.used >= bound.most {
			return invoice.Refuse(invoice.RefusedBudget, "The service sends at most %d authorizations for %s in 24 hours; pay by a transfer.", bound.most, bound.whose)
		}
	}
	if left := budget.PerDay - all; merchant >= left { // the rest is for the payers of other merchants
		return invoice.Refuse(invoice.RefusedBudget, "The service sends authorizations for one merchant up to half of those of all in 24 hours; pay by a transfer.")
	}
	return nil
}

// authorize notes whether a payment is the transfer that its authorization was accepted for. A transfer of another
// amount by the same nonce pays the invoice in part, and leaves the authorization unpaid.
func (ch *Changes) authorize(e *entry, p invoice.Payment) {
	if e.bound.InvoiceID == "" {
		return
	}
	made := ""
	if (e.bound.InvoiceID == p.InvoiceID || p.Screening == invoice.ScreeningRejected) && e.bound.IsMadeBy(e.Transfer) {
		made = p.ID
	}
	if made != e.bound.PaymentID {
		ch.effects.authorized[e.bound.ID] = made
	}
}

// endAuthorizations ends the authorizations whose outcome the chain's finalized block makes certain. Every payment up
// to that block is stored, and none of a later block can be made by an authorization whose window closed before it.
func (s *Service) endAuthorizations(ctx context.Context, tx *db.Tx, chainKey string, cur Cursor) error {
	return EndAuthorizations(ctx, tx, chainKey, cur.Confirmed.Time, invoice.RefusedWindowClosed, s.conf.Now())
}
