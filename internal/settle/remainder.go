package settle

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// toldLimit is for how many remainders of an invoice an amount is told at
// most. Each is what another payment of a part left.
const toldLimit = 100

// saveAccounts writes the invoices that were changed, and reserves an amount
// to tell for what remains of each that a part was paid of. Amounts that were
// told before stay. The payments must have been written. height is how far the
// chain is read.
func (s *Service) saveAccounts(ctx context.Context, a *accounts, height uint64) error {
	if err := a.recountParts(ctx); err != nil {
		return err
	}
	var ids []string
	for id := range a.changed {
		inv := a.invoices[id]
		if len(a.parts[id]) > 0 || inv.Status == invoice.Open && !inv.Remaining.IsZero() {
			ids = append(ids, id)
		} else if inv.RemainingTransfer = (invoice.Amount{}); inv.Remaining.IsZero() {
			a.put(inv)
		}
	}
	slices.Sort(ids)
	if err := s.tellRemainders(ctx, a, ids, height); err != nil {
		return err
	}
	return a.save(ctx)
}

// recountParts finds out what remains of the invoices that are out of order,
// from all their payments. A closed one has nothing left to pay now, but had
// between its payments.
func (a *accounts) recountParts(ctx context.Context) error {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(a.outOfOrder)) {
		if a.outOfOrder[id] {
			ids = append(ids, id)
		}
	}
	clear(a.outOfOrder)
	rows, err := a.tx.PaymentsOfInvoices(ctx, ids)
	if err != nil {
		return err
	}
	of := make(map[string][]invoice.Payment)
	for _, p := range rows {
		of[p.InvoiceID] = append(of[p.InvoiceID], p.Payment)
	}
	for _, id := range ids {
		inv := a.invoices[id]
		h := invoice.NewHistory(inv, of[id])
		if a.parts[id] = h.Remainders(); inv.Status == invoice.Open {
			inv.Remaining = h.Remainder()
		}
		a.put(inv)
	}
	return nil
}

// tellRemainders records what parts left of invoices, and sets the amounts
// that are told for what remains. What was left earlier on the chain, and found
// later, is never told; but a transfer between the parts may have paid it.
func (s *Service) tellRemainders(ctx context.Context, a *accounts, ids []string, height uint64) error {
	told, err := a.tx.ToldFor(ctx, ids)
	if err != nil {
		return err
	}
	var wanted, past []store.Told
	for _, id := range ids {
		inv := a.invoices[id]
		if told[id] == nil {
			told[id] = make(map[invoice.Amount]invoice.Amount)
		}
		left := toldLimit - len(told[id])
		for _, r := range a.parts[id] {
			if _, known := told[id][r]; known || left <= 0 {
				continue
			}
			t := store.Told{Invoice: inv, Base: r, FromBlock: height, Remainder: true}
			told[id][r] = invoice.Amount{}
			left--
			if r == inv.Remaining && inv.Status == invoice.Open {
				wanted = append(wanted, t)
			} else {
				past = append(past, t)
			}
		}
	}
	if _, err := a.tx.InsertRemainders(ctx, past); err != nil {
		return err
	}
	if err := s.reserve(ctx, a.tx, wanted, told); err != nil {
		return err
	}
	for _, id := range ids {
		inv := a.invoices[id]
		inv.RemainingTransfer = told[id][inv.Remaining]
		a.put(inv)
	}
	return nil
}

// reserve records remainders, each with an amount to tell where one is free,
// and notes these. It tries a few amounts: other transactions choose, too.
func (s *Service) reserve(ctx context.Context, tx *store.Tx, wanted []store.Told, told map[string]map[invoice.Amount]invoice.Amount) error {
	for try := 0; len(wanted) > 0; try += blindTries {
		bases := make([]store.AmountKey, len(wanted))
		for i, w := range wanted {
			bases[i] = amountKey(w.Invoice, w.Base)
		}
		amounts, err := s.chooseAmounts(ctx, tx, bases, try)
		if err != nil {
			return err
		}
		for i := range wanted {
			wanted[i].Amount = amounts[i]
		}
		slices.SortFunc(wanted, func(a, b store.Told) int {
			return cmp.Or(bytes.Compare(a.Invoice.Merchant[:], b.Invoice.Merchant[:]), a.Amount.Cmp(b.Amount))
		})
		inserted, err := tx.InsertRemainders(ctx, wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(w store.Told) bool {
			done := slices.Contains(inserted[w.Invoice.ID], w.Base)
			if done {
				told[w.Invoice.ID][w.Base] = w.Amount
			}
			return done
		})
	}
	return nil
}
