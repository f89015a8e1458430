package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// saveInvoices writes the changed invoices, and assigns a transfer amount to what remains of each direct one that is
// partly paid, unless it has one. Earlier transfer amounts stay. The payments must have been written.
func (s *Service) saveInvoices(ctx context.Context, tx *db.Tx, ch *Changes) error {
	var partlyPaid []invoice.Invoice
	for _, inv := range ch.changedInvoices() {
		if !inv.IsDeposit() && (len(ch.remainders[inv.ID]) > 0 || inv.Status == invoice.Open && !inv.Remaining.IsZero()) {
			partlyPaid = append(partlyPaid, inv)
		} else if inv.RemainingTransfer = (invoice.Amount{}); inv.Remaining.IsZero() {
			ch.putInvoice(inv)
		}
	}
	if err := s.saveRemainders(ctx, tx, ch, partlyPaid); err != nil {
		return err
	}
	return UpdateInvoices(ctx, tx, ch.changedInvoices())
}

// saveRemainders records the remainders of invoices, and sets the transfer amounts of those that remain now. An earlier
// remainder never gets a transfer amount; it is recorded because a transfer between the payments may have paid it.
func (s *Service) saveRemainders(ctx context.Context, tx *db.Tx, ch *Changes, invoices []invoice.Invoice) error {
	remainders := make(map[string][]invoice.Amount, len(invoices))
	for _, inv := range invoices {
		remainders[inv.ID] = ch.allRemainders(inv)
	}
	assigned, err := RemainderTransferAmounts(ctx, tx, remainders)
	if err != nil {
		return err
	}
	var wanted, retried, earlier []TransferAmount
	for _, inv := range invoices {
		for _, r := range remainders[inv.ID] {
			t := TransferAmount{Invoice: inv, Base: r, FromBlock: ch.chain.indexed, Remainder: true}
			amount, recorded := assigned[inv.ID][r]
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
	if err := InsertBareRemainders(ctx, tx, earlier); err != nil {
		return err
	}
	if err := deleteBareRemainders(ctx, tx, retried); err != nil {
		return err
	}
	if err := s.assign(ctx, tx, wanted, assigned); err != nil {
		return err
	}
	for _, inv := range invoices {
		inv.RemainingTransfer = assigned[inv.ID][inv.Remaining]
		ch.putInvoice(inv)
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
	bases := db.Each(wanted, func(w TransferAmount) AmountKey { return amountKey(w.Invoice, w.Base) })
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
func (s *Service) AssignTransferAmounts(ctx context.Context) (err error) {
	for _, c := range s.conf.Chains {
		_, failed := s.assignAfter(ctx, c.Key, "", math.MaxInt)
		err = errors.Join(err, failed)
	}
	return err
}

// AssignMoreTransferAmounts does what AssignTransferAmounts does for a bounded number of invoices of each chain. last
// is where the previous run ended, by chain, and is updated.
func (s *Service) AssignMoreTransferAmounts(ctx context.Context, last map[string]string) (err error) {
	for _, c := range s.conf.Chains {
		var failed error
		last[c.Key], failed = s.assignAfter(ctx, c.Key, last[c.Key], assignRun)
		err = errors.Join(err, failed)
	}
	return err
}

// assignAfter examines invoices of a chain with ids above after. It returns the last id, or "" if there are no more.
func (s *Service) assignAfter(ctx context.Context, chainKey, after string, limit int) (string, error) {
	for ; limit > 0; limit -= assignBatch {
		ids, err := InvoicesLackingTransferAmounts(ctx, s.conf.Store, chainKey, after, assignBatch)
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

// resave recounts stale sums of invoices and assigns transfer amounts. It works on a halted chain.
func (s *Service) resave(ctx context.Context, chainKey string, ids []string) error {
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		cur, err := LockCursor(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		ch, err := change(ctx, tx, s.scope(chainKey, cur), func(ch *Changes) {
			for _, id := range ids {
				ch.putInvoice(ch.invoice(id))
			}
			ch.recountRemainders()
		})
		if err != nil {
			return err
		}
		return s.saveInvoices(ctx, tx, ch)
	})
}
