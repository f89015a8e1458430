package settle

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// taggedLimit bounds the payments of an invoice that a refund is looked for
// among, when its calldata names the invoice.
const taggedLimit = 1000

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
	m, ok, err := w.paidBack(ctx, e)
	if err != nil || !ok {
		return err // one stored before stays orphaned
	}
	p := m.Payment
	r.Transfer = e.Transfer
	r.Status, r.ConfirmedAt = w.status()
	r.PaymentID, r.InvoiceID, r.MerchantID = p.ID, p.InvoiceID, p.MerchantID
	w.refunds[r.ID] = r
	if w.final && r.Attributed() {
		w.refunded = append(w.refunded, r)
		if err := w.accounts.load(ctx, r.InvoiceID); err != nil {
			return err
		}
	}
	return w.tx.SaveRefund(ctx, r)
}

// noRefund takes back what was stored of a transfer as a refund, now that it is
// a payment. What is final stays.
func (w *workbook) noRefund(ctx context.Context, e *entry) error {
	r, known := w.refunds[e.refundID]
	if !known || r.Status != invoice.Pending {
		return nil
	}
	r.Status = invoice.Orphaned
	w.refunds[r.ID] = r
	return w.tx.SaveRefund(ctx, r)
}

// paidBack finds the payment that a transfer pays back: among the newest from
// the one account to the other, and those of the invoice that the transfer's
// calldata names. What was itself a refund is no payment to pay back.
func (w *workbook) paidBack(ctx context.Context, e *entry) (invoice.RefundMatch, bool, error) {
	if err := w.save(ctx); err != nil { // the payment may be one of this workbook's
		return invoice.RefundMatch{}, false, err
	}
	t := e.Transfer
	rows, err := w.tx.PaymentsBetween(ctx, t.ChainKey, t.To, t.From, t.BlockNumber)
	if err != nil || len(rows) == 0 {
		return invoice.RefundMatch{}, false, err
	}
	tagged, err := w.taggedPayments(ctx, t)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	byID := make(map[string]invoice.Payment)
	named := make(map[string]bool)
	for _, row := range rows {
		byID[row.ID] = row.Payment
	}
	for _, row := range tagged {
		byID[row.ID], named[row.ID] = row.Payment, true
	}
	if e.paymentID != "" {
		if err := w.dropRefunds(ctx, byID); err != nil {
			return invoice.RefundMatch{}, false, err
		}
	}
	refunds, err := w.tx.RefundsOfPayments(ctx, slices.Collect(maps.Keys(byID)))
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	back := make(map[string]invoice.Amount)
	for _, r := range refunds {
		if r.ID != e.refundID && r.Status != invoice.Orphaned {
			back[r.PaymentID] = back[r.PaymentID].Plus(r.Amount)
		}
	}
	m, ok := invoice.AttributeRefund(t, slices.Collect(maps.Values(byID)),
		func(p invoice.Payment) invoice.Amount { return p.Amount.Minus(back[p.ID]) },
		func(p invoice.Payment) bool { return named[p.ID] })
	return m, ok, nil
}

// dropRefunds deletes the payments that were refunds themselves, which only
// those between settlement addresses can be.
func (w *workbook) dropRefunds(ctx context.Context, payments map[string]invoice.Payment) error {
	ofRefund := make(map[string]string)
	for id, p := range payments {
		ofRefund[invoice.TransferID(invoice.PrefixRefund, p.ChainKey, p.TxHash, p.Ordinal)] = id
	}
	refunds, err := w.tx.RefundsByID(ctx, slices.Collect(maps.Keys(ofRefund)))
	for _, r := range refunds {
		if r.Status != invoice.Orphaned {
			delete(payments, ofRefund[r.ID])
		}
	}
	return err
}

// taggedPayments returns the payments of the invoice that the transfer's
// calldata names, the newest.
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
	return w.tx.NewestPayments(ctx, inv.ID, taggedLimit)
}
