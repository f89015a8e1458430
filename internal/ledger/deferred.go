package ledger

import (
	"context"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// undecidedBatch is how many payments and how many refunds one transaction of attributeDeferred handles.
const undecidedBatch = 500

// attributeDeferred attributes the undecided payments and refunds of a chain in its order, once the
// older blocks on which they depend are read. It reports whether there may be more than one
// transaction handles. unfinal is how many of the chain's newest blocks are not final.
func (s *Service) attributeDeferred(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, cur *Cursor, unfinal uint64) (more bool, err error) {
	if cur.Unread == nil || cur.Gap != nil && cur.Gap.Next <= *cur.Unread {
		return false, nil
	}
	payments, refunds, more, err := nextUndecided(ctx, tx, chainKey)
	if err != nil {
		return false, err
	}
	ids := make([]string, len(payments))
	transfers := slices.Clone(refunds)
	for i, p := range payments {
		ids[i] = p.ID
		transfers = append(transfers, p.Transfer)
	}
	slices.SortFunc(transfers, func(a, b invoice.Transfer) int { return a.Compare(b.Position) })
	transfers = slices.CompactFunc(transfers, func(a, b invoice.Transfer) bool { return a.TxHash == b.TxHash && a.Ordinal == b.Ordinal })
	scope := s.scope(chainKey, *cur)
	if scope.past, err = lostPast(ctx, tx, chainKey); err != nil {
		return false, err
	}
	scope.finalized, scope.unread, scope.deferred = cur.Confirmed.Number, nil, true
	err = s.apply(ctx, tx, out, scope, transfers, func(before *Snapshot, part []invoice.Transfer) *Changes {
		return applyUndecided(before, part, unfinal)
	}, func(*Changes) {})
	if err != nil {
		return false, err
	}
	if err := UnmarkUndecided(ctx, tx, ids); err != nil {
		return false, err
	}
	if err := deleteUndecidedRefunds(ctx, tx, refunds); err != nil || more {
		return more, err
	}
	cur.Unread = nil
	return false, SaveCursor(ctx, tx, chainKey, *cur)
}

// blockRange is a range of blocks. The zero value is block 0, which holds no transactions.
type blockRange struct{ from, through uint64 }

func (r blockRange) has(block uint64) bool { return r.from <= block && block <= r.through }

// lostPast returns the blocks of a chain that a restored backup had not read, and that the recovery has.
func lostPast(ctx context.Context, tx *db.Tx, chainKey string) (r blockRange, err error) {
	r.from, r.through, err = LostPast(ctx, tx, chainKey)
	return r, db.IgnoreNotFound(err)
}

// nextUndecided returns the next undecided payments and refunds of the chain, and whether there may be more. If one
// list was cut off, the other ends below the same position, so that both are attributed in the chain's order.
func nextUndecided(ctx context.Context, tx *db.Tx, chainKey string) (payments []PaymentRow, refunds []invoice.Transfer, more bool, err error) {
	if payments, err = UndecidedPayments(ctx, tx, chainKey, undecidedBatch); err != nil {
		return nil, nil, false, err
	}
	if refunds, err = UndecidedRefunds(ctx, tx, chainKey, 0, math.MaxInt64, undecidedBatch); err != nil {
		return nil, nil, false, err
	}
	morePayments, moreRefunds := len(payments) == undecidedBatch, len(refunds) == undecidedBatch
	if moreRefunds {
		last := refunds[len(refunds)-1].Position
		payments = slices.DeleteFunc(payments, func(p PaymentRow) bool { return last.Before(p.Position) })
	}
	if morePayments && len(payments) > 0 {
		last := payments[len(payments)-1].Position
		refunds = slices.DeleteFunc(refunds, func(t invoice.Transfer) bool { return last.Before(t.Position) })
	}
	return payments, refunds, morePayments || moreRefunds, nil
}

// applyUndecided attributes the undecided payments among transfers as if
// they were observed now, and stores the refunds.
func applyUndecided(before *Snapshot, transfers []invoice.Transfer, unfinal uint64) *Changes {
	ch := newChanges(before)
	ch.each(transfers, ch.applyDeferred)
	ids := db.Each(ch.confirmed, func(p invoice.Payment) string { return p.InvoiceID })
	ch.settleInOrder(ids, unfinal)
	ch.finish()
	return ch
}

// applyDeferred stores a transfer of which the attribution was deferred.
func (ch *Changes) applyDeferred(e *entry) {
	ch.restorePrepared(e)
	if e.paymentID != "" && ch.isUndecided(e.paymentID) {
		ch.recountMarks(ch.open) // which may be candidates
		ch.attributeStored(e)
	}
	if !ch.before.lacking {
		ch.storeOutgoing(e)
	}
}

// attributeStored attributes a stored payment and its refunds.
func (ch *Changes) attributeStored(e *entry) {
	p, _ := ch.payment(e.paymentID)
	if ch.before.lacking {
		return
	}
	was := p.Payment
	if ch.attribute(e, &p.Payment); ch.before.lacking || !p.Attributed() {
		return
	}
	ch.put(was, p)
	ch.authorize(e, p.Payment)
	if p.Status == invoice.Confirmed {
		ch.confirmed = append(ch.confirmed, p.Payment)
	}
	ch.refunded = append(ch.refunded, ch.confirmedRefunds(p.ID)...)
}

// receiver returns the state of a receiver of payments.
func (ch *Changes) receiver(a invoice.Address) ReceiverState {
	if r, changed := ch.receivers[a]; changed {
		return r
	}
	return ch.before.receivers.get(a)
}

// needsEarlier reports whether a transfer pays an invoice only together with earlier transfers, and these can be in
// blocks that were never read, with refunds of them. A payment by an authorization does not wait: without a payment,
// the authorization would count as refused, and the payer would sign again.
func (ch *Changes) needsEarlier(e *entry, inv invoice.Invoice) bool {
	isPart := e.Amount.Less(inv.Amount) && !inv.Tolerates(e.Amount)
	return isPart && inv.FromBlock == 0 && e.bound.InvoiceID == "" && ch.chain.isAboveUnread(e.Position)
}

// mustDefer reports whether the blocks that were never read can change the attribution of a transfer. They can hold
// payments of invoices that were created before the chain was first read, and so change what remains of these; and an
// undecided payment can pay any invoice of its receiver. They can also hold the payment that a transfer from a
// settlement address refunds, and other parts of what a part pays.
func (ch *Changes) mustDefer(e *entry, candidates []invoice.Candidate, a invoice.Attribution) bool {
	t := e.Transfer
	if !ch.chain.isAboveUnread(t.Position) {
		return false
	}
	inferred := a.Method == "" || a.Method.Inferred()
	receiver := ch.receiver(t.To)
	switch {
	case !inferred && ch.needsEarlier(e, a.Invoice):
		return true
	case inferred && e.refundID != "":
		return true
	case !receiver.Unbound && !receiver.Undecided:
		return false
	case inferred:
		return true
	}
	return a.Method == invoice.ByTransferAmount && hasOldRivals(candidates, t.Amount, receiver.Undecided)
}

// hasOldRivals reports whether a candidate asks for the transfer amount of another one, and earlier payments decide
// whether it still awaits it: undecided ones, or payments of a candidate from before the chain was first read.
func hasOldRivals(candidates []invoice.Candidate, amount invoice.Amount, undecided bool) bool {
	isRival := func(c invoice.Candidate) bool { return !c.HasTransferAmount && c.Amount == amount }
	isOld := func(c invoice.Candidate) bool { return c.FromBlock == 0 }
	return slices.ContainsFunc(candidates, isRival) && (undecided || slices.ContainsFunc(candidates, isOld))
}
