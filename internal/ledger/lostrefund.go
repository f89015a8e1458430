package ledger

import (
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// LostRefundReason is the reason of a prepared refund with a record that was made from its transfer.
const LostRefundReason = "Recovered from the chain: the database had lost what was prepared"

// restoredRecords are the records of prepared refunds that a decision restores.
type restoredRecords struct {
	byTag     map[invoice.Hash]invoice.RefundRecord
	ofPayment map[string][]invoice.RefundRecord
	ids       map[string]bool
	stored    map[string]int // the number of prepared refunds that payments had before, by payment
}

// mayRestore reports whether a payment has fewer prepared refunds than invoice.MaxPreparedRefunds. Anyone who controls a
// settlement address can send many transfers with tags.
func (ch *Changes) mayRestore(paymentID string) bool {
	n, counted := ch.restored.stored[paymentID]
	if !counted {
		records, known := ch.before.recordsOf.of(paymentID)
		for _, r := range records {
			if r.Prepared() {
				n++
			}
		}
		if known {
			ch.restored.stored[paymentID] = n
		}
	}
	return n+len(ch.restored.ofPayment[paymentID]) < invoice.MaxPreparedRefunds
}

// restorePrepared makes the record of a prepared refund that the database has lost, if the tag of the
// transfer names a payment that it refunds. Without the record, the money would be offered again after
// a restored backup. A payment with too many prepared refunds gets no more. Then the tag has no meaning.
func (ch *Changes) restorePrepared(e *entry) {
	tag := e.Evidence.Calldata
	paymentID, refundID, preparedAt, ok := invoice.ParseRefundTag(tag)
	if !ok || e.refundID == "" {
		return
	}
	was, _ := ch.refund(e.refundID)
	paid, _ := ch.payment(e.paymentID)
	if was.Status == invoice.Confirmed || paid.Attributed() {
		return
	}
	if slices.ContainsFunc(ch.namedPrepared(e), func(r invoice.RefundRecord) bool { return r.Tag == tag }) {
		return
	}
	p, ok := ch.payment(paymentID)
	if !ok || !paysBack(e, p.Payment) || e.Amount.IsZero() || !ch.mayRestore(p.ID) {
		return
	}
	if left := p.Amount.Minus(ch.refundedWithout(p.ID, was)); left.Less(e.Amount) {
		return
	}
	if ch.before.recorded.get(refundID) || ch.isRefund(refundID) {
		return // the id is another refund's
	}
	r := invoice.RefundRecord{ID: refundID, Tag: tag, CreatedAt: preparedAt.Truncate(time.Second)}
	ch.restoreRecord(e, p.Payment, r)
}

// namesUndecided reports whether the tag of a transfer names an undecided payment. Its settlement address may be known
// only once it has an invoice.
func (ch *Changes) namesUndecided(e *entry) bool {
	paymentID, _, _, ok := invoice.ParseRefundTag(e.Evidence.Calldata)
	return ok && !ch.chain.deferred && ch.isUndecided(paymentID)
}

// namesLost reports whether the tag of a transfer names a payment at the deposit address of a lost invoice or, in a lost
// past, one that is not read yet. The transfer refunds that payment, once the invoice is imported, and no other one.
func (ch *Changes) namesLost(e *entry) bool {
	paymentID, _, _, ok := invoice.ParseRefundTag(e.Evidence.Calldata)
	if !ok {
		return false
	}
	p, known := ch.payment(paymentID)
	if !known { // one in 64 ids of invoices looks like a tag
		return ch.chain.isLost(e.BlockNumber) && ch.before.named.get(e.Evidence.Calldata) == ""
	}
	return p.SettlesTo.IsZero() && isLostDeposit(ch.before.deposits.get(p.To))
}

// isRefund reports whether a refund of this decision has an id. A transfer's sender chooses the id in its tag.
func (ch *Changes) isRefund(id string) bool {
	_, changed := ch.refunds[id]
	return changed || ch.restored.ids[id]
}

// paysBack reports whether a transfer can be a refund of a payment.
func paysBack(e *entry, p invoice.Payment) bool {
	return p.ChainKey == e.ChainKey && p.Token == e.Token && p.RefundedFrom() == e.From && p.Status != invoice.Orphaned && p.Before(e.Position)
}

// restoreRecord completes the record of a refund from its transfer and its payment.
func (ch *Changes) restoreRecord(e *entry, p invoice.Payment, r invoice.RefundRecord) {
	// The sender of the transfer chooses the id, and with it the time.
	r.CreatedAt = clock.Earlier(clock.Later(r.CreatedAt, p.BlockTime), e.BlockTime)
	r.PaymentID, r.InvoiceID, r.MerchantID, r.ChainKey = p.ID, p.InvoiceID, p.MerchantID, p.ChainKey
	r.Token, r.Currency, r.From, r.Payer, r.Amount, r.To = p.Token, p.Currency, e.From, p.From, e.Amount, e.To
	r.Status, r.Reason, r.Account, r.ExpiresAt = invoice.RefundPending, LostRefundReason, invoice.AccountUnknown, r.CreatedAt.Add(invoice.RefundLifetime)
	ch.effects.restored = append(ch.effects.restored, r)
	ch.restored.byTag[r.Tag], ch.restored.ids[r.ID] = r, true
	ch.restored.ofPayment[p.ID] = append(ch.restored.ofPayment[p.ID], r)
}
