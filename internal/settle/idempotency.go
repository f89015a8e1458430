package settle

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// createOnce creates the invoice unless the request's key was used before. It
// looks for the key before it checks the draft, which may have become invalid
// since: its expiresAt may have passed.
func (s *Service) createOnce(ctx context.Context, req CreateRequest) (invoice.Invoice, error) {
	hash, err := hashDraft(req.Draft)
	if err != nil {
		return invoice.Invoice{}, err
	}
	first, err := s.replay(ctx, req, hash)
	if !errors.Is(err, store.ErrNotFound) {
		return first, err
	}
	inv, err := s.buildInvoice(ctx, req.Draft)
	if err != nil {
		return invoice.Invoice{}, err
	}
	inv, err = s.insert(ctx, create{inv: inv, byMerchant: req.ByMerchant, key: &store.IdempotencyKey{
		Scope: req.Scope, Key: req.IdempotencyKey, RequestHash: hash, InvoiceID: inv.ID,
	}})
	if errors.Is(err, errKeyTaken) {
		if inv, err = s.replay(ctx, req, hash); errors.Is(err, store.ErrNotFound) {
			err = ErrIdempotencyInProgress
		}
	}
	return inv, err
}

// replay returns the invoice of the key's first use, or store.ErrNotFound.
func (s *Service) replay(ctx context.Context, req CreateRequest, hash invoice.Hash) (invoice.Invoice, error) {
	k, err := s.store.IdempotencyKey(ctx, req.Scope, req.IdempotencyKey, s.earlierNow())
	if err != nil {
		return invoice.Invoice{}, err
	}
	if k.RequestHash != hash {
		return invoice.Invoice{}, ErrIdempotencyMismatch
	}
	return s.store.Invoice(ctx, k.InvoiceID)
}

// hashDraft returns a hash of the request's fields, which does not depend on how
// its JSON was written.
func hashDraft(d invoice.Draft) (invoice.Hash, error) {
	fields := []any{d.MerchantID, d.Merchant.String(), d.Amount.String(), d.Currency, d.ChainKey, d.ExpiresAt.Unix()}
	for _, item := range d.LineItems {
		fields = append(fields, item.Label, item.Amount.String())
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return invoice.Hash{}, fmt.Errorf("hash the request: %w", err)
	}
	return sha256.Sum256(text), nil
}
