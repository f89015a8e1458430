package ledger

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// A reorg can drop a payment and not its refund. The money has left, so the refund keeps the payment,
// which is then orphaned. If the payment is mined again with different money, its refunds are judged
// again.

// keptMatch returns the payment that a stored refund keeps although none matches its transfer.
// ok is false if the payment is of other accounts, or less is left of it.
func (ch *Changes) keptMatch(was invoice.Refund, e *entry) (m invoice.RefundMatch, ok bool) {
	p, ok := ch.payment(was.PaymentID)
	if !ok {
		return m, false
	}
	left := p.Amount.Minus(ch.refundedWithout(p.ID, was))
	m = invoice.RefundMatch{Payment: p.Payment, PreparedID: was.PreparedID}
	return m, p.KeepsRefund(was, e.Transfer) && !left.Less(e.Amount)
}

// judgeRefunds judges the refunds of a payment again that moves other money than before. A
// confirmed one is final and stays. A pending one stays if it still refunds the payment, within
// what is left of it, and is matched again otherwise.
func (ch *Changes) judgeRefunds(p invoice.Payment) {
	refunds := ch.refundsOf(p.ID)
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
			ch.matchAgain(r)
		}
	}
}

// matchAgain stores a pending refund as one of the payment that matches it now, or orphans it
// if none does. It was not prepared, because only refunds of final payments are.
func (ch *Changes) matchAgain(was invoice.Refund) {
	e := &entry{Transfer: was.Transfer, refundID: was.ID}
	id := ch.before.transferID(invoice.PrefixPayment, e.Transfer)
	if _, ok := ch.payment(id); ok {
		e.paymentID = id
	}
	ch.keepRefund(was)
	is := was
	if m, ok := ch.matchRefund(e); ok {
		is = matched(was, m)
	} else {
		is.Status = invoice.Orphaned
	}
	ch.saveRefund(was, is)
}
