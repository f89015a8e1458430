package settle

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// saveInvoices writes the invoices that were changed, and reserves an amount
// to tell for what remains of each that a part was paid of, unless one is told
// already. Amounts that were told before stay. The payments must have been
// written. height is how far the chain is read.
func (s *Service) saveInvoices(ctx context.Context, a *invoiceSet, height uint64) error {
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
func (a *invoiceSet) recountParts(ctx context.Context) error {
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

// remainders returns what parts left of the invoices, by id, in ascending order.
func (a *invoiceSet) remainders(ids []string) map[string][]invoice.Amount {
	remainders := make(map[string][]invoice.Amount, len(ids))
	for _, id := range ids {
		remainders[id] = slices.Clone(a.parts[id])
		if inv := a.invoices[id]; inv.Status == invoice.Open && !inv.Remaining.IsZero() {
			remainders[id] = append(remainders[id], inv.Remaining)
		}
		slices.SortFunc(remainders[id], invoice.Amount.Cmp)
		remainders[id] = slices.Compact(remainders[id])
	}
	return remainders
}

// tellRemainders records what parts left of invoices, and sets the amounts
// that are told for what remains. What was left earlier on the chain, and found
// later, is never told; but a transfer between the parts may have paid it.
func (s *Service) tellRemainders(ctx context.Context, a *invoiceSet, ids []string, height uint64) error {
	remainders := a.remainders(ids)
	told, err := a.tx.RemainderTransferAmounts(ctx, remainders)
	if err != nil {
		return err
	}
	var wanted, retried, past []store.TransferAmount
	for _, id := range ids {
		inv := a.invoices[id]
		for _, r := range remainders[id] {
			t := store.TransferAmount{Invoice: inv, Base: r, FromBlock: height, Remainder: true}
			amount, recorded := told[id][r]
			switch {
			case r == inv.Remaining && inv.Status == invoice.Open && amount.IsZero():
				wanted = append(wanted, t)
				if recorded {
					retried = append(retried, t)
				}
			case !recorded:
				past = append(past, t)
			}
		}
	}
	if err := a.tx.InsertBareRemainders(ctx, past); err != nil {
		return err
	}
	if err := a.tx.DeleteBareRemainders(ctx, retried); err != nil {
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
func (s *Service) reserve(ctx context.Context, tx *store.Tx, wanted []store.TransferAmount, told map[string]map[invoice.Amount]invoice.Amount) error {
	for try := 0; len(wanted) > 0; try += blindTries {
		if err := s.chooseRemaining(ctx, tx, wanted, try); err != nil {
			return err
		}
		slices.SortFunc(wanted, func(a, b store.TransferAmount) int {
			return cmp.Or(bytes.Compare(a.Invoice.Merchant[:], b.Invoice.Merchant[:]), a.Amount.Cmp(b.Amount))
		})
		inserted, err := tx.InsertTransferAmounts(ctx, wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(w store.TransferAmount) bool {
			if inserted[w.Invoice.ID] {
				told[w.Invoice.ID][w.Base] = w.Amount
			}
			return inserted[w.Invoice.ID]
		})
	}
	return nil
}

// chooseRemaining sets amounts to tell for remainders. Where none of the common
// suffixes is free it is a larger one: the payer has no other amount to pay the
// rest by, and a stranger can use up the common ones of a remainder that he makes.
func (s *Service) chooseRemaining(ctx context.Context, tx *store.Tx, wanted []store.TransferAmount, try int) error {
	bases := make([]store.AmountKey, len(wanted))
	for i, w := range wanted {
		bases[i] = amountKey(w.Invoice, w.Base)
	}
	amounts, err := s.chooseAmounts(ctx, tx, bases, try)
	if err != nil {
		return err
	}
	if try < blindTries+knowingTries {
		if err := s.chooseLarger(ctx, tx, bases, amounts); err != nil {
			return err
		}
	}
	for i := range wanted {
		wanted[i].Amount = amounts[i]
	}
	return nil
}

const (
	// untoldBatch is how many invoices one transaction of AssignTransferAmounts examines. It
	// locks the cursor of their chain, and each takes milliseconds where a stranger
	// holds all amounts that could be told.
	untoldBatch = 50
	// untoldRun is how many of a chain AssignMoreTransferAmounts examines.
	untoldRun = 4 * untoldBatch
)

// AssignTransferAmounts finds out what remains of open invoices whose payments were not
// added up since an upgrade, and tells an amount for what remains of those for
// which none was free before.
func (s *Service) AssignTransferAmounts(ctx context.Context) error {
	for _, c := range s.Chains {
		if _, err := s.tellUntoldAfter(ctx, c.Key, "", math.MaxInt); err != nil {
			return err
		}
	}
	return nil
}

// AssignMoreTransferAmounts does so for a bounded number of each chain's, from the one that
// ended the last run on. These are kept in last, by chain.
func (s *Service) AssignMoreTransferAmounts(ctx context.Context, last map[string]string) (err error) {
	for _, c := range s.Chains {
		if last[c.Key], err = s.tellUntoldAfter(ctx, c.Key, last[c.Key], untoldRun); err != nil {
			return err
		}
	}
	return nil
}

// tellUntoldAfter does so for the invoices of a chain that follow one. It returns
// the last, or nothing when it came to the end.
func (s *Service) tellUntoldAfter(ctx context.Context, chainKey, after string, limit int) (string, error) {
	for ; limit > 0; limit -= untoldBatch {
		ids, err := s.Store.InvoicesLackingTransferAmounts(ctx, chainKey, after, untoldBatch)
		if err != nil || len(ids) == 0 {
			return "", err
		}
		if err := s.tellUntold(ctx, chainKey, ids); err != nil {
			return after, err
		}
		after = ids[len(ids)-1]
	}
	return after, nil
}

// tellUntold does so for invoices of a chain. A halted chain does not hinder it.
func (s *Service) tellUntold(ctx context.Context, chainKey string, ids []string) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		cur, err := tx.LockCursor(ctx, chainKey)
		if err != nil {
			return err
		}
		invoices := newInvoiceSet(tx)
		if err := invoices.load(ctx, ids...); err != nil {
			return err
		}
		for _, id := range ids {
			invoices.put(invoices.invoices[id])
		}
		return s.saveInvoices(ctx, invoices, cur.Indexed.Number)
	})
}
