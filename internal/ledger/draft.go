package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// Errors of the use cases of drafts and open invoices.
var (
	// ErrNotDraft: only a draft can be changed or deleted.
	ErrNotDraft = errors.New("the invoice is not a draft")
	// ErrVoid: a void invoice cannot be issued.
	ErrVoid = errors.New("the invoice is void")
)

// InvoiceChange is a change of an invoice. Nil members stay as they are. The terms can be changed only in a draft.
type InvoiceChange struct {
	Merchant   *invoice.Address
	Amount     *invoice.Amount
	Currency   *string
	ChainKey   *string
	LineItems  *[]invoice.LineItem // replaces all
	ExpiresAt  *time.Time
	Collection *invoice.Collection
	Details    invoice.DetailsChange
}

// changesTerms reports whether the change sets a term of the invoice to another value.
func (c InvoiceChange) changesTerms(inv invoice.Invoice) bool {
	return differs(c.Merchant, inv.Merchant) || differs(c.Amount, inv.Amount) || differs(c.Currency, inv.Currency) || differs(c.ChainKey, inv.ChainKey) ||
		c.LineItems != nil && !slices.Equal(*c.LineItems, inv.LineItems) || c.ExpiresAt != nil && !c.ExpiresAt.Equal(inv.ExpiresAt) ||
		differs(c.Collection, inv.Collection)
}

func differs[T comparable](to *T, is T) bool { return to != nil && *to != is }

// draftOf returns the request that gives an invoice with a change of its terms.
func draftOf(inv invoice.Invoice, c InvoiceChange) invoice.Draft {
	d := invoice.Draft{
		Unissued: true, MerchantID: inv.MerchantID, Merchant: inv.Merchant, Amount: inv.Amount, Currency: inv.Currency, ChainKey: inv.ChainKey,
		LineItems: inv.LineItems, ExpiresAt: inv.ExpiresAt, Collection: inv.Collection, Details: inv.Details.Change(c.Details),
	}
	invoice.SetIfGiven(&d.Merchant, c.Merchant)
	invoice.SetIfGiven(&d.Amount, c.Amount)
	invoice.SetIfGiven(&d.Currency, c.Currency)
	invoice.SetIfGiven(&d.ChainKey, c.ChainKey)
	invoice.SetIfGiven(&d.LineItems, c.LineItems)
	invoice.SetIfGiven(&d.ExpiresAt, c.ExpiresAt)
	invoice.SetIfGiven(&d.Collection, c.Collection)
	return d
}

// UpdateInvoice changes the details of an invoice, and the terms of a draft. A term with its current
// value is not a change. Errors are db.ErrNotFound, also for an invoice that the principal does not
// see, ErrNotDraft, *ReferenceTakenError and *invoice.FieldError.
func (s *Service) UpdateInvoice(ctx context.Context, by access.Principal, id string, c InvoiceChange) (changed invoice.Invoice, err error) {
	err = s.updateLocked(ctx, by, id, func(tx *db.Tx, out *outbox, inv invoice.Invoice) error {
		changed = inv
		changed.Details = inv.Details.Change(c.Details)
		if c.changesTerms(inv) {
			if inv.Status != invoice.Drafted {
				return ErrNotDraft
			}
			built, err := s.buildInvoice(ctx, draftOf(inv, c), inv.ID)
			if err != nil {
				return err
			}
			built.CreatedAt = inv.CreatedAt
			if changed, err = s.rewrite(ctx, tx, out, by, inv, built, 0); err != nil {
				return err
			}
		}
		return s.replaceDetails(ctx, tx, inv.Details, changed)
	})
	return changed, err
}

// replaceDetails checks and writes the details of an invoice, if they changed.
func (s *Service) replaceDetails(ctx context.Context, tx *db.Tx, was invoice.Details, inv invoice.Invoice) error {
	is := inv.Details
	if was.Equal(is) {
		return nil
	}
	if err := is.Check(); err != nil {
		return err
	}
	if is.ReturnURL != was.ReturnURL || is.CancelURL != was.CancelURL {
		m, _, err := s.conf.Merchants.Find(ctx, inv.MerchantID)
		if err != nil {
			return err
		}
		if err := m.CheckReturnURLs(is); err != nil {
			return err
		}
	}
	taken, err := replaceDetails(ctx, tx, inv)
	if err != nil || !taken {
		return err
	}
	holder, err := referenceHolder(ctx, tx, inv.MerchantID, is.Reference)
	if err != nil {
		return err
	}
	return &ReferenceTakenError{InvoiceID: holder}
}

// Finalize issues a draft: it becomes open, and can be paid by transfers above the newest block that was read. An
// invoice that was issued before is returned as it is. Errors are db.ErrNotFound, ErrVoid, ErrUnverified and
// *invoice.FieldError, such as for an expiresAt that has passed.
func (s *Service) Finalize(ctx context.Context, by access.Principal, id string) (issued invoice.Invoice, err error) {
	ctx, end := tracing.Begin(ctx, "finalize invoice")
	defer end(&err)
	draft, err := NewReader(s.conf.Store).Invoice(ctx, id)
	if err == nil && by.Sees(draft.MerchantID) && draft.Status == invoice.Drafted {
		err = s.checkOpen(ctx, draft)
	}
	if err != nil {
		return invoice.Invoice{}, err
	}
	for try := 0; ; try++ {
		err = s.updateLocked(ctx, by, id, func(tx *db.Tx, out *outbox, inv invoice.Invoice) error {
			issued = inv
			switch inv.Status {
			case invoice.Void:
				return ErrVoid
			case invoice.Open, invoice.Paid, invoice.Expired:
				return nil
			case invoice.Drafted:
			}
			d := draftOf(inv, InvoiceChange{})
			d.Unissued = false
			built, err := s.buildInvoice(ctx, d, inv.ID)
			if err != nil {
				return err
			}
			built.CreatedAt = inv.CreatedAt
			if issued, err = s.rewrite(ctx, tx, out, by, inv, built, try); err != nil {
				return err
			}
			if err := InsertInvoiceTransition(ctx, tx, id, InvoiceTransition{Status: invoice.Open, At: s.conf.Now(), By: access.FromContext(ctx).Label()}); err != nil {
				return err
			}
			return s.emitCreated(out, issued)
		})
		if try == maxTries || !db.Taken(err) { // another invoice has its transfer amount
			return issued, err
		}
	}
}

// rewrite writes the terms and the state of a locked draft. try counts from 0 how often its transfer
// amount was already taken. The operator grants the merchant only another address than the draft had.
func (s *Service) rewrite(ctx context.Context, tx *db.Tx, out *outbox, by access.Principal, was, inv invoice.Invoice, try int) (invoice.Invoice, error) {
	if err := s.bind(ctx, tx, []*invoice.Invoice{&inv}, try); err != nil {
		return inv, err
	}
	if err := s.holdOne(ctx, tx, out, inv, !by.IsOperator() || inv.Merchant == was.Merchant); err != nil {
		return inv, err
	}
	if err := checkDepositAddress(ctx, tx, inv); err != nil {
		return inv, err
	}
	if err := insertFreeAmounts(ctx, tx, wholeAmounts([]invoice.Invoice{inv})); err != nil {
		return inv, err
	}
	return inv, UpdateDraft(ctx, tx, inv)
}

// DeleteDraft deletes a draft. Errors are db.ErrNotFound and ErrNotDraft.
func (s *Service) DeleteDraft(ctx context.Context, by access.Principal, id string) error {
	return s.updateLocked(ctx, by, id, func(tx *db.Tx, out *outbox, inv invoice.Invoice) error {
		if inv.Status != invoice.Drafted {
			return ErrNotDraft
		}
		out.audit = append(out.audit, s.invoiceEntry(ctx, access.ActionInvoiceDelete, inv, nil))
		return deleteDraft(ctx, tx, id)
	})
}

// updateLocked runs a transaction with an invoice locked. It returns db.ErrNotFound if
// the principal does not see the invoice.
func (s *Service) updateLocked(ctx context.Context, by access.Principal, id string, fn func(tx *db.Tx, out *outbox, inv invoice.Invoice) error) error {
	return s.update(ctx, func(tx *db.Tx, out *outbox) error {
		inv, err := lockInvoice(ctx, tx, id)
		if err != nil {
			return err
		}
		if !by.Sees(inv.MerchantID) {
			return db.ErrNotFound
		}
		return fn(tx, out, inv)
	})
}

// auditedInvoice is an invoice in the audit log.
type auditedInvoice struct {
	Status   invoice.Status `json:"status"`
	Amount   string         `json:"amount"`
	Currency string         `json:"currency"`
	ChainKey string         `json:"chainKey"`
}

// invoiceEntry returns the audit entry of a change of an invoice. after is nil if the invoice is deleted.
func (s *Service) invoiceEntry(ctx context.Context, action access.Action, was invoice.Invoice, after *invoice.Invoice) access.Entry {
	audited := func(inv invoice.Invoice) auditedInvoice {
		return auditedInvoice{inv.Status, inv.Amount.String(), inv.Currency, inv.ChainKey}
	}
	c := access.Change{MerchantID: was.MerchantID, Action: action, Object: was.ID, Before: audited(was)}
	if after != nil {
		c.After = audited(*after)
	}
	return access.NewEntry(ctx, s.conf.Now(), c)
}
