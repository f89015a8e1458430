package ledger

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// namedPrepared returns the prepared refunds that the calldata of a transfer out of a settlement address names,
// wherever it goes.
func (ch *Changes) namedPrepared(e *entry) []invoice.RefundRecord {
	if tag := e.Evidence.Calldata; e.refundID != "" && !tag.IsZero() {
		return ch.preparedWith(tag)
	}
	return nil
}

// prepared returns the prepared refunds that a transfer out of a settlement address may pay: those that its calldata
// names, or else the one that it pays already and the pending ones that fit it, except those that another transfer of
// the block names. A transfer that was stored before without one pays only the one that its calldata names.
func (ch *Changes) prepared(e *entry) []invoice.RefundRecord {
	all := ch.namedPrepared(e)
	was, known := ch.refund(e.refundID)
	if e.refundID != "" && len(all) == 0 && (!known || was.PreparedID != "") {
		all = ch.fittingFor(e)
		if tag, err := invoice.RefundTag(was.PaymentID, was.PreparedID); known && err == nil {
			all = append(all, slices.DeleteFunc(ch.preparedWith(tag), func(r invoice.RefundRecord) bool { return ch.isNamedIn(e.BlockNumber, r) })...)
		}
	}
	for i, r := range all {
		all[i].Transfer = ch.current(r).Transfer
	}
	return all
}

// preparedWith returns the prepared refund with a tag.
func (ch *Changes) preparedWith(tag invoice.Hash) []invoice.RefundRecord {
	all := slices.Clone(ch.before.preparedBy.get(tag))
	if r, restored := ch.restored.byTag[tag]; restored {
		all = append(all, r)
	}
	return all
}

// isNamed reports whether the calldata of a transfer out of a settlement address names a refund that was prepared for
// that address. The state of the refund and the recipient of the transfer do not matter.
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

// taggedIn is the calldata of transfers in a block.
type taggedIn struct {
	block uint64
	tag   invoice.Hash
}

// isNamedIn reports whether a block has a transfer that pays a refund by naming it. One of more than the refund's
// amount may exceed what is left of the payment, and pays no refund then.
func (ch *Changes) isNamedIn(block uint64, r invoice.RefundRecord) bool {
	return slices.ContainsFunc(ch.tagged[taggedIn{block, r.Tag}], func(t invoice.Transfer) bool {
		return r.Names(t) && !t.Amount.IsZero() && !r.Amount.Less(t.Amount)
	})
}

// preparedFor returns the prepared refund that a transfer pays, as invoice.PreparedFor.
func (ch *Changes) preparedFor(e *entry) (r invoice.RefundRecord, named, ok bool) {
	was, _ := ch.refund(e.refundID)
	return invoice.PreparedFor(e.Transfer, e.refundID, ch.prepared(e), was.PreparedID)
}

// matchPrepared returns the payment of the prepared refund that a transfer pays. decided is false without one, and the
// rules for other refunds apply. A transfer whose calldata names a prepared refund refunds its payment or nothing. If
// another transfer pays that prepared refund, it refunds the payment on its own.
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
