package ledger

import (
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// While an invoice is open, the refunded or reserved amount of a payment does not count for it.
// Payment.Returned holds this amount, and every transaction that changes refunds computes it again
// under the chain's cursor.

// returnPatience is how long a refund that a reorg dropped is expected to be mined again.
const returnPatience = invoice.SubmissionPatience

// recountReturned computes what was returned of payments, and adds up their invoices again where it
// has changed.
func (ch *Changes) recountReturned(paymentIDs ...string) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(paymentIDs))) {
		p, ok := ch.payment(id)
		if !ok || !p.Attributed() {
			continue
		}
		inv := ch.invoice(p.InvoiceID)
		ch.setReturned(p, inv.Returning(p.Payment, ch.amountReturned(id), ch.refundedEarly(p.Payment, inv)))
	}
}

// refundedEarly returns how much of a payment was refunded before its invoice was paid or ended.
func (ch *Changes) refundedEarly(p invoice.Payment, inv invoice.Invoice) (sum invoice.Amount) {
	refunds := ch.refundsOf(p.ID)
	if !slices.ContainsFunc(refunds, inv.IsEarly) {
		return sum
	}
	var payments []invoice.Payment // which only a paid invoice needs
	if inv.Status == invoice.Paid {
		payments = ch.paymentsOf(inv.ID)
	}
	return inv.RefundedEarly(p, refunds, payments)
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

// amountReturned returns how much of a payment was refunded or is on its way back to the payer, as
// invoice.AmountReturned does.
func (ch *Changes) amountReturned(paymentID string) invoice.Amount {
	return invoice.AmountReturned(ch.recordsOf(paymentID), ch.refundsOf(paymentID), func(r invoice.Refund) bool {
		p, _ := ch.payment(ch.before.transferID(invoice.PrefixPayment, r.Transfer))
		return ch.before.dropped.get(r.ID) && !(p.Attributed() && p.Status != invoice.Orphaned)
	})
}

// settleInOrder finds out which open invoices newly confirmed payments paid before they were refunded, where the
// refunds were read before the payments were confirmed. unfinal is how many of the chain's newest blocks are not
// final.
func (ch *Changes) settleInOrder(invoiceIDs []string, unfinal uint64) {
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

// AmountReturned returns how much of a payment was refunded, is being refunded, or may be refunded
// because a reorg dropped the refund.
func (s *Service) AmountReturned(ctx context.Context, paymentID string) (invoice.Amount, error) {
	return amountReturned(ctx, s.conf.Store, paymentID, s.conf.Schedule().Add(-returnPatience))
}

// returnedBatch is the number of refunds for which one transaction computes the returned amounts.
const returnedBatch = 500

// releaseWindow is how long after returnPatience releaseDropped looks at a dropped refund.
const releaseWindow = 24 * returnPatience

// releaseDropped makes refunded amounts count again if a reorg dropped the refunds and they were not
// mined again for returnPatience. That concerns refunds without a submission. Others count until they
// are mined or a person withdraws them, however long that takes. It handles refunds that were dropped
// within releaseWindow, the oldest first.
func (s *Service) releaseDropped(ctx context.Context, chainKey string) error {
	to := s.conf.Schedule().Add(-returnPatience)
	after := OrphanedRefund{At: to.Add(-releaseWindow)}
	for more := true; more; {
		more = false // if the chain was never read
		err := s.updateChain(ctx, chainKey, func(tx *db.Tx, out *outbox) error {
			ids, last, err := orphanedRefundsBetween(ctx, tx, chainKey, after, to, returnedBatch)
			after, more = last, last.ID != ""
			if err != nil || len(ids) == 0 {
				return err
			}
			return s.updateReturned(ctx, tx, out, chainKey, ids...)
		})
		if err != nil {
			return err
		}
	}
	return nil
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
