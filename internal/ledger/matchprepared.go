package ledger

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// namedPrepared returns the prepared refunds that the calldata of a transfer out of a settlement address names, wherever
// it goes.
func (ch *Changes) namedPrepared(e *entry) (all []invoice.RefundRecord) {
	tag := e.Evidence.Calldata
	if e.refundID == "" || tag.IsZero() {
		return nil
	}
	all = append(all, ch.before.preparedBy.get(tag)...)
	if r, restored := ch.restored.byTag[tag]; restored {
		all = append(all, r)
	}
	return all
}

// prepared returns the prepared refunds that a transfer out of a settlement address may pay: those that its calldata
// names, or else the one that it pays already and the pending ones that fit it. A transfer that was stored before without
// one pays only the one that its calldata names.
func (ch *Changes) prepared(e *entry) []invoice.RefundRecord {
	all := ch.namedPrepared(e)
	was, known := ch.refund(e.refundID)
	if e.refundID != "" && len(all) == 0 && (!known || was.PreparedID != "") {
		all = ch.fittingFor(e)
		if known {
			if r := ch.before.paidRecords.get(e.refundID); r.ID != "" {
				all = append(all, r)
			}
		}
	}
	for i, r := range all {
		all[i].Transfer = ch.current(r).Transfer
	}
	return all
}

// isNamed reports whether the calldata of a transfer out of a settlement address names a refund that
// was prepared for that address. The state of the refund and the recipient of the transfer do not
// matter.
func (ch *Changes) isNamed(e *entry) bool {
	return slices.ContainsFunc(ch.namedPrepared(e), func(r invoice.RefundRecord) bool { return r.NamedBy(e.Transfer) })
}

// isPreparedRefund reports whether a transfer is a prepared refund. Its calldata names one, or it has
// the recipient and amount of a waiting one and its transaction names no invoice.
func (ch *Changes) isPreparedRefund(e *entry) bool {
	switch {
	case e.refundID == "":
		return false
	case ch.isNamed(e):
		return true
	case len(ch.namedBy(e)) > 0:
		return false
	}
	m, decided := ch.matchPrepared(e)
	return decided && m.PreparedID != ""
}

// isNamedByAnother reports whether a transfer's block has another transfer that pays a refund by naming it. One of more
// than the refund's amount may exceed what is left of the payment, and pays no refund then.
func (ch *Changes) isNamedByAnother(e *entry, r invoice.RefundRecord) bool {
	return r.Tag != e.Evidence.Calldata && slices.ContainsFunc(ch.tagged[r.Tag], func(t invoice.Transfer) bool {
		return t.BlockNumber == e.BlockNumber && r.Names(t) && !t.Amount.IsZero() && !r.Amount.Less(t.Amount)
	})
}

// preparedFor returns the prepared refund that a transfer pays, as invoice.PreparedFor. It leaves out those that another
// transfer of the block names.
func (ch *Changes) preparedFor(e *entry) (r invoice.RefundRecord, named, ok bool) {
	prepared := slices.DeleteFunc(ch.prepared(e), func(r invoice.RefundRecord) bool { return ch.isNamedByAnother(e, r) })
	was, _ := ch.refund(e.refundID)
	return invoice.PreparedFor(e.Transfer, e.refundID, prepared, was.PreparedID)
}

// matchPrepared returns the payment of the prepared refund that a transfer pays. decided
// is false without one, and the rules for other refunds apply. A transfer whose
// calldata names a prepared refund refunds its payment or nothing. If another transfer
// pays that prepared refund, it refunds the payment on its own.
func (ch *Changes) matchPrepared(e *entry) (m invoice.RefundMatch, decided bool) {
	r, named, ok := ch.preparedFor(e)
	if !ok {
		return m, named
	}
	p, ok := ch.payment(r.PaymentID)
	if !ok {
		return m, named
	}
	was, _ := ch.refund(e.refundID)
	left := p.Amount.Minus(ch.refundedWithout(p.ID, was))
	if p.Status == invoice.Orphaned || !p.Before(e.Position) || e.Amount.IsZero() || left.Less(e.Amount) {
		return m, named
	}
	m = invoice.RefundMatch{Payment: p.Payment, Exact: true}
	if r.Takes(e.refundID) {
		m.PreparedID = r.ID
	}
	return m, true
}
