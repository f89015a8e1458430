package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Once lets a request be repeated without a second effect.
type Once struct {
	Key      string // the Idempotency-Key; empty without one
	Scope    string // the key's scope: the same key in two scopes is two keys
	Replayed *bool  // if set, it becomes true if an earlier request with the key did the work
}

// Mark notes whether an earlier request did the work.
func (o Once) Mark(replayed bool) {
	if o.Replayed != nil {
		*o.Replayed = replayed
	}
}

// hashFields returns a hash of a request's fields, which does not depend on how its JSON was written.
func hashFields(fields ...any) (invoice.Hash, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return invoice.Hash{}, fmt.Errorf("hash the request: %w", err)
	}
	return sha256.Sum256(text), nil
}

// replay returns the current state of the invoice of the key's first use. Errors are db.ErrNotFound if
// the key was not used, ErrIdempotencyMismatch, and *DraftDeletedError.
func (s *Service) replay(ctx context.Context, req CreateRequest, hash invoice.Hash) (invoice.Invoice, error) {
	k, err := FindIdempotencyKey(ctx, s.conf.Store, req.Scope, req.Key, s.conf.Schedule())
	if err != nil {
		return invoice.Invoice{}, err
	}
	if k.RequestHash != hash {
		return invoice.Invoice{}, ErrIdempotencyMismatch
	}
	inv, err := NewReader(s.conf.Store).Invoice(ctx, k.InvoiceID)
	if errors.Is(err, db.ErrNotFound) {
		err = &DraftDeletedError{InvoiceID: k.InvoiceID}
	}
	return inv, err
}

// DraftDeletedError is the error of a repeated create after its draft was deleted.
type DraftDeletedError struct {
	InvoiceID string // of the draft
}

// Error names the draft.
func (e *DraftDeletedError) Error() string { return "the draft " + e.InvoiceID + " was deleted" }

// hashDraft returns a hash of the request's fields, which does not depend on how its JSON was written.
func hashDraft(d invoice.Draft) (invoice.Hash, error) {
	fields := []any{d.MerchantID, d.Merchant.String(), d.Amount.String(), d.Currency, d.ChainKey, d.ExpiresAt.Unix()}
	for _, item := range d.LineItems {
		fields = append(fields, item.Label, item.Amount.String())
	}
	if e := d.Details; !e.IsZero() {
		fields = append(fields, []any{e.Reference, e.UniqueReference, e.Description, e.Customer.ID, e.Customer.Email, e.ReturnURL, e.CancelURL, e.Metadata})
	}
	if d.Unissued {
		fields = append(fields, true)
	}
	if d.Collection != "" {
		fields = append(fields, "collection", d.Collection)
	}
	return hashFields(fields...)
}

// deleteBatch is how many keys one transaction deletes.
const deleteBatch = 1000

// DeleteOldKeys deletes idempotency keys that are past their window, and old erasures with theirs.
func (s *Service) DeleteOldKeys(ctx context.Context) error {
	for {
		var keys, erasures int64
		err := s.conf.Store.Update(ctx, func(tx *db.Tx) (err error) {
			if keys, err = DeleteIdempotencyKeys(ctx, tx, s.conf.Schedule(), deleteBatch); err != nil {
				return err
			}
			erasures, err = DeleteErasures(ctx, tx, s.conf.Schedule(), deleteBatch)
			return err
		})
		if err != nil || keys < deleteBatch && erasures == 0 {
			return err
		}
	}
}
