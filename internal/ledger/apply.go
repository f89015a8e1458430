package ledger

import (
	"math"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// maxBlock is above all blocks.
const maxBlock = math.MaxUint64

// entry is a transfer of a block. It is a sweep when it comes from a deposit address. Otherwise it can be a payment
// when it goes to a settlement or deposit address, and a refund when it comes from a settlement address.
type entry struct {
	invoice.Transfer
	key       *invoice.Transfer
	paymentID string // empty when it is no payment
	refundID  string // empty when it is not from a settlement address
	depositOf string // the invoice whose deposit address receives it; empty without one
	sweepOf   string // the invoice whose deposit address it comes from; empty without one

	// bound is the authorization that made it, with its invoice; zero without one that the service accepted.
	bound BoundAuthorization
}

// refundPair returns the accounts of the payment that the transfer refunds, if it is a refund.
func (e *entry) refundPair() Pair { return Pair{Payer: e.To, Receiver: e.From} }

// Apply decides about transfers of one chain, given in its order: which are payments, refunds, sweeps or nothing,
// which invoices they belong to, and which invoices are paid. It is a pure function of the snapshot, without database
// and clock.
func Apply(before *Snapshot, transfers []invoice.Transfer) *Changes {
	ch := newChanges(before)
	ch.each(transfers, ch.apply)
	ch.finish()
	return ch
}

// each calls do with the transfers of which the snapshot holds the addresses.
func (ch *Changes) each(transfers []invoice.Transfer, do func(e *entry)) {
	for _, t := range transfers {
		if in := (taggedIn{t.BlockNumber, t.Evidence.Calldata}); !in.tag.IsZero() {
			ch.tagged[in] = append(ch.tagged[in], t)
		}
	}
	for i := range transfers {
		ch.before.lacking = false
		if e := ch.entry(&transfers[i]); !ch.before.lacking {
			do(e)
		}
	}
}

// apply decides about a transfer.
func (ch *Changes) apply(e *entry) {
	if e.sweepOf != "" {
		ch.storeSweep(e)
		return
	}
	ch.restorePrepared(e)
	if e.paymentID != "" {
		ch.recountMarks(ch.open) // which may be candidates
		ch.storePayment(e)
	}
	if ch.before.lacking {
		return
	}
	ch.storeOutgoing(e)
	if ch.chain.isLost(e.BlockNumber) && e.refundID != "" {
		ch.refund(e.refundID) // for unrecognized
		ch.effects.outgoing = append(ch.effects.outgoing, e)
	}
}

// entry finds out whether a transfer goes to or comes from a settlement or deposit address. A transfer from the deposit
// address of a lost invoice is a sweep of which nothing is recorded.
func (ch *Changes) entry(t *invoice.Transfer) *entry {
	e := &entry{Transfer: *t, key: t}
	from, to := ch.before.deposits.get(t.From), ch.before.deposits.get(t.To)
	pays, refunds := ch.before.settlements.get(t.To), ch.before.settlements.get(t.From)
	if !t.Evidence.Authorization.IsZero() {
		e.bound = ch.before.bound.get(t)
	}
	if from != "" {
		if !isLostDeposit(from) {
			e.sweepOf = from
		}
		return e
	}
	if !isLostDeposit(to) {
		e.depositOf = to
	}
	if pays || to != "" {
		e.paymentID = ch.before.transferID(invoice.PrefixPayment, *t)
	}
	if refunds {
		e.refundID = ch.before.transferID(invoice.PrefixRefund, *t)
	}
	return e
}

// keepsAttribution reports whether a stored payment keeps its attribution now that its block is read again or it is
// mined again. It does while it moves the same money on the same evidence, since a provider can have made up the first
// evidence. An attribution made off the chain does not depend on evidence. A payment without an invoice stays without,
// unless other evidence names one. An undecided payment is attributed whenever it is read, and so is one whose
// authorization was bound to an invoice since, or that was read with another time of its block.
func (ch *Changes) keepsAttribution(p PaymentRow, e *entry) bool {
	switch {
	case !p.SameMovement(e.Transfer):
		return false
	case e.bound.InvoiceID != "" && e.bound.InvoiceID != p.InvoiceID && !p.Method.OffChain():
		return false
	case hadOtherTime(p.Payment, e.Transfer):
		return p.Method.OffChain()
	case p.Attributed():
		return p.Evidence == e.Evidence || p.Method.OffChain()
	}
	return !ch.isUndecided(p.ID) && p.Evidence == e.Evidence
}

// hadOtherTime reports whether a payment is read again in the same block, with another time. One of the two is wrong, and
// the time decides which invoices the payment is late for.
func hadOtherTime(was invoice.Payment, is invoice.Transfer) bool {
	return was.BlockHash == is.BlockHash && !was.BlockTime.Equal(is.BlockTime)
}

// stored returns the payment that a transfer is stored as, if there is one. ok is false while the snapshot lacks it, and
// if it is final: reading the chain again changes nothing then.
func (ch *Changes) stored(e *entry) (p PaymentRow, known, ok bool) {
	if p, known = ch.payment(e.paymentID); known {
		ch.isUndecided(p.ID) // savePayments unmarks it once it is decided
	}
	return p, known, !ch.before.lacking && !p.IsFinal()
}

// storePayment stores a transfer to a settlement or deposit address. A transfer that a
// reorg moved to another block is the same payment.
func (ch *Changes) storePayment(e *entry) {
	p, known, ok := ch.stored(e)
	if !ok {
		return
	}
	was, kept := p.Payment, known && ch.keepsAttribution(p, e)
	if !known {
		p.SeenAfter = ch.before.lastSeq.get(struct{}{})
		p.ID, p.ObservedAt = e.paymentID, ch.chain.now
	}
	ch.effects.moved = ch.effects.moved || p.Status == invoice.Pending && p.BlockHash != e.BlockHash
	p.Transfer = e.Transfer
	ch.screenAgain(was, &p.Payment)
	if !kept {
		ch.attribute(e, &p.Payment)
		if ch.before.lacking {
			return
		}
		if known && was.InvoiceID != p.InvoiceID {
			ch.moveRefunds(was, p.Payment)
		}
	}
	if p.Status == invoice.Confirmed {
		ch.confirmed = append(ch.confirmed, p.Payment)
	}
	ch.put(was, p)
	ch.authorize(e, p.Payment)
	if known && !was.SameMovement(e.Transfer) {
		ch.judgeRefunds(p.Payment)
	}
}

// screenAgain sets the status of a payment that is observed now, and has it screened if it is new or moves other money
// than before.
func (ch *Changes) screenAgain(was invoice.Payment, p *invoice.Payment) {
	if ch.chain.screens && !was.SameMovement(p.Transfer) {
		p.Screening, p.ScreeningReason, p.ScreeningSince = invoice.ScreeningWaiting, "", ch.chain.scheduled
	}
	if p.Status, p.ConfirmedAt = ch.status(p.Position); ch.chain.final && p.Screening.Holds() {
		p.Status, p.ConfirmedAt = invoice.Held, time.Time{}
	}
}

// status returns the state of a transfer that is observed now, and when it was confirmed.
func (ch *Changes) status(p invoice.Position) (invoice.PaymentStatus, time.Time) {
	if ch.chain.final {
		return invoice.Confirmed, ch.chain.confirmedAt(p)
	}
	return invoice.Pending, time.Time{}
}

// attribute sets the payment's invoice and announces the payment, unless the attribution has to be deferred. A transfer
// that was prepared as a refund is one, before any other rule, and pays no invoice. One that refunds a payment exactly
// is not attributed by an inferred method, and neither is one in a lost past that names an unknown invoice. A payment
// without an invoice that is used for something else stays without.
func (ch *Changes) attribute(e *entry, p *invoice.Payment) {
	if ch.staysWithout(e, p) {
		return
	}
	// A reorg can change where a transfer of the same transaction goes.
	p.DepositOf, p.SettlesTo = "", invoice.Address{}
	if e.depositOf != "" {
		ch.attributeDeposit(e, p)
		return
	}
	candidates, truncated := ch.candidatesAt(*p, e)
	if ch.before.lacking {
		return
	}
	a, ok := invoice.Attribute(p.Transfer, candidates, truncated)
	if ch.undecided[p.ID] = ch.mustDefer(e, candidates, a); ch.undecided[p.ID] {
		a, ok = invoice.Attribution{}, false
		ch.receivers[p.To] = ReceiverState{Unbound: true, Undecided: true}
	}
	if ok && a.Method.Inferred() && ch.isOfOther(e, p) {
		a, ok = invoice.Attribution{}, false
	}
	*p = p.WithAttribution(a)
	switch {
	case ok:
		ch.effects.received(*p, a.Invoice)
	case !ch.undecided[p.ID]:
		ch.effects.unattributed = append(ch.effects.unattributed, *p)
	}
}

// isOfOther reports whether a payment of which only the amount fits an invoice is for another one, which the database
// has lost, or refunds a payment exactly.
func (ch *Changes) isOfOther(e *entry, p *invoice.Payment) bool {
	if ch.chain.isLost(p.BlockNumber) && p.Evidence.NamesAny() {
		return true
	}
	if e.refundID == "" || !ch.mayRefund(e) {
		return false
	}
	m, isRefund := ch.matchRefund(e)
	return isRefund && m.Exact
}

// staysWithout reports whether no rule is asked for the invoice of a payment: it is used for something
// else, or rejected or a prepared refund, which is left without an invoice.
func (ch *Changes) staysWithout(e *entry, p *invoice.Payment) bool {
	if !ch.isUsed(e, p.ID) {
		if p.Screening != invoice.ScreeningRejected && !ch.isPreparedRefund(e) {
			return false
		}
		ch.leaveUnattributed(e, p)
	}
	ch.undecided[p.ID] = false
	return true
}

// isUsed reports whether a stored payment without an invoice, which moves the same money as before,
// is used for something that excludes an invoice. A refund of a lost past does not, of an undecided payment there: it
// refunds the invoice that was imported since.
func (ch *Changes) isUsed(e *entry, paymentID string) bool {
	was, known := ch.payment(paymentID)
	used := known && !was.Attributed() && was.SameMovement(e.Transfer) && was.Use.Excludes(invoice.ActAttribute)
	refunded := was.Use == invoice.UseRefunding || was.Use == invoice.UseRefunded
	if !used || !refunded || !ch.isUndecided(paymentID) || !ch.chain.past.has(was.BlockNumber) {
		return used
	}
	restored := make(map[string]bool)
	for _, r := range ch.recordsOf(paymentID) {
		restored[r.ID] = r.Reason == LostRefundReason
		if !restored[r.ID] && !r.Reserved().IsZero() && !ch.chain.past.has(r.Transfer.BlockNumber) {
			return true
		}
	}
	return slices.ContainsFunc(ch.refundsOf(paymentID), func(r invoice.Refund) bool {
		return isActive(r) && !restored[r.PreparedID] && !ch.chain.past.has(r.BlockNumber)
	})
}
