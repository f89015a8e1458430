package ledger

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// insertInvoices inserts the invoices of calls, each with a transfer amount that no other open invoice
// of its address has, their idempotency keys and events. It sets in got the ids of the inserted ones.
// For the others the transfer amount was taken: they have to be inserted in another transaction, with
// the next number of a try. An invoice gets no transfer amount if all suffixes are taken. If keys were
// used or references reserved since, it returns errRefused, and sets errKeyTaken or errReserved for
// their invoices.
//
// Two transactions that insert the same transfer amounts, keys or references wait for each other. So
// they are inserted in sorted order, amounts first and references last, and one transaction tries only
// one transfer amount for each invoice. The indexer assigns transfer amounts in another order; if it
// deadlocks with a create, db.Update runs one of the two transactions again.
func (s *Service) insertInvoices(ctx context.Context, tx *db.Tx, out *outbox, calls []*createCall, got *triedCreates) (err error) {
	if err := access.InsertSettlementAddresses(ctx, tx, s.settlements.missing(calls), s.conf.Now()); err != nil {
		return err
	}
	calls = oncePerAmount(calls)
	invoices := make([]invoice.Invoice, len(calls))
	for i, c := range calls {
		invoices[i] = c.Value.inv
	}
	slices.SortFunc(invoices, func(a, b invoice.Invoice) int {
		return cmp.Or(bytes.Compare(a.Merchant[:], b.Merchant[:]), a.TransferAmount.Cmp(b.TransferAmount), cmp.Compare(a.ID, b.ID))
	})
	if got.inserted, err = InsertInvoices(ctx, tx, invoices); err != nil {
		return err
	}
	calls = slices.DeleteFunc(calls, func(c *createCall) bool { return !got.inserted[c.Value.inv.ID] })
	var created []invoice.Invoice
	for _, c := range calls {
		created = append(created, c.Value.inv)
		if c.Value.inv.Status == invoice.Open {
			if err := s.emitCreated(out, c.Value.inv); err != nil {
				return err
			}
		}
	}
	used, err := InsertIdempotencyKeys(ctx, tx, keysOf(calls), s.conf.Schedule())
	if err != nil {
		return err
	}
	reserved, err := reserveReferences(ctx, tx, created)
	if err != nil {
		return err
	}
	got.collided = len(got.inserted) < len(invoices) || len(used) > 0
	got.refused = make(map[string]error)
	for id := range reserved {
		got.refused[id] = errReserved
	}
	for id := range used {
		got.refused[id] = errKeyTaken
	}
	if len(got.refused) > 0 {
		return errRefused
	}
	return nil
}

// oncePerAmount returns the calls except those with the same transfer amount as an earlier one.
func oncePerAmount(calls []*createCall) []*createCall {
	seen := make(map[AmountKey]bool)
	return slices.DeleteFunc(slices.Clone(calls), func(c *createCall) bool {
		inv := c.Value.inv
		key := amountKey(inv, inv.TransferAmount)
		again := seen[key] && !inv.TransferAmount.IsZero()
		seen[key] = true
		return again
	})
}

// without returns the calls except those for the given invoices.
func without(calls []*createCall, ids map[string]bool) []*createCall {
	return slices.DeleteFunc(slices.Clone(calls), func(c *createCall) bool { return ids[c.Value.inv.ID] })
}

// keysOf returns the idempotency keys of calls that have one.
func keysOf(calls []*createCall) (keys []IdempotencyKey) {
	for _, c := range calls {
		if c.Value.key != nil {
			keys = append(keys, *c.Value.key)
		}
	}
	return keys
}

// bind sets the transfer amounts of open direct invoices, and the blocks from which they can be paid.
// Drafts cannot be paid.
func (s *Service) bind(ctx context.Context, tx *db.Tx, calls []*createCall, try int) error {
	var chains []string
	var bases []AmountKey
	var open []*invoice.Invoice
	for _, c := range calls {
		inv := &c.Value.inv
		if !slices.Contains(chains, inv.ChainKey) {
			chains = append(chains, inv.ChainKey)
		}
		if inv.Status == invoice.Open && !inv.IsDeposit() {
			open, bases = append(open, inv), append(bases, amountKey(*inv, inv.Amount))
		}
	}
	heights, err := sendHeightsForNewInvoices(ctx, tx, chains)
	if err != nil {
		return err
	}
	amounts, err := s.chooseAmounts(ctx, tx, bases, try)
	if err == nil {
		err = tx.Flush(ctx)
	}
	if err != nil {
		return err
	}
	for _, c := range calls {
		inv := &c.Value.inv
		inv.FromBlock = heights[inv.ChainKey]
		if inv.Status == invoice.Drafted {
			inv.ClosedBlock = inv.FromBlock
		}
	}
	for i, inv := range open {
		inv.TransferAmount = amounts[i]
	}
	return nil
}

// amountKey returns the key of an amount at the invoice's address.
func amountKey(inv invoice.Invoice, a invoice.Amount) AmountKey {
	return AmountKey{ChainKey: inv.ChainKey, Merchant: inv.Merchant, Token: inv.Token, Amount: a}
}
