package settle

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// loadRefunds finds out which of the transfers out of a settlement address go
// to an account that paid there. Other transfers out of it are the merchant's
// own business.
func (w *workbook) loadRefunds(ctx context.Context) error {
	var ids []string
	var pairs []store.Pair
	for _, e := range w.entries {
		if e.refundID != "" {
			ids, pairs = append(ids, e.refundID), append(pairs, e.pair())
		}
	}
	stored, err := w.tx.RefundsByID(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range stored {
		w.refunds[r.ID] = r
	}
	w.paid, err = w.tx.PaidPairs(ctx, w.chainKey, pairs)
	return err
}

// refund stores a transfer out of a settlement address, if it pays back a
// payment.
func (w *workbook) refund(ctx context.Context, e *entry) error {
	r, known := w.refunds[e.refundID]
	if r.Status == invoice.Confirmed {
		return nil
	}
	if !known {
		r.ID, r.ObservedAt = e.refundID, w.Now().Unix()
	}
	p, ok, err := w.paidBack(ctx, e.Transfer, r.ID)
	if err != nil || !ok {
		return err // one stored before stays orphaned
	}
	r.Transfer = e.Transfer
	r.Status, r.ConfirmedAt = w.status()
	r.PaymentID, r.InvoiceID, r.MerchantID = p.ID, p.InvoiceID, p.MerchantID
	w.refunds[r.ID] = r
	if w.final {
		w.refunded = append(w.refunded, r)
		if err := w.accounts.load(ctx, r.InvoiceID); err != nil {
			return err
		}
	}
	return w.tx.SaveRefund(ctx, r)
}

// paidBack finds the payment that a transfer pays back: among the newest from
// the one account to the other, and those of the invoice that the transfer's
// calldata names.
func (w *workbook) paidBack(ctx context.Context, t invoice.Transfer, refundID string) (invoice.Payment, bool, error) {
	rows, err := w.tx.PaymentsBetween(ctx, t.ChainKey, t.To, t.From, t.BlockNumber)
	if err != nil || len(rows) == 0 {
		return invoice.Payment{}, false, err
	}
	tagged, err := w.taggedPayments(ctx, t)
	if err != nil {
		return invoice.Payment{}, false, err
	}
	byID := make(map[string]invoice.Payment)
	named := make(map[string]bool)
	for _, row := range rows {
		byID[row.ID] = row.Payment
	}
	for _, row := range tagged {
		byID[row.ID], named[row.ID] = row.Payment, true
	}
	refunds, err := w.tx.RefundsOfPayments(ctx, slices.Collect(maps.Keys(byID)))
	if err != nil {
		return invoice.Payment{}, false, err
	}
	back := make(map[string]invoice.Amount)
	for _, r := range refunds {
		if r.ID != refundID && r.Status != invoice.Orphaned {
			back[r.PaymentID] = back[r.PaymentID].Plus(r.Amount)
		}
	}
	p, ok := invoice.AttributeRefund(t, slices.Collect(maps.Values(byID)),
		func(p invoice.Payment) invoice.Amount { return p.Amount.Minus(back[p.ID]) },
		func(p invoice.Payment) bool { return named[p.ID] })
	return p, ok, nil
}

// taggedPayments returns the payments of the invoice that the transfer's
// calldata names.
func (w *workbook) taggedPayments(ctx context.Context, t invoice.Transfer) ([]store.PaymentRow, error) {
	if t.Evidence.Calldata.IsZero() {
		return nil, nil
	}
	inv, err := w.tx.InvoiceByCommitment(ctx, t.Evidence.Calldata)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return w.tx.PaymentsOfInvoices(ctx, []string{inv.ID})
}
