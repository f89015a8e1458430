package settle

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// insertInvoices inserts the invoices, each with a transfer amount that no
// other open one of its address has, and collects what their creation leaves
// behind. It returns those whose transfer amount was taken; they are to be
// tried again, with the next number of a try. When all suffixes of an amount
// are taken the invoice has none: it can still be paid in every other way.
//
// Two transactions that insert the same transfer amounts wait for each other.
// So the invoices go in sorted, and a transaction that has inserted some must
// not try the others again: each would hold what the other waits for.
// The indexer tells remainders batch after batch, in no such order. Where it and
// a create deadlock, the database ends one of them, which is run again: see
// store.Update.
func (s *Service) insertInvoices(ctx context.Context, tx *store.Tx, out *outbox, invoices []*invoice.Invoice, try int) ([]*invoice.Invoice, error) {
	if err := s.insertSettlements(ctx, tx, invoices); err != nil {
		return nil, err
	}
	var chains []string
	for _, inv := range invoices {
		if !slices.Contains(chains, inv.ChainKey) {
			chains = append(chains, inv.ChainKey)
		}
	}
	heights, err := tx.HeightsToBind(ctx, chains)
	if err != nil {
		return nil, err
	}
	bases := make([]store.AmountKey, len(invoices))
	for i, inv := range invoices {
		bases[i] = amountKey(*inv, inv.Amount)
	}
	told, err := s.chooseAmounts(ctx, tx, bases, try)
	if err != nil {
		return nil, err
	}
	values := make([]invoice.Invoice, len(invoices))
	for i, inv := range invoices {
		inv.FromBlock, inv.TransferAmount = heights[inv.ChainKey], told[i]
		values[i] = *inv
	}
	slices.SortFunc(values, func(a, b invoice.Invoice) int {
		return cmp.Or(bytes.Compare(a.Merchant[:], b.Merchant[:]), a.TransferAmount.Cmp(b.TransferAmount), cmp.Compare(a.ID, b.ID))
	})
	inserted, err := tx.InsertInvoices(ctx, values)
	if err != nil {
		return nil, err
	}
	var again []*invoice.Invoice
	for _, inv := range invoices {
		if !inserted[inv.ID] {
			again = append(again, inv)
		} else if err := s.emitCreated(out, *inv); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// amountKey names an amount that arrives at the invoice's address.
func amountKey(inv invoice.Invoice, a invoice.Amount) store.AmountKey {
	return store.AmountKey{ChainKey: inv.ChainKey, Merchant: inv.Merchant, Token: inv.Token, Amount: a}
}
