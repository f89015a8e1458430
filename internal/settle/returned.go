package settle

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

// recountReturned computes the returned amounts of payments, and adds up their invoices again if they
// have changed. It returns the changed payments. The payments and their refunds must have been
// written. Invoices that become paid by it are left to emitPaid.
func (s *Service) recountReturned(ctx context.Context, set *invoiceSet, paymentIDs []string) (changed map[string]invoice.Amount, err error) {
	ids := slices.Compact(slices.Sorted(slices.Values(paymentIDs)))
	payments, err := PaymentsByID(ctx, set.tx, ids)
	if err != nil {
		return nil, err
	}
	payments = slices.DeleteFunc(payments, func(p PaymentRow) bool { return !p.Attributed() })
	if len(payments) == 0 {
		return nil, nil
	}
	invoices := make([]string, len(payments))
	for i, p := range payments {
		invoices[i], ids[i] = p.InvoiceID, p.ID
	}
	if err := set.load(ctx, invoices...); err != nil {
		return nil, err
	}
	back, err := amountsReturned(ctx, set.tx, ids[:len(payments)], s.schedule().Add(-returnPatience))
	if err != nil {
		return nil, err
	}
	changed = make(map[string]invoice.Amount)
	for _, p := range payments {
		is := p.Payment
		if is.Returned = set.byID[p.InvoiceID].Returning(is, back[p.ID]); is.Returned == p.Returned {
			continue
		}
		changed[p.ID] = is.Returned
		set.replace(p.Payment, is)
		set.outOfOrder[p.InvoiceID] = true
		if p.Status == invoice.Confirmed {
			set.toRecount[p.InvoiceID] = true
		}
	}
	return changed, setReturned(ctx, set.tx, changed)
}

// settleInOrder finds out which open invoices newly confirmed payments paid before they were refunded,
// if the refunds were read before the payments were confirmed. unfinal is how many of the chain's
// newest blocks are not final. The payments must have been written.
func (s *Service) settleInOrder(ctx context.Context, set *invoiceSet, invoiceIDs []string, unfinal uint64) error {
	ids := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(invoiceIDs))), func(id string) bool { return set.byID[id].Status != invoice.Open })
	payments, err := set.payments(ctx, ids)
	if err != nil || len(payments) == 0 {
		return err
	}
	var paymentIDs []string
	for _, id := range ids {
		for _, p := range payments[id] {
			paymentIDs = append(paymentIDs, p.ID)
		}
	}
	all, err := RefundsOfPayments(ctx, set.tx, paymentIDs)
	refunds := make(map[string][]invoice.Refund) // by invoice
	for _, r := range all {
		if isActive(r) {
			refunds[r.InvoiceID] = append(refunds[r.InvoiceID], r)
		}
	}
	if err != nil || len(refunds) == 0 {
		return err
	}
	back, err := amountsReturned(ctx, set.tx, paymentIDs, s.schedule().Add(-returnPatience))
	if err != nil {
		return err
	}
	changed := make(map[string]invoice.Amount)
	for id, of := range refunds {
		inv := set.byID[id]
		returned, ok := inv.PaidInOrder(payments[id], of, back, unfinal)
		if !ok {
			continue
		}
		for i, p := range payments[id] {
			is := p
			if is.Returned = inv.Returning(p, returned[p.ID]); is.Returned == p.Returned {
				continue
			}
			changed[p.ID], payments[id][i] = is.Returned, is
			set.replace(p, is)
		}
		set.putConfirmed(set.byID[id].Settle(payments[id]))
		set.toRecount[id], set.outOfOrder[id] = true, true
	}
	return setReturned(ctx, set.tx, changed)
}

// recountReturned computes the returned amounts of stored payments, in the batch or before it.
func (b *transferBatch) recountReturned(ctx context.Context, paymentIDs ...string) error {
	changed, err := b.service.recountReturned(ctx, b.invoices, paymentIDs)
	for id, amount := range changed {
		if p, ok := b.payments[id]; ok {
			p.Returned = amount
			b.payments[id] = p
		}
	}
	return err
}

// updateReturned runs recountReturned in a transaction that does not otherwise change the payments and
// invoices. It works on a halted chain.
func (s *Service) updateReturned(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, paymentIDs ...string) error {
	set := newInvoiceSet(tx)
	if _, err := s.recountReturned(ctx, set, paymentIDs); err != nil {
		return err
	}
	if err := s.emitPaid(ctx, out, set); err != nil || len(set.changed) == 0 {
		return err
	}
	heights, err := IndexedHeights(ctx, tx, []string{chainKey})
	if err != nil {
		return err
	}
	return s.saveInvoices(ctx, set, heights[chainKey])
}

// AmountReturned returns how much of a payment was refunded, is being refunded, or may be refunded
// because a reorg dropped the refund.
func (s *Service) AmountReturned(ctx context.Context, paymentID string) (invoice.Amount, error) {
	back, err := amountsReturned(ctx, s.store, []string{paymentID}, s.schedule().Add(-returnPatience))
	return back[paymentID], err
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
	to := s.schedule().Add(-returnPatience)
	after := OrphanedRefund{At: to.Add(-releaseWindow)}
	for more := true; more; {
		more = false // if the chain was never read
		err := s.updateChain(ctx, chainKey, func(tx *db.Tx, out *outbox) error {
			ids, last, err := OrphanedRefundsBetween(ctx, tx, chainKey, after, to, returnedBatch)
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
