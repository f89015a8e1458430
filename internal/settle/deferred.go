package settle

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// decideBatch is how many payments and how many refunds one transaction decides
// at most.
const decideBatch = 500

// decide finds the invoices of payments, and the payments of refunds, that
// waited for older blocks to be read, in the order of the chain, once these are.
// It reports whether there may be more than it takes at once.
func (s *Service) decide(ctx context.Context, tx *store.Tx, out *outbox, chainKey string, cur *store.Cursor) (more bool, err error) {
	if cur.Unread == nil || cur.Gap != nil && cur.Gap.Next <= *cur.Unread {
		return false, nil
	}
	payments, refunds, more, err := undecided(ctx, tx, chainKey)
	if err != nil {
		return false, err
	}
	ids := make([]string, len(payments))
	transfers := slices.Clone(refunds)
	waits := make(map[string]bool)
	for i, p := range payments {
		ids[i] = p.ID
		if !p.Attributed() && p.Status != invoice.Orphaned {
			transfers = append(transfers, p.Transfer)
			waits[p.ID] = true
		}
	}
	slices.SortFunc(transfers, func(a, b invoice.Transfer) int { return a.Compare(b.Position) })
	transfers = slices.CompactFunc(transfers, func(a, b invoice.Transfer) bool { return a.TxHash == b.TxHash && a.Ordinal == b.Ordinal })
	o := &observer{Service: s, tx: tx, outbox: out, chainKey: chainKey, height: cur.Indexed.Number, line: cur.Confirmed.Number}
	b := newTransferBatch(o, transfers)
	b.undecided = waits
	if err := b.decide(ctx); err != nil {
		return false, err
	}
	if err := tx.UnmarkUndecided(ctx, ids); err != nil {
		return false, err
	}
	if err := tx.DeleteUndecidedRefunds(ctx, refunds); err != nil || more {
		return more, err
	}
	cur.Unread = nil
	return false, tx.SaveCursor(ctx, chainKey, *cur)
}

// undecided returns what is to be decided next of the chain, and whether there
// may be more. Of the list that reaches further it leaves out what comes after
// the end of the other, unless that is complete.
func undecided(ctx context.Context, tx *store.Tx, chainKey string) (payments []store.PaymentRow, refunds []invoice.Transfer, more bool, err error) {
	if payments, err = tx.UndecidedPayments(ctx, chainKey, decideBatch); err != nil {
		return nil, nil, false, err
	}
	if refunds, err = tx.UndecidedRefunds(ctx, chainKey, 0, math.MaxInt64, decideBatch); err != nil {
		return nil, nil, false, err
	}
	morePayments, moreRefunds := len(payments) == decideBatch, len(refunds) == decideBatch
	if moreRefunds {
		last := refunds[len(refunds)-1].Position
		payments = slices.DeleteFunc(payments, func(p store.PaymentRow) bool { return last.Before(p.Position) })
	}
	if morePayments && len(payments) > 0 {
		last := payments[len(payments)-1].Position
		refunds = slices.DeleteFunc(refunds, func(t invoice.Transfer) bool { return last.Before(t.Position) })
	}
	return payments, refunds, morePayments || moreRefunds, nil
}

// decide attributes stored payments that wait, in the order of the entries, as
// if they were observed now, and stores what pays back payments.
func (b *transferBatch) decide(ctx context.Context) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	var asking []*entry
	for _, e := range b.entries {
		if b.undecided[e.paymentID] {
			asking = append(asking, e)
		}
	}
	if err := b.findCandidates(ctx, asking); err != nil {
		return err
	}
	if err := b.loadRefunds(ctx); err != nil {
		return err
	}
	for _, e := range b.entries {
		if b.undecided[e.paymentID] {
			if err := b.decidePayment(ctx, e); err != nil {
				return err
			}
		}
		if err := b.storeRefundOut(ctx, e); err != nil {
			return err
		}
	}
	if err := b.save(ctx); err != nil {
		return err
	}
	return b.settle(ctx)
}

// decidePayment attributes a stored payment. Refunds of it come along.
func (b *transferBatch) decidePayment(ctx context.Context, e *entry) error {
	p := b.payments[e.paymentID]
	was := p.Payment
	if err := b.attribute(ctx, e, &p.Payment); err != nil || !p.Attributed() {
		return err
	}
	b.put(was, p)
	if p.Status == invoice.Confirmed {
		b.confirmed = append(b.confirmed, p.Payment)
	}
	refunds, err := confirmedRefunds(ctx, b.tx, p.ID)
	if err != nil {
		return err
	}
	for i := range refunds {
		refunds[i].InvoiceID, refunds[i].MerchantID = p.InvoiceID, p.MerchantID
	}
	b.refunded = append(b.refunded, refunds...)
	return nil
}

// loadUndecided finds out at which of the receivers payments have to wait for
// blocks that were never read, and which of the known payments wait already.
func (b *transferBatch) loadUndecided(ctx context.Context) (err error) {
	if b.unread == nil {
		return nil
	}
	var receivers []invoice.Address
	for _, e := range b.entries {
		if e.paymentID != "" && !slices.Contains(receivers, e.To) {
			receivers = append(receivers, e.To)
		}
	}
	if b.receivers, err = b.tx.ReceiverStates(ctx, b.chainKey, receivers); err != nil {
		return err
	}
	ids, err := b.tx.WhichUndecided(ctx, slices.Collect(maps.Keys(b.payments)))
	for _, id := range ids {
		b.undecided[id] = true
	}
	return err
}

// mustWait reports whether the blocks that were never read can change what the
// rules say of a transfer. They can pay invoices alone that were created
// before the chain was first read, and give them any remainder; and a transfer
// that waits can be meant for any invoice of its receiver. They can also hold
// what a transfer from a settlement address pays back.
func (b *transferBatch) mustDefer(e *entry, candidates []invoice.Candidate, a invoice.Attribution) bool {
	t := e.Transfer
	if !b.isAbove(t.Position) {
		return false
	}
	guessed := a.Method == "" || a.Method.Inferred()
	at := b.receivers[t.To]
	switch {
	case guessed && e.refundID != "":
		return true
	case !at.Unbound && !at.Undecided:
		return false
	case guessed:
		return true
	}
	if a.Method != invoice.ByTransferAmount {
		return false
	}
	bound := !at.Undecided
	var rivals bool // for which it counts what was paid before
	for _, c := range candidates {
		bound = bound && c.FromBlock > 0
		rivals = rivals || !c.HasTransferAmount && c.Amount == t.Amount
	}
	return rivals && !bound
}

// saveUndecided marks those of the payments that wait, and no other.
func (b *transferBatch) saveUndecided(ctx context.Context, payments []store.PaymentRow) error {
	if b.unread == nil {
		return nil
	}
	var waiting []store.PaymentRow
	var decided []string
	for _, p := range payments {
		if b.undecided[p.ID] {
			waiting = append(waiting, p)
		} else {
			decided = append(decided, p.ID)
		}
	}
	if err := b.tx.UnmarkUndecided(ctx, decided); err != nil {
		return err
	}
	return b.tx.MarkUndecided(ctx, waiting)
}
