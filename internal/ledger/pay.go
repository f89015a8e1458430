package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ErrAmount is the error of an amount that the link does not take.
var ErrAmount = errors.New("the link does not take the amount")

// UnusableError is the error of a link with invoices that break a current rule, for example because
// the merchant's list of allowed addresses was changed.
type UnusableError struct {
	ID     string // of the link
	Reason *invoice.FieldError
}

// Error names the link and the rule.
func (e *UnusableError) Error() string { return "payment link " + e.ID + ": " + e.Reason.Error() }

// Find returns the merchant's link with the slug, or the newest one if all are archived, or db.ErrNotFound.
func (m *PaymentLinkManager) Find(ctx context.Context, merchantID, slug string) (invoice.PaymentLink, error) {
	if !invoice.ValidMerchantID(merchantID) || !invoice.ValidSlug(slug) {
		return invoice.PaymentLink{}, db.ErrNotFound // not every text is valid in a database
	}
	return PaymentLinkBySlug(ctx, m.conf.Store, merchantID, slug)
}

// OfInvoice returns the link from which an invoice was made, or db.ErrNotFound.
func (m *PaymentLinkManager) OfInvoice(ctx context.Context, inv invoice.Invoice) (invoice.PaymentLink, error) {
	id := inv.Details.Metadata[invoice.MetadataPaymentLink]
	if id == "" {
		return invoice.PaymentLink{}, db.ErrNotFound
	}
	l, err := PaymentLink(ctx, m.conf.Store, id)
	if err == nil && l.MerchantID != inv.MerchantID { // a merchant writes metadata
		err = db.ErrNotFound
	}
	return l, err
}

// Pay returns an invoice of a link for an amount, which is the link's amount unless the payer enters
// it. visit names an opening of the link's page: with the same visit and amount, Pay returns the same
// invoice for IdempotencyWindow, unless the link was changed. Errors are ErrAmount, ErrArchived,
// *UnusableError, ErrIdempotencyInProgress and internal errors.
func (m *PaymentLinkManager) Pay(ctx context.Context, l invoice.PaymentLink, amount invoice.Amount, visit string) (invoice.Invoice, error) {
	switch {
	case l.Archived:
		return invoice.Invoice{}, ErrArchived
	case !l.IsFree() && amount != l.Amount, !l.Takes(amount):
		return invoice.Invoice{}, ErrAmount
	}
	name := sha256.Sum256(fmt.Appendf(nil, "%q %s %+v", visit, amount, l.PaymentLinkTerms))
	const serial = 10 // characters
	inv, err := m.conf.Ledger.Create(ctx, CreateRequest{
		Draft: l.Draft(amount, invoice.Text(name[:])[:serial]), Lifetime: l.Lifetime,
		Once: Once{Key: invoice.Text(name[:]), Scope: "payment link " + l.ID}, ByMerchant: true,
	})
	if wrong := (*invoice.FieldError)(nil); errors.As(err, &wrong) {
		err = &UnusableError{ID: l.ID, Reason: wrong}
	}
	return inv, err
}
