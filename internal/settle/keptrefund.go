package settle

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// A reorg can drop a payment and not its refund. The money has left, so the refund keeps the payment,
// which is then orphaned. If the payment is mined again with different money, its refunds are judged
// again.

// keptMatch returns the payment that a stored refund keeps although no payment matches its transfer.
// ok is false if the payment is between other accounts, or less is left of it.
func (b *transferBatch) keptMatch(ctx context.Context, was invoice.Refund, e *entry) (m invoice.RefundMatch, ok bool, err error) {
	p, ok, err := b.payment(ctx, was.PaymentID)
	if err != nil || !ok {
		return m, false, err
	}
	if err := b.refundSums.load(ctx, p.ID); err != nil {
		return m, false, err
	}
	left := p.Amount.Minus(b.refundSums.without(p.ID, was))
	return invoice.RefundMatch{Payment: p, PreparedID: was.PreparedID}, p.KeepsRefund(was, e.Transfer) && !left.Less(e.Amount), nil
}

// payment returns a payment of the batch, or a stored one. ok is false if neither exists.
func (b *transferBatch) payment(ctx context.Context, id string) (p invoice.Payment, ok bool, err error) {
	if row, ok := b.payments[id]; ok {
		return row.Payment, true, nil
	}
	rows, err := PaymentsByID(ctx, b.tx, []string{id})
	if err != nil || len(rows) == 0 {
		return p, false, err
	}
	return rows[0].Payment, true, nil
}

// judgeRefunds judges again the refunds of a payment that transfers different money than before. A
// confirmed one is final and stays. A pending one stays if it still refunds the payment, within its
// remaining amount, and is matched again otherwise.
func (b *transferBatch) judgeRefunds(ctx context.Context, p invoice.Payment) error {
	if err := b.save(ctx); err != nil { // the refunds are read with the payment's invoice
		return err
	}
	refunds, err := RefundsOfPayments(ctx, b.tx, []string{p.ID})
	if err != nil {
		return err
	}
	slices.SortFunc(refunds, func(a, b invoice.Refund) int { return a.Compare(b.Position) })
	left := p.Amount
	for _, r := range refunds {
		if r.Status == invoice.Confirmed {
			left = left.Minus(r.Amount)
		}
	}
	for _, r := range refunds {
		switch {
		case r.Status != invoice.Pending:
		case p.KeepsRefund(r, r.Transfer) && !left.Less(r.Amount):
			left = left.Minus(r.Amount)
		default:
			if err := b.matchAgain(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// matchAgain stores a pending refund with the payment that matches it now, or orphans it without a
// match. It was not prepared, because only refunds of final payments are.
func (b *transferBatch) matchAgain(ctx context.Context, was invoice.Refund) error {
	e := &entry{Transfer: was.Transfer, refundID: was.ID}
	id := b.tx.TransferID(invoice.PrefixPayment, e.Transfer)
	if _, ok, err := b.payment(ctx, id); err != nil {
		return err
	} else if ok {
		e.paymentID = id
	}
	b.refunds[was.ID] = was
	m, ok, err := b.matchRefund(ctx, e)
	if err != nil {
		return err
	}
	is := was
	if ok {
		is = matched(was, m)
	} else {
		is.Status = invoice.Orphaned
	}
	return b.saveRefund(ctx, was, is)
}

// moveRefunds counts the confirmed refunds of a payment at another invoice than before. A refund is
// confirmed before that only if a reorg dropped its payment but not the refund.
func (b *transferBatch) moveRefunds(ctx context.Context, was, is invoice.Payment) error {
	refunds, err := confirmedRefunds(ctx, b.tx, is.ID)
	if err != nil || len(refunds) == 0 {
		return err
	}
	if err := b.invoices.load(ctx, was.InvoiceID, is.InvoiceID); err != nil {
		return err
	}
	for _, r := range refunds {
		isUncounted := func(u invoice.Refund) bool { return u.ID == r.ID }
		if slices.ContainsFunc(b.refunded, isUncounted) {
			b.refunded = slices.DeleteFunc(b.refunded, isUncounted)
		} else if was.Attributed() {
			b.invoices.put(b.invoices.byID[was.InvoiceID].WithoutRefund(r))
		}
		r.InvoiceID, r.MerchantID = is.InvoiceID, is.MerchantID
		if is.Attributed() {
			b.refunded = append(b.refunded, r)
		}
	}
	return nil
}
