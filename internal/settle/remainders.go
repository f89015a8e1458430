package settle

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// saveInvoices writes the changed invoices, and assigns a transfer amount to the remainder of each
// direct one that is partly paid, unless it has one. Earlier transfer amounts stay. The payments must
// have been written. indexed is the newest block that was read.
func (s *Service) saveInvoices(ctx context.Context, invoices *invoiceSet, indexed uint64) error {
	if err := invoices.recountRemainders(ctx); err != nil {
		return err
	}
	var partlyPaid []string
	for id := range invoices.changed {
		inv := invoices.byID[id]
		if !inv.IsDeposit() && (len(invoices.remainders[id]) > 0 || inv.Status == invoice.Open && !inv.Remaining.IsZero()) {
			partlyPaid = append(partlyPaid, id)
		} else if inv.RemainingTransfer = (invoice.Amount{}); inv.Remaining.IsZero() {
			invoices.put(inv)
		}
	}
	slices.Sort(partlyPaid)
	if err := s.saveRemainders(ctx, invoices, partlyPaid, indexed); err != nil {
		return err
	}
	return invoices.save(ctx)
}

// recountRemainders computes the remainders of the invoices that are out of
// order from their payments in time. A closed invoice has no Remaining, but it had
// remainders between its payments.
func (set *invoiceSet) recountRemainders(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(set.outOfOrder))
	clear(set.outOfOrder)
	for _, id := range ids {
		inv := set.byID[id]
		h, err := set.history(ctx, id, nil)
		if err != nil {
			return err
		}
		if set.remainders[id] = h.Remainders(); inv.Status == invoice.Open {
			inv.Remaining = h.Remainder()
		}
		set.put(inv)
	}
	return nil
}

// allRemainders returns the remainders of the invoices with the ids, Remaining
// included, by id, in ascending order.
func (set *invoiceSet) allRemainders(ids []string) map[string][]invoice.Amount {
	remainders := make(map[string][]invoice.Amount, len(ids))
	for _, id := range ids {
		remainders[id] = slices.Clone(set.remainders[id])
		if inv := set.byID[id]; inv.Status == invoice.Open && !inv.Remaining.IsZero() {
			remainders[id] = append(remainders[id], inv.Remaining)
		}
		slices.SortFunc(remainders[id], invoice.Amount.Cmp)
		remainders[id] = slices.Compact(remainders[id])
	}
	return remainders
}

// saveRemainders records the remainders of invoices, and sets the transfer
// amounts of those that remain now. An earlier remainder never gets a transfer
// amount; it is recorded because a transfer between the payments may have paid
// it.
func (s *Service) saveRemainders(ctx context.Context, invoices *invoiceSet, ids []string, indexed uint64) error {
	remainders := invoices.allRemainders(ids)
	assigned, err := RemainderTransferAmounts(ctx, invoices.tx, remainders)
	if err != nil {
		return err
	}
	var wanted, retried, earlier []TransferAmount
	for _, id := range ids {
		inv := invoices.byID[id]
		for _, r := range remainders[id] {
			t := TransferAmount{Invoice: inv, Base: r, FromBlock: indexed, Remainder: true}
			amount, recorded := assigned[id][r]
			switch {
			case r == inv.Remaining && inv.Status == invoice.Open && amount.IsZero():
				wanted = append(wanted, t)
				if recorded {
					retried = append(retried, t)
				}
			case !recorded:
				earlier = append(earlier, t)
			}
		}
	}
	if err := InsertBareRemainders(ctx, invoices.tx, earlier); err != nil {
		return err
	}
	if err := deleteBareRemainders(ctx, invoices.tx, retried); err != nil {
		return err
	}
	if err := s.assign(ctx, invoices.tx, wanted, assigned); err != nil {
		return err
	}
	for _, id := range ids {
		inv := invoices.byID[id]
		inv.RemainingTransfer = assigned[id][inv.Remaining]
		invoices.put(inv)
	}
	return nil
}

// assign records remainders, with a transfer amount if one is free, and adds these to assigned. It
// retries because other transactions may take the amounts.
func (s *Service) assign(ctx context.Context, tx *db.Tx, wanted []TransferAmount, assigned map[string]map[invoice.Amount]invoice.Amount) error {
	for try := 0; len(wanted) > 0; try += randomTries {
		if err := s.chooseForRemainders(ctx, tx, wanted, try); err != nil {
			return err
		}
		slices.SortFunc(wanted, func(a, b TransferAmount) int {
			return cmp.Or(bytes.Compare(a.Invoice.Merchant[:], b.Invoice.Merchant[:]), a.Amount.Cmp(b.Amount))
		})
		inserted, err := insertTransferAmounts(ctx, tx, wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(t TransferAmount) bool {
			if inserted[t.Invoice.ID] {
				assigned[t.Invoice.ID][t.Base] = t.Amount
			}
			return inserted[t.Invoice.ID]
		})
	}
	return nil
}

// chooseForRemainders sets transfer amounts for remainders. If no suffix up to MaxSuffix is free it
// chooses a larger one: the payer has no other amount to pay the remainder by, and an attacker can use
// up the suffixes of a remainder that the attacker makes.
func (s *Service) chooseForRemainders(ctx context.Context, tx *db.Tx, wanted []TransferAmount, try int) error {
	bases := make([]AmountKey, len(wanted))
	for i, w := range wanted {
		bases[i] = amountKey(w.Invoice, w.Base)
	}
	amounts, err := s.chooseAmounts(ctx, tx, bases, try)
	if err != nil {
		return err
	}
	if try < maxTries {
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
	// assignBatch is how many invoices one transaction of AssignTransferAmounts examines. It locks the
	// cursor of their chain, and an invoice takes milliseconds if all suffixes are taken.
	assignBatch = 50
	// assignRun is how many invoices of a chain AssignMoreTransferAmounts examines.
	assignRun = 4 * assignBatch
)

// AssignTransferAmounts computes the remainders of open invoices with payments that were not added up
// since an upgrade, and assigns transfer amounts to remainders if no amount was free for them before.
func (s *Service) AssignTransferAmounts(ctx context.Context) error {
	for _, c := range s.chains {
		if _, err := s.assignAfter(ctx, c.Key, "", math.MaxInt); err != nil {
			return err
		}
	}
	return nil
}

// AssignMoreTransferAmounts does what AssignTransferAmounts does for a bounded
// number of invoices of each chain. last is where the previous run ended, by
// chain, and is updated.
func (s *Service) AssignMoreTransferAmounts(ctx context.Context, last map[string]string) (err error) {
	for _, c := range s.chains {
		if last[c.Key], err = s.assignAfter(ctx, c.Key, last[c.Key], assignRun); err != nil {
			return err
		}
	}
	return nil
}

// assignAfter examines invoices of a chain with ids above after. It returns the last id, or "" if
// there are no more.
func (s *Service) assignAfter(ctx context.Context, chainKey, after string, limit int) (string, error) {
	for ; limit > 0; limit -= assignBatch {
		ids, err := InvoicesLackingTransferAmounts(ctx, s.store, chainKey, after, assignBatch)
		if err != nil || len(ids) == 0 {
			return "", err
		}
		if err := s.resave(ctx, chainKey, ids); err != nil {
			return after, err
		}
		after = ids[len(ids)-1]
	}
	return after, nil
}

// resave recounts stale sums of invoices and assigns transfer amounts. It works
// on a halted chain.
func (s *Service) resave(ctx context.Context, chainKey string, ids []string) error {
	return s.store.Update(ctx, func(tx *db.Tx) error {
		cur, err := LockCursor(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		invoices := newInvoiceSet(tx)
		if err := invoices.load(ctx, ids...); err != nil {
			return err
		}
		for _, id := range ids {
			invoices.put(invoices.byID[id])
		}
		return s.saveInvoices(ctx, invoices, cur.Indexed.Number)
	})
}
