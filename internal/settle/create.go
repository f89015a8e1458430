package settle

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// CreateRequest asks for an invoice. With an IdempotencyKey the same request
// may be repeated within store.IdempotencyWindow; keys of different scopes
// never meet.
type CreateRequest struct {
	Draft          invoice.Draft
	IdempotencyKey string
	Scope          string
}

// Create makes an open invoice, its invoice.created event and the intent to
// open its commitment. A repeated request with the same key returns the
// invoice that the first made. It returns an *invoice.FieldError for a draft
// that breaks a rule, ErrIdempotencyMismatch or ErrIdempotencyInProgress.
func (s *Service) Create(ctx context.Context, req CreateRequest) (invoice.Invoice, error) {
	now := s.now()
	if req.IdempotencyKey != "" {
		return s.createOnce(ctx, req, now)
	}
	inv, err := s.buildInvoice(req.Draft, now)
	if err != nil {
		return invoice.Invoice{}, err
	}
	return s.createBatched(ctx, inv)
}

// buildInvoice checks a draft and makes the invoice of it, but for the transfer
// amount.
func (s *Service) buildInvoice(d invoice.Draft, now time.Time) (invoice.Invoice, error) {
	if err := d.Check(now.Unix()); err != nil {
		return invoice.Invoice{}, err
	}
	if !s.merchants.Known(d.MerchantID) {
		return invoice.Invoice{}, &invoice.FieldError{Field: "merchantId", Detail: "is not a merchant of this service"}
	}
	c, ok := s.byKey[d.ChainKey]
	if !ok {
		return invoice.Invoice{}, &invoice.FieldError{Field: "chainKey", Detail: "is not a chain of this service"}
	}
	token, ok := c.Token(d.Currency)
	if !ok {
		return invoice.Invoice{}, &invoice.FieldError{Field: "currency", Detail: "is not a currency of the chain " + c.Key}
	}
	if d.Merchant == token.Address || d.Merchant == c.Registry {
		return invoice.Invoice{}, &invoice.FieldError{
			Field: "merchantAddress", Detail: "must be the merchant's own; it is a contract that would keep the money",
		}
	}
	inv := invoice.Invoice{
		Terms:      invoice.Terms{Merchant: d.Merchant, Token: token.Address, Amount: d.Amount, ExpiresAt: d.ExpiresAt},
		ID:         s.ids.New(invoice.PrefixInvoice),
		MerchantID: d.MerchantID, Currency: d.Currency, ChainKey: d.ChainKey,
		Status: invoice.Open, LineItems: d.LineItems, CreatedAt: now.Unix(),
		Tolerance: s.merchants.Tolerance(d.MerchantID).Of(d.Amount), Registry: c.Registry,
	}
	inv.CommitmentID = chain.CommitmentID(c.ID, inv.Registry, inv.Terms, inv.ID)
	return inv, nil
}

// emitCreated adds what the creation of an invoice leaves behind.
func (s *Service) emitCreated(out *outbox, inv invoice.Invoice) error {
	s.enqueueIntent(out, invoice.IntentOpen, inv)
	return s.emit(out, invoice.EventCreated, inv.ID, inv, apiconv.InvoiceData(inv))
}

// errKeyTaken undoes a create whose key was used in the meantime.
var errKeyTaken = errors.New("idempotency key taken")

// createOnce creates the invoice unless the request's key was used before. A
// repeated request is answered before it is checked: what was right once may
// have become wrong, as an expiresAt does by and by.
func (s *Service) createOnce(ctx context.Context, req CreateRequest, now time.Time) (invoice.Invoice, error) {
	hash, err := hashDraft(req.Draft)
	if err != nil {
		return invoice.Invoice{}, err
	}
	first, err := s.replay(ctx, req, hash, s.earlierNow().Unix())
	if !errors.Is(err, store.ErrNotFound) {
		return first, err
	}
	inv, err := s.buildInvoice(req.Draft, now)
	if err != nil {
		return invoice.Invoice{}, err
	}
	err = s.update(ctx, func(tx *store.Tx, out *outbox) error {
		left := []*invoice.Invoice{&inv}
		for try := 0; len(left) > 0; try++ {
			var err error
			if left, err = s.insertInvoices(ctx, tx, out, left, try); err != nil {
				return err
			}
		}
		fresh, err := tx.InsertIdempotencyKey(ctx, store.IdempotencyKey{
			Scope: req.Scope, Key: req.IdempotencyKey, RequestHash: hash, InvoiceID: inv.ID,
		}, s.earlierNow().Unix())
		if err == nil && !fresh {
			err = errKeyTaken
		}
		return err
	})
	s.remember([]*invoice.Invoice{&inv}, err == nil)
	if errors.Is(err, errKeyTaken) {
		if first, err = s.replay(ctx, req, hash, s.earlierNow().Unix()); errors.Is(err, store.ErrNotFound) {
			err = ErrIdempotencyInProgress
		}
		return first, err
	}
	return inv, err
}

// replay returns the invoice of the key's first use.
func (s *Service) replay(ctx context.Context, req CreateRequest, hash invoice.Hash, now int64) (invoice.Invoice, error) {
	k, err := s.store.IdempotencyKey(ctx, req.Scope, req.IdempotencyKey, now)
	if err != nil {
		return invoice.Invoice{}, err
	}
	if k.RequestHash != hash {
		return invoice.Invoice{}, ErrIdempotencyMismatch
	}
	return s.store.Invoice(ctx, k.InvoiceID)
}

// hashDraft names what was asked for, however the request's JSON was written.
func hashDraft(d invoice.Draft) (invoice.Hash, error) {
	fields := []any{d.MerchantID, d.Merchant.String(), d.Amount.String(), d.Currency, d.ChainKey, d.ExpiresAt}
	for _, item := range d.LineItems {
		fields = append(fields, item.Label, item.Amount.String())
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return invoice.Hash{}, fmt.Errorf("hash the request: %w", err)
	}
	return sha256.Sum256(text), nil
}

// forgetBatch is how many old keys one transaction forgets.
const forgetBatch = 1000

// DeleteOldKeys deletes idempotency keys that are past their window.
func (s *Service) DeleteOldKeys(ctx context.Context) error {
	for {
		var n int64
		err := s.store.Update(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.DeleteIdempotencyKeys(ctx, s.earlierNow().Unix(), forgetBatch)
			return err
		})
		if err != nil || n < forgetBatch {
			return err
		}
	}
}
