package ledger

import (
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// maxTagged bounds the payments of an invoice that are candidates for a refund with calldata that names the invoice.
const maxTagged = 1000

// storeOutgoing stores a transfer out of a settlement address as a refund, unless it is an attributed or undecided
// payment. Above blocks that were never read it is deferred, because they may hold the payment that it refunds, unless
// its calldata names a prepared refund. It is also deferred if its tag names an undecided payment.
func (ch *Changes) storeOutgoing(e *entry) {
	if e.refundID == "" || e.paymentID != "" && ch.isUndecided(e.paymentID) {
		return
	}
	p, _ := ch.payment(e.paymentID)
	switch {
	case p.Attributed():
		ch.orphanRefund(e)
	case ch.isNamed(e): // its payment is known
		ch.storeRefund(e)
	case ch.chain.isAboveUnread(e.Position), ch.namesUndecided(e):
		ch.effects.deferred = append(ch.effects.deferred, e.Transfer)
		return
	case ch.mayRefund(e) && !ch.namesLost(e):
		ch.storeRefund(e)
	}
	ch.endAwait(e.refundID)
}

// storeRefund stores a transfer as a refund, if it refunds a payment.
func (ch *Changes) storeRefund(e *entry) {
	was, known := ch.refund(e.refundID)
	if was.Status == invoice.Confirmed {
		return
	}
	r := was
	if !known {
		r.ID, r.ObservedAt = e.refundID, ch.chain.now
	}
	m, ok := ch.matchRefund(e)
	if !ok && known {
		m, ok = ch.keptMatch(was, e)
	}
	if !ok || ch.before.lacking {
		return
	}
	r.Transfer = e.Transfer
	r.Status, r.ConfirmedAt = ch.status(e.Position)
	if e.BlockNumber <= ch.chain.finalized { // its attribution was deferred
		r.Status, r.ConfirmedAt = invoice.Confirmed, ch.chain.confirmedAt(e.Position)
	}
	r = matched(r, m)
	if r.Status == invoice.Confirmed && r.Attributed() {
		ch.refunded = append(ch.refunded, r)
	}
	if ch.isNamed(e) && !ch.proved[e.From] {
		ch.proved[e.From] = true
		ch.effects.proofs = append(ch.effects.proofs, r)
	}
	if p, ok := ch.payment(e.paymentID); ok {
		ch.notRefundable(p.Payment) // a refund is not refunded
	}
	ch.saveRefund(was, r)
}

// matched returns a refund with the matching payment.
func matched(r invoice.Refund, m invoice.RefundMatch) invoice.Refund {
	p := m.Payment
	r.PaymentID, r.InvoiceID, r.MerchantID, r.PreparedID = p.ID, p.InvoiceID, p.MerchantID, m.PreparedID
	return r
}

// orphanRefund orphans the refund that a transfer was stored as, now that it is a payment. The event of a
// confirmed one stays sent.
func (ch *Changes) orphanRefund(e *entry) {
	was, known := ch.refund(e.refundID)
	if !known {
		return
	}
	ch.returning = append(ch.returning, was.PaymentID)
	if isActive(was) {
		ch.saveRefund(was, ch.uncounted(was))
	}
}

// uncounted returns a refund as an orphaned one, and takes it out of the sum of its invoice.
func (ch *Changes) uncounted(r invoice.Refund) invoice.Refund {
	if r.Status == invoice.Confirmed && r.Attributed() {
		ch.putInvoice(ch.invoice(r.InvoiceID).WithoutRefund(r))
	}
	r.Status, r.ConfirmedAt = invoice.Orphaned, time.Time{}
	return r
}

// saveRefund replaces a refund, and what depends on it.
func (ch *Changes) saveRefund(was, is invoice.Refund) {
	ch.recountBelow(is.BlockNumber)
	ch.replaceRefund(was, is)
	ch.markRefund(is.ID)
	ch.endWaiver(was, is)
	if was.PaymentID != "" && was.PaymentID != is.PaymentID {
		ch.effects.judged = append(ch.effects.judged, was.PaymentID)
	}
	ch.countConfirmed(is.BlockNumber)
	ch.settleBelow(is.InvoiceID, is.BlockNumber)
	ch.markReturned(was, is)
}

// endWaiver takes back that the rest of an invoice's amount was waived, once a payment that counts for
// the invoice is sent back. A person waived the rest because that payment had arrived.
func (ch *Changes) endWaiver(was, is invoice.Refund) {
	if !isActive(is) || !is.Attributed() || isActive(was) && was.PaymentID == is.PaymentID {
		return
	}
	p, ok := ch.payment(is.PaymentID)
	if !ok || !p.Attributed() || ch.waived[p.InvoiceID] {
		return
	}
	waiver := ch.before.waivers.get(p.InvoiceID)
	if waiver.ID == "" || ch.invoice(p.InvoiceID).IsLate(p.Position) {
		return
	}
	ch.waived[p.InvoiceID] = true
	ch.effects.waivers = append(ch.effects.waivers, endedWaiver{waiver, is.ID})
}

// matchRefund returns the payment that a transfer refunds. It is the payment of the prepared refund
// that the transfer pays. Without one, it is a payment of the invoice that the calldata names. Without
// that, and if the transfer is trusted, it is one of the newest payments between the two accounts.
func (ch *Changes) matchRefund(e *entry) (invoice.RefundMatch, bool) {
	if m, decided := ch.matchPrepared(e); decided || ch.before.lacking {
		return m, m.Payment.ID != ""
	}
	was, _ := ch.refund(e.refundID)
	payments := ch.refundablePayments(e)
	tag, tagged := ch.taggedPayments(e, payments)
	if tag != "" {
		payments = tagged
	} else if !ch.trusts(e) {
		return invoice.RefundMatch{}, false
	}
	if ch.before.lacking {
		return invoice.RefundMatch{}, false
	}
	if p, ok := ch.payment(was.PaymentID); ok && isActive(was) {
		payments = slices.Clone(payments)
		payments.setLeft(p.Payment, ch.left(p.Payment, was))
	}
	return invoice.AttributeRefund(e.Transfer, payments, tag)
}

// trusts reports whether a transfer that names no refund can be one. A transfer from a settlement
// address to another one can be a refund only if the holder of the sending address has proved control
// of it. Otherwise the sender may be an exchange's account that pays for the exchange's customers.
func (ch *Changes) trusts(e *entry) bool {
	return e.paymentID == "" || ch.proved[e.From] || ch.before.proved.get(e.From)
}

// mayRefund reports whether a transfer out of a settlement address can be a refund: to an
// account that paid there, or one that was prepared.
func (ch *Changes) mayRefund(e *entry) bool {
	if pair := e.refundPair(); len(ch.ofPair[pair]) > 0 || ch.before.paidPairs.get(pair) {
		return true
	}
	_, _, ok := ch.preparedFor(e)
	return ok
}

// moveRefunds counts the confirmed refunds of a payment at another invoice than before. Only a
// refund that a reorg left without its payment is confirmed before that.
func (ch *Changes) moveRefunds(was, is invoice.Payment) {
	for _, r := range ch.confirmedRefunds(is.ID) {
		isUncounted := func(u invoice.Refund) bool { return u.ID == r.ID }
		if slices.ContainsFunc(ch.refunded, isUncounted) {
			ch.refunded = slices.DeleteFunc(ch.refunded, isUncounted)
		} else if was.Attributed() {
			ch.putInvoice(ch.invoice(was.InvoiceID).WithoutRefund(r))
		}
		r.InvoiceID, r.MerchantID = is.InvoiceID, is.MerchantID
		if is.Attributed() {
			ch.refunded = append(ch.refunded, r)
		}
	}
}
