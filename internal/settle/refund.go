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

// paymentSet are the newest payments between two invoices that a refund is
// looked for among. Those that were refunds themselves are left out.
type paymentSet map[string]invoice.Payment // by id

// loadRefunds finds out which of the transfers out of a settlement address go
// to an account that paid there. Other transfers out of it are the merchant's
// own business.
func (b *transferBatch) loadRefunds(ctx context.Context) error {
	var ids []string
	var pairs []store.Pair
	for _, e := range b.entries {
		if e.refundID != "" {
			ids, pairs = append(ids, e.refundID), append(pairs, e.pair())
		}
	}
	stored, err := b.tx.RefundsByID(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range stored {
		b.refunds[r.ID] = r
	}
	b.paidPairs, err = b.tx.PaidPairs(ctx, b.chainKey, pairs)
	return err
}

// wasPaid notes a payment that could be paid back.
func (b *transferBatch) addRefundable(p invoice.Payment) {
	pair := store.Pair{Payer: p.From, Receiver: p.To}
	b.paidPairs[pair] = true
	if book, ok := b.refundable[pair]; ok {
		book[p.ID] = p
	}
}

// refund stores a transfer out of a settlement address, if it pays back a
// payment.
func (b *transferBatch) storeRefund(ctx context.Context, e *entry) error {
	was, known := b.refunds[e.refundID]
	if was.Status == invoice.Confirmed {
		return nil
	}
	r := was
	if !known {
		r.ID, r.ObservedAt = e.refundID, b.Now().Unix()
	}
	m, ok, err := b.matchRefund(ctx, e)
	if err != nil || !ok {
		return err // one stored before stays orphaned
	}
	p := m.Payment
	r.Transfer = e.Transfer
	r.Status, r.ConfirmedAt = b.status()
	if e.BlockNumber <= b.line { // decided late
		r.Status, r.ConfirmedAt = invoice.Confirmed, b.Now().Unix()
	}
	r.PaymentID, r.InvoiceID, r.MerchantID = p.ID, p.InvoiceID, p.MerchantID
	if r.Status == invoice.Confirmed && r.Attributed() {
		b.refunded = append(b.refunded, r)
		if err := b.invoices.load(ctx, r.InvoiceID); err != nil {
			return err
		}
	}
	delete(b.refundable[store.Pair{Payer: e.From, Receiver: e.To}], e.paymentID) // it is no payment to pay back
	return b.saveRefund(ctx, was, r)
}

// noRefund takes back what was stored of a transfer as a refund, now that it is
// a payment. What is final stays.
func (b *transferBatch) orphanRefund(ctx context.Context, e *entry) error {
	was, known := b.refunds[e.refundID]
	if !known || was.Status != invoice.Pending {
		return nil
	}
	r := was
	r.Status = invoice.Orphaned
	return b.saveRefund(ctx, was, r)
}

func (b *transferBatch) saveRefund(ctx context.Context, was, is invoice.Refund) error {
	if err := b.save(ctx); err != nil { // the refund refers to its payment
		return err
	}
	if err := b.refundSums.replace(ctx, was, is); err != nil {
		return err
	}
	b.refunds[is.ID] = is
	return b.tx.SaveRefund(ctx, is)
}

// paysBack finds the payment that a transfer pays back: among the newest from
// the one account to the other, and those of the invoice that the transfer's
// calldata names.
func (b *transferBatch) matchRefund(ctx context.Context, e *entry) (invoice.RefundMatch, bool, error) {
	book, err := b.refundablePayments(ctx, e)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	named, err := b.taggedPayments(ctx, e.Transfer, book)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	if err := b.loadRefunded(ctx, book, named); err != nil {
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
			return p.Amount.Minus(b.refundSums.without(p.ID, b.refunds[e.refundID]))
		},
		func(p invoice.Payment) bool { _, ok := named[p.ID]; return ok })
	return m, ok, nil
}

// book returns the payments that a transfer between two invoices may pay back.
// They are read once, and kept up to date meanwhile.
func (b *transferBatch) refundablePayments(ctx context.Context, e *entry) (paymentSet, error) {
	if book, ok := b.refundable[e.pair()]; ok {
		return book, nil
	}
	if err := b.save(ctx); err != nil { // some may be of this transferBatch
		return nil, err
	}
	last := b.entries[len(b.entries)-1].BlockNumber
	rows, err := b.tx.PaymentsBetween(ctx, b.chainKey, e.To, e.From, last)
	if err != nil {
		return nil, err
	}
	book := make(paymentSet, len(rows))
	for _, row := range rows {
		book[row.ID] = row.Payment
	}
	if e.paymentID != "" {
		if err := b.dropRefunds(ctx, book); err != nil {
			return nil, err
		}
	}
	b.refundable[e.pair()] = book
	return book, nil
}

func (b *transferBatch) loadRefunded(ctx context.Context, books ...paymentSet) error {
	var ids []string
	for _, book := range books {
		for id := range book {
			ids = append(ids, id)
		}
	}
	return b.refundSums.load(ctx, ids...)
}

// dropRefunds deletes the payments that were refunds themselves, which only
// those between settlement addresses can be.
func (b *transferBatch) dropRefunds(ctx context.Context, book paymentSet) error {
	ofRefund := make(map[string]string)
	ids := make([]string, 0, len(book))
	for id, p := range book {
		refundID := invoice.TransferID(invoice.PrefixRefund, p.ChainKey, p.TxHash, p.Ordinal)
		ofRefund[refundID] = id
		ids = append(ids, refundID)
	}
	refunds, err := b.tx.RefundsByID(ctx, ids)
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
func (b *transferBatch) taggedPayments(ctx context.Context, t invoice.Transfer, book paymentSet) (paymentSet, error) {
	if t.Evidence.Calldata.IsZero() {
		return nil, nil
	}
	inv, err := b.tx.InvoiceByCommitment(ctx, t.Evidence.Calldata)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	named := make(paymentSet)
	for id, p := range book {
		if p.InvoiceID == inv.ID {
			named[id] = p
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	if older, ok := b.tagged[inv.ID]; ok {
		return older, nil
	}
	rows, err := b.tx.NewestPayments(ctx, inv.ID, taggedLimit)
	for _, row := range rows {
		named[row.ID] = row.Payment
	}
	b.tagged[inv.ID] = named
	return named, err
}
