package settle

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// taggedLimit bounds the payments of an invoice that a refund is looked for
// among, when its calldata names the invoice.
const taggedLimit = 1000

// pairBook are the newest payments between two invoices that a refund is
// looked for among. Those that were refunds themselves are left out.
type pairBook map[string]invoice.Payment // by id

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

// wasPaid notes a payment that could be paid back.
func (w *workbook) wasPaid(p invoice.Payment) {
	pair := store.Pair{Payer: p.From, Receiver: p.To}
	w.paid[pair] = true
	if book, ok := w.books[pair]; ok {
		book[p.ID] = p
	}
}

// refund stores a transfer out of a settlement address, if it pays back a
// payment.
func (w *workbook) refund(ctx context.Context, e *entry) error {
	was, known := w.refunds[e.refundID]
	if was.Status == invoice.Confirmed {
		return nil
	}
	r := was
	if !known {
		r.ID, r.ObservedAt = e.refundID, w.Now().Unix()
	}
	m, ok, err := w.paysBack(ctx, e)
	if err != nil || !ok {
		return err // one stored before stays orphaned
	}
	p := m.Payment
	r.Transfer = e.Transfer
	r.Status, r.ConfirmedAt = w.status()
	if e.BlockNumber <= w.line { // decided late
		r.Status, r.ConfirmedAt = invoice.Confirmed, w.Now().Unix()
	}
	r.PaymentID, r.InvoiceID, r.MerchantID = p.ID, p.InvoiceID, p.MerchantID
	if r.Status == invoice.Confirmed && r.Attributed() {
		w.refunded = append(w.refunded, r)
		if err := w.invoices.load(ctx, r.InvoiceID); err != nil {
			return err
		}
	}
	delete(w.books[store.Pair{Payer: e.From, Receiver: e.To}], e.paymentID) // it is no payment to pay back
	return w.saveRefund(ctx, was, r)
}

// noRefund takes back what was stored of a transfer as a refund, now that it is
// a payment. What is final stays.
func (w *workbook) noRefund(ctx context.Context, e *entry) error {
	was, known := w.refunds[e.refundID]
	if !known || was.Status != invoice.Pending {
		return nil
	}
	r := was
	r.Status = invoice.Orphaned
	return w.saveRefund(ctx, was, r)
}

func (w *workbook) saveRefund(ctx context.Context, was, is invoice.Refund) error {
	if err := w.save(ctx); err != nil { // the refund refers to its payment
		return err
	}
	if err := w.paidBack.replace(ctx, was, is); err != nil {
		return err
	}
	w.refunds[is.ID] = is
	return w.tx.SaveRefund(ctx, is)
}

// paysBack finds the payment that a transfer pays back: among the newest from
// the one account to the other, and those of the invoice that the transfer's
// calldata names.
func (w *workbook) paysBack(ctx context.Context, e *entry) (invoice.RefundMatch, bool, error) {
	book, err := w.book(ctx, e)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	named, err := w.taggedPayments(ctx, e.Transfer, book)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	if err := w.loadPaidBack(ctx, book, named); err != nil {
		return invoice.RefundMatch{}, false, err
	}
	var payments []invoice.Payment
	for id, p := range book {
		if _, ok := named[id]; !ok {
			payments = append(payments, p)
		}
	}
	for _, p := range named {
		payments = append(payments, p)
	}
	m, ok := invoice.AttributeRefund(e.Transfer, payments,
		func(p invoice.Payment) invoice.Amount {
			return p.Amount.Minus(w.paidBack.without(p.ID, w.refunds[e.refundID]))
		},
		func(p invoice.Payment) bool { _, ok := named[p.ID]; return ok })
	return m, ok, nil
}

// book returns the payments that a transfer between two invoices may pay back.
// They are read once, and kept up to date meanwhile.
func (w *workbook) book(ctx context.Context, e *entry) (pairBook, error) {
	if book, ok := w.books[e.pair()]; ok {
		return book, nil
	}
	if err := w.save(ctx); err != nil { // some may be of this workbook
		return nil, err
	}
	last := w.entries[len(w.entries)-1].BlockNumber
	rows, err := w.tx.PaymentsBetween(ctx, w.chainKey, e.To, e.From, last)
	if err != nil {
		return nil, err
	}
	book := make(pairBook, len(rows))
	for _, row := range rows {
		book[row.ID] = row.Payment
	}
	if e.paymentID != "" {
		if err := w.dropRefunds(ctx, book); err != nil {
			return nil, err
		}
	}
	w.books[e.pair()] = book
	return book, nil
}

func (w *workbook) loadPaidBack(ctx context.Context, books ...pairBook) error {
	var ids []string
	for _, book := range books {
		for id := range book {
			ids = append(ids, id)
		}
	}
	return w.paidBack.load(ctx, ids...)
}

// dropRefunds deletes the payments that were refunds themselves, which only
// those between settlement addresses can be.
func (w *workbook) dropRefunds(ctx context.Context, book pairBook) error {
	ofRefund := make(map[string]string)
	ids := make([]string, 0, len(book))
	for id, p := range book {
		refundID := invoice.TransferID(invoice.PrefixRefund, p.ChainKey, p.TxHash, p.Ordinal)
		ofRefund[refundID] = id
		ids = append(ids, refundID)
	}
	refunds, err := w.tx.RefundsByID(ctx, ids)
	for _, r := range refunds {
		if r.Status != invoice.Orphaned {
			delete(book, ofRefund[r.ID])
		}
	}
	return err
}

// taggedPayments returns the payments of the invoice that the transfer's
// calldata names, the newest, by id: those of the book, or else those that are
// too old to be there.
func (w *workbook) taggedPayments(ctx context.Context, t invoice.Transfer, book pairBook) (pairBook, error) {
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
	named := make(pairBook)
	for id, p := range book {
		if p.InvoiceID == inv.ID {
			named[id] = p
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	if older, ok := w.named[inv.ID]; ok {
		return older, nil
	}
	rows, err := w.tx.NewestPayments(ctx, inv.ID, taggedLimit)
	for _, row := range rows {
		named[row.ID] = row.Payment
	}
	w.named[inv.ID] = named
	return named, err
}
