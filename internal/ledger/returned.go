package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// While an invoice is open, the refunded or reserved amount of a payment does not count for it.
// Payment.Returned holds this amount, and every transaction that changes refunds computes it again
// under the chain's cursor.

// markReturned marks the payments of a changed refund. recountMarked computes what was returned of them, once for each
// block: the cost of many refunds of a payment in a block grows with their number, not with its square.
func (ch *Changes) markReturned(was, is invoice.Refund) {
	for _, r := range []invoice.Refund{was, is} {
		p, ok := ch.payment(r.PaymentID)
		if !ok || !p.Attributed() {
			continue
		}
		inv := ch.invoice(p.InvoiceID)
		marks := ch.ended
		if inv.Status == invoice.Open {
			marks = ch.open
		}
		marks[p.ID] = marks[p.ID] || r.ID == is.ID && inv.IsEarly(is)
	}
}

// recountBelow recounts what was returned in blocks below one. A refund in that block does not undo that payments below
// it paid an invoice, just as if each block were read separately.
func (ch *Changes) recountBelow(block uint64) {
	if block != ch.refundBlock {
		ch.refundBlock = block
		ch.recountMarked()
		clear(ch.settled)
	}
}

// recountMarked recounts what was returned of the marked payments.
func (ch *Changes) recountMarked() {
	ch.recountMarks(ch.open)
	ch.recountMarks(ch.ended)
}

// recountMarks recounts what was returned of payments, and clears the marks. A mark is true if a refund was read after the
// payment's invoice was paid or ended, and was mined before that.
func (ch *Changes) recountMarks(marks map[string]bool) {
	for _, id := range slices.Sorted(maps.Keys(marks)) {
		if marks[id] {
			ch.recountEarly(id)
		} else {
			ch.recountReturned(id)
		}
	}
	clear(marks)
}

// recountReturned computes what was returned of payments, and adds up their invoices again where it
// has changed. It does not read the refunds, so it cannot find those that were read after the invoice ended and mined before
// that; recountEarly can.
func (ch *Changes) recountReturned(paymentIDs ...string) {
	ch.recount(paymentIDs, func(PaymentRow, invoice.Invoice) invoice.Amount { return invoice.Amount{} })
}

// recountEarly is recountReturned with all refunds of the payments, which it reads.
func (ch *Changes) recountEarly(paymentIDs ...string) { ch.recount(paymentIDs, ch.refundedEarly) }

func (ch *Changes) recount(paymentIDs []string, early func(PaymentRow, invoice.Invoice) invoice.Amount) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(paymentIDs))) {
		p, ok := ch.payment(id)
		if !ok || !p.Attributed() {
			continue
		}
		inv := ch.invoice(p.InvoiceID)
		ch.setReturned(p, inv.Returning(p.Payment, ch.amountReturned(id), early(p, inv)))
	}
}

// refundedEarly returns how much of a payment was refunded before its invoice was paid or ended.
func (ch *Changes) refundedEarly(p PaymentRow, inv invoice.Invoice) (sum invoice.Amount) {
	if inv.Status == invoice.Open {
		return sum
	}
	refunds := ch.refundsOf(p.ID)
	if !slices.ContainsFunc(refunds, inv.IsEarly) {
		return sum
	}
	var payments []invoice.Payment // which only a paid invoice needs
	if inv.Status == invoice.Paid {
		payments = ch.paymentsOf(inv.ID)
	}
	return inv.RefundedEarly(p.Payment, refunds, payments)
}

// setReturned sets what was returned of a payment, if that has changed.
func (ch *Changes) setReturned(p PaymentRow, returned invoice.Amount) {
	was := p.Payment
	if p.Returned = returned; was.Returned == returned {
		return
	}
	ch.replace(was, p.Payment)
	ch.setPayment(p)
	ch.effects.returned = append(ch.effects.returned, p.ID)
	ch.outOfOrder[p.InvoiceID] = true
	if p.Status == invoice.Confirmed {
		ch.toRecount[p.InvoiceID] = true
	}
}

// amountReturned returns how much of a payment was refunded or is on its way back to the payer: its refunds on the chain,
// and what the records of its refunds reserve.
func (ch *Changes) amountReturned(paymentID string) invoice.Amount {
	return ch.refundedSum(paymentID).All.Plus(invoice.ReservedOf(ch.recordsOf(paymentID)))
}

// settleInOrder finds out which open invoices newly confirmed payments paid before they were refunded, where the
// refunds were read before the payments were confirmed. unfinal is how many of the chain's newest blocks are not
// final.
func (ch *Changes) settleInOrder(invoiceIDs []string, unfinal uint64) {
	ch.recountMarked()
	for _, id := range slices.Compact(slices.Sorted(slices.Values(invoiceIDs))) {
		inv := ch.invoice(id)
		if inv.Status != invoice.Open {
			continue
		}
		payments := ch.paymentsOf(id)
		var refunds []invoice.Refund
		for _, p := range payments {
			refunds = append(refunds, ch.activeRefunds(p.ID)...)
			refunds = append(refunds, ch.droppedOfPast(p.ID)...)
		}
		if len(refunds) == 0 {
			continue
		}
		back := make(map[string]invoice.Amount)
		for _, p := range payments {
			back[p.ID] = ch.amountReturned(p.ID)
		}
		returned, ok := inv.PaidInOrder(payments, refunds, back, unfinal)
		if !ok {
			continue
		}
		for _, p := range payments {
			row, _ := ch.payment(p.ID)
			row.Payment = p
			ch.setReturned(row, inv.Returning(p, returned[p.ID], invoice.Amount{}))
		}
		ch.putConfirmed(ch.invoice(id).Settle(ch.paymentsOf(id)))
		ch.toRecount[id], ch.outOfOrder[id] = true, true
	}
}

// activeRefunds returns the refunds of a payment that are in blocks.
func (ch *Changes) activeRefunds(paymentID string) []invoice.Refund {
	return slices.DeleteFunc(ch.refundsOf(paymentID), func(r invoice.Refund) bool { return !isActive(r) })
}

// droppedOfPast returns the refunds of a payment that were prepared in a lost past, once it was final, and that a reorg
// has left in no block. They are above all blocks, because they may be mined again.
func (ch *Changes) droppedOfPast(paymentID string) (dropped []invoice.Refund) {
	for _, r := range ch.recordsOf(paymentID) {
		if amount := r.Reserved(); r.Reason == LostRefundReason && !amount.IsZero() {
			again := invoice.Transfer{Amount: amount, Position: invoice.Position{BlockNumber: maxBlock}}
			dropped = append(dropped, invoice.Refund{Transfer: again, PaymentID: paymentID, PreparedID: r.ID})
		}
	}
	return dropped
}

// updateReturned computes what was returned of payments in a transaction that does not change the payments and
// invoices otherwise. It works on a halted chain.
func (s *Service) updateReturned(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, paymentIDs ...string) error {
	ch, err := change(ctx, tx, s.scope(chainKey, Cursor{}), func(ch *Changes) {
		ch.recountReturned(paymentIDs...)
		ch.finishPaid()
		ch.recountRemainders()
	})
	if err != nil || len(ch.changed) == 0 {
		return err
	}
	heights, err := IndexedHeights(ctx, tx, []string{chainKey})
	if err != nil {
		return err
	}
	ch.chain.indexed = heights[chainKey]
	return s.save(ctx, tx, out, ch)
}

// AmountReturned returns how much of a payment was refunded, or is on its way back to the payer.
func (s *Service) AmountReturned(ctx context.Context, paymentID string) (invoice.Amount, error) {
	taken, _, err := takenByRefunds(ctx, s.conf.Store, paymentID)
	return taken, err
}

// updateChain runs a transaction under the cursor of a chain. It has no effect for a chain that was
// never read.
func (s *Service) updateChain(ctx context.Context, chainKey string, fn func(tx *db.Tx, out *outbox) error) error {
	err := s.update(ctx, func(tx *db.Tx, out *outbox) error {
		if _, err := LockCursor(ctx, tx, chainKey); err != nil {
			return err
		}
		return fn(tx, out)
	})
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}
