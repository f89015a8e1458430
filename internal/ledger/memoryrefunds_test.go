package ledger

import (
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// refundsOf returns the refunds of a payment.
func (m *memory) refundsOf(paymentID string) (all []invoice.Refund) {
	for _, id := range slices.Sorted(maps.Keys(m.refunds)) {
		if r := m.refund(id); r.PaymentID == paymentID {
			all = append(all, r)
		}
	}
	return all
}

// prepared returns the prepared refunds that are wanted, the oldest first.
func (m *memory) prepared(wanted func(invoice.RefundRecord) bool) (found []invoice.RefundRecord) {
	for _, r := range m.records {
		if r = m.current(r); wanted(r) {
			found = append(found, r)
		}
	}
	return found
}

// record returns a prepared refund, or a zero one.
func (m *memory) record(id string) (r invoice.RefundRecord) {
	if found := m.prepared(func(r invoice.RefundRecord) bool { return r.ID == id }); len(found) > 0 {
		return found[0]
	}
	return r
}

// current returns a prepared refund with the transfer that pays it.
func (m *memory) current(r invoice.RefundRecord) invoice.RefundRecord {
	p := m.payments[r.PaymentID]
	r.Left, r.SubmittedTx = p.Amount.Minus(m.refunded[r.PaymentID]), m.submitted[r.ID]
	for _, id := range slices.Sorted(maps.Keys(m.refunds)) {
		paid := m.refund(id)
		if paid.PreparedID != r.ID || r.Sent() {
			continue
		}
		if r.Transfer, r.Status = paid, invoice.RefundStatus(paid.Status); paid.Status == invoice.Orphaned {
			r.Status = r.Unsent()
		}
	}
	return r
}

// recordsOf returns the records that may reserve a part of a payment: of prepared refunds, and of transfers that a reorg
// dropped.
func (m *memory) recordsOf(paymentID string) []invoice.RefundRecord {
	records := m.prepared(func(r invoice.RefundRecord) bool { return r.PaymentID == paymentID })
	for _, r := range m.refundsOf(paymentID) {
		if r.PreparedID == "" && r.Status == invoice.Orphaned {
			records = append(records, invoice.RefundRecord{
				ID: r.ID, PaymentID: paymentID, Status: invoice.RefundOrphaned, Transfer: r, SubmittedTx: m.submitted[r.ID],
				Left: m.payments[paymentID].Amount.Minus(m.refunded[paymentID]),
			})
		}
	}
	return records
}

// prepare prepares a refund of the rest of a payment to its payer, with an id.
func (m *memory) prepare(paymentID, id string) (r invoice.RefundRecord, err error) {
	p := m.payment(paymentID)
	left := p.Amount.Minus(m.refunded[p.ID]).Minus(invoice.ReservedOf(m.recordsOf(p.ID)))
	if m.undecided[p.ID] || isActive(m.refunds[memoryID(invoice.PrefixRefund, p.Transfer)]) || p.Use.Excludes(invoice.ActRefund) || left.IsZero() {
		return r, ErrRefundExceeds
	}
	r = invoice.RefundRecord{
		ID: id, PaymentID: p.ID, InvoiceID: p.InvoiceID, MerchantID: p.MerchantID, ChainKey: p.ChainKey, Token: p.Token, From: p.RefundedFrom(), Payer: p.From,
		To: p.From, Status: invoice.RefundPending, CreatedAt: memoryNow, Amount: left, ExpiresAt: memoryNow.Add(invoice.RefundLifetime), Account: invoice.AccountWithKey,
	}
	if r.Tag, err = invoice.RefundTag(r.PaymentID, r.ID); err != nil {
		return r, err
	}
	m.records = append(m.records, r)
	return r, m.change(func(ch *Changes) {
		ch.recountReturned(r.PaymentID)
		ch.finishPaid()
		ch.recountRemainders()
	})
}
