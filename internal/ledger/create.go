package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/spelling"
	"github.com/quittance/quittance/internal/tracing"
)

// CreateRequest is a request to create an invoice. With a key the same request may be repeated within
// IdempotencyWindow.
type CreateRequest struct {
	Once
	Draft invoice.Draft
	// ByMerchant is set if the merchant asks, not the operator: the invoice may settle only to an address
	// that the merchant holds, or that no merchant holds.
	ByMerchant bool
	// Lifetime, if set, is how long the invoice can be paid from its creation. The expiry is then not part
	// of the request that a key identifies.
	Lifetime time.Duration
}

// draftAt returns the draft with its expiry.
func (r CreateRequest) draftAt(now time.Time) invoice.Draft {
	if r.Lifetime > 0 {
		r.Draft.ExpiresAt = now.Add(r.Lifetime)
	}
	return r.Draft
}

// Create makes an open invoice, its invoice.created event and the intent to open its commitment, or a draft without
// these. A repeated request with the same key returns the invoice of the first one. It returns an *invoice.FieldError
// for a draft that breaks a rule or names an address of another merchant. It returns a *limits.ExceededError for a
// merchant that has used up its quota. Other errors are *ReferenceTakenError, ErrUnverified, *UnverifiedError,
// *MissedBlocksError, ErrIdempotencyMismatch and ErrIdempotencyInProgress.
func (s *Service) Create(ctx context.Context, req CreateRequest) (_ invoice.Invoice, err error) {
	ctx, end := tracing.Begin(ctx, "create invoice")
	defer end(&err)
	if req.Key == "" {
		return s.createFirst(ctx, req, nil)
	}
	hash, err := hashDraft(req.Draft)
	if err != nil {
		return invoice.Invoice{}, err
	}
	inv, err := s.createFirst(ctx, req, &IdempotencyKey{Scope: req.Scope, Key: req.Key, RequestHash: hash})
	if err == nil {
		return inv, nil
	}
	// It may be a repeat, whatever the error is: its expiresAt may have passed since the first request, its reference
	// belongs to its own invoice, or the database takes no more creates.
	first, replayErr := s.replay(ctx, req, hash)
	if replayErr == nil {
		req.Mark(true)
	}
	var deleted *DraftDeletedError
	switch {
	case replayErr == nil, errors.Is(replayErr, ErrIdempotencyMismatch), errors.As(replayErr, &deleted):
		return first, replayErr
	case !errors.Is(err, errKeyTaken):
		return invoice.Invoice{}, err
	case errors.Is(replayErr, db.ErrNotFound):
		return invoice.Invoice{}, ErrIdempotencyInProgress
	}
	return invoice.Invoice{}, replayErr
}

// createFirst creates the invoice of a request. It returns errKeyTaken if the key, which may be nil, was used before.
func (s *Service) createFirst(ctx context.Context, req CreateRequest, key *IdempotencyKey) (invoice.Invoice, error) {
	inv, err := s.buildInvoice(ctx, req.draftAt(s.seconds()), s.ids.New(invoice.PrefixInvoice))
	if err != nil {
		return invoice.Invoice{}, err
	}
	if err := s.quotas.admit(inv.MerchantID); err != nil && req.ByMerchant {
		return invoice.Invoice{}, err
	}
	if inv.Status == invoice.Open {
		if err := s.checkOpen(ctx, inv); err != nil {
			return invoice.Invoice{}, err
		}
	}
	if key != nil {
		key.InvoiceID = inv.ID
	}
	for {
		if inv.Details.UniqueReference {
			holder, err := referenceHolder(ctx, s.conf.Store, inv.MerchantID, inv.Details.Reference)
			if err == nil {
				return invoice.Invoice{}, &ReferenceTakenError{InvoiceID: holder}
			}
			if !errors.Is(err, db.ErrNotFound) {
				return invoice.Invoice{}, err
			}
		}
		created, err := s.insert(ctx, create{inv: inv, key: key, byMerchant: req.ByMerchant})
		if !errors.Is(err, errReserved) && !errors.Is(err, errKeyUnused) { // else another request came between
			return created, err
		}
	}
}

// CheckDraft returns the *invoice.FieldError with which Create refuses a draft because it
// breaks a rule. It does not check who holds the settlement address.
func (s *Service) CheckDraft(ctx context.Context, d invoice.Draft) error {
	_, err := s.buildInvoice(ctx, d, s.ids.New(invoice.PrefixInvoice))
	return err
}

// ReferenceTakenError is the error of a create with a reference that must be unique, if another draft
// or open invoice of the merchant has it.
type ReferenceTakenError struct {
	InvoiceID string // of that invoice
}

// Error names the invoice.
func (e *ReferenceTakenError) Error() string { return "the reference is that of " + e.InvoiceID }

// buildInvoice checks a draft and returns its invoice with an id, and without a transfer amount.
func (s *Service) buildInvoice(ctx context.Context, d invoice.Draft, id string) (invoice.Invoice, error) {
	now := s.seconds()
	m, known, err := s.conf.Merchants.Find(ctx, d.MerchantID)
	if err != nil {
		return invoice.Invoice{}, err
	}
	if d.AddressOmitted {
		d.Merchant = m.DefaultAddresses[d.ChainKey]
	}
	c, token, err := s.findToken(d.ChainKey, d.Currency)
	if err != nil {
		return invoice.Invoice{}, err
	}
	if err := d.Check(now); err != nil {
		return invoice.Invoice{}, err
	}
	if !known {
		return invoice.Invoice{}, &invoice.FieldError{Field: "merchantId", Detail: "is not a merchant of this service"}
	}
	if c.KeepsMoney(d.Merchant) {
		return invoice.Invoice{}, &invoice.FieldError{
			Field: "merchantAddress", Detail: "must be the merchant's own; it is a contract that would keep the money",
		}
	}
	if !m.Allows(d.ChainKey, d.Merchant) {
		return invoice.Invoice{}, &invoice.FieldError{
			Field: "merchantAddress", Detail: "is not on the merchant's list of allowed settlement addresses on " + c.Key,
		}
	}
	if err := m.CheckReturnURLs(d.Details); err != nil {
		return invoice.Invoice{}, err
	}
	inv := invoice.Invoice{
		Terms:      invoice.Terms{Merchant: d.Merchant, Token: token.Address, Amount: d.Amount, ExpiresAt: d.ExpiresAt},
		ID:         id,
		MerchantID: d.MerchantID, Currency: d.Currency, ChainKey: d.ChainKey,
		Status: invoice.Open, LineItems: d.LineItems, CreatedAt: now, Collection: cmp.Or(d.Collection, m.Collection, invoice.Direct),
		Tolerance: m.Tolerance.Of(d.Amount), Registry: c.Registry, Details: d.Details,
	}
	if d.Unissued {
		inv.Status = invoice.Drafted
	}
	if d.Unregistered {
		inv.Registry = invoice.Address{}
	}
	inv.CommitmentID = chain.CommitmentID(c.ID, inv.Registry, inv.Terms, inv.ID)
	return withDepositAddress(inv, c)
}

// findToken returns a chain and its token for a currency. It is checked first, because a merchant without a default
// address on a chain may have misspelt the chain's key. The error is an *invoice.FieldError.
func (s *Service) findToken(chainKey, currency string) (c chain.Chain, token chain.Token, err error) {
	c, ok := s.byKey[chainKey]
	if !ok {
		hint := spelling.Hint(chainKey, slices.Sorted(maps.Keys(s.byKey)))
		return c, token, &invoice.FieldError{Field: "chainKey", Detail: fmt.Sprintf("is %.40q, which is not a chain of this service", chainKey) + hint}
	}
	if token, ok = c.Token(currency); !ok {
		var known []string
		for _, t := range c.Tokens {
			known = append(known, t.Currency)
		}
		return c, token, &invoice.FieldError{Field: "currency", Detail: fmt.Sprintf("is %.40q, which is not a currency of the chain %s", currency, c.Key) + spelling.Hint(currency, known)}
	}
	return c, token, nil
}

// emitCreated emits invoice.created, and enqueues the intent to open the commitment.
func (s *Service) emitCreated(out *outbox, inv invoice.Invoice) error {
	s.enqueueIntent(out, invoice.IntentOpen, inv)
	return s.emitOnlyCreated(out, inv)
}

// emitOnlyCreated emits invoice.created.
func (s *Service) emitOnlyCreated(out *outbox, inv invoice.Invoice) error {
	return s.emit(out, invoice.EventCreated, inv.ID, inv, apiconv.InvoiceData(inv))
}

const (
	// maxCounted bounds how many merchants' invoices are counted in a round. The others are counted in a later round.
	maxCounted = 10_000
	// countSteps bounds how often the store counts a batch of a merchant's invoices in a round.
	countSteps = 20
)

// retryQuota is the Retry-After of a merchant beyond its quota, in seconds. The operator decides how long it takes.
const retryQuota = "3600"

// quotas record which merchants have used up their quota of invoices.
type quotas struct {
	mu     sync.Mutex
	active map[string]bool // active since the last round, also if a create was refused
	full   map[string]bool
}

// admit records that a merchant makes an invoice. It returns a *limits.ExceededError if the
// merchant has used up its quota.
func (q *quotas) admit(merchantID string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.active == nil {
		q.active = make(map[string]bool)
	}
	if len(q.active) < maxCounted {
		q.active[merchantID] = true
	}
	if q.full[merchantID] {
		return &limits.ExceededError{Limit: access.InvoiceQuotaName, RetryAfter: retryQuota}
	}
	return nil
}

// take returns the merchants that were active since the last call.
func (q *quotas) take() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	active := q.active
	q.active = nil
	return active
}

// set stores whether a merchant has used up its quota.
func (q *quotas) set(merchantID string, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !full {
		delete(q.full, merchantID)
		return
	}
	if q.full == nil || len(q.full) >= maxCounted {
		q.full = make(map[string]bool)
	}
	q.full[merchantID] = true
}

// CountInvoices counts the invoices of the merchants that were active since the last call, so that a
// create need not count. The caller calls it every access.QuotaInterval.
func (s *Service) CountInvoices(ctx context.Context) error {
	var errs []error
	for merchantID := range s.quotas.take() {
		for range countSteps {
			stored, more, err := access.CountInvoices(ctx, s.conf.Store, merchantID)
			if err != nil {
				errs = append(errs, err)
				break
			}
			s.quotas.set(merchantID, stored.Invoices >= stored.InvoiceQuota)
			if !more {
				break
			}
		}
	}
	return errors.Join(errs...)
}
