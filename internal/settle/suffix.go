package settle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// blindTries is how often a random suffix is tried before all that are free
	// are looked for.
	blindTries = 3
	// knowingTries is how often one of those that are free is tried: others
	// may take it first.
	knowingTries = 3
	// Quarantine is how long after an invoice's expiry, in seconds, no other
	// invoice is given its transfer amount while there are others: its payer
	// may be late, or pay twice.
	Quarantine = 24 * 60 * 60
	// exhaustedFor is how long it is believed that no suffix of an amount is
	// free.
	exhaustedFor = 5 * time.Second
	// exhaustedLimit bounds how many such amounts are remembered.
	exhaustedLimit = 4096
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
func (s *Service) insertInvoices(ctx context.Context, tx *store.Tx, c *changes, invoices []*invoice.Invoice, try int) ([]*invoice.Invoice, error) {
	if err := s.insertSettlements(ctx, tx, invoices); err != nil {
		return nil, err
	}
	if err := s.chooseSuffixes(ctx, tx, invoices, try); err != nil {
		return nil, err
	}
	values := make([]invoice.Invoice, len(invoices))
	for i, inv := range invoices {
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
		} else if err := s.createdChanges(c, *inv); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// chooseSuffixes sets the transfer amount that each invoice tries, or none.
func (s *Service) chooseSuffixes(ctx context.Context, tx *store.Tx, invoices []*invoice.Invoice, try int) error {
	random := make(map[*invoice.Invoice]store.AmountKey)
	for _, inv := range invoices {
		inv.TransferAmount = invoice.Amount{}
		if try >= blindTries || s.isExhausted(inv) {
			continue
		}
		n, err := rand.Int(s.Rand, big.NewInt(invoice.MaxSuffix))
		if err != nil {
			return err
		}
		if k, ok := suffixed(inv, n.Uint64()+1); ok {
			random[inv] = k
		}
	}
	uses, err := tx.AmountUses(ctx, slices.Collect(maps.Values(random)), s.Now().Unix()-Quarantine)
	if err != nil {
		return err
	}
	for _, inv := range invoices {
		k, tried := random[inv]
		switch {
		case tried && uses[k] == store.AmountUse{}:
			inv.TransferAmount = k.Amount
		case try < blindTries+knowingTries && !s.isExhausted(inv):
			if err := s.chooseFree(ctx, tx, inv); err != nil {
				return err
			}
		}
	}
	return nil
}

// suffixed returns the invoice's amount with a suffix; ok is false when that
// is no amount.
func suffixed(inv *invoice.Invoice, suffix uint64) (k store.AmountKey, ok bool) {
	k = store.AmountKey{ChainKey: inv.ChainKey, Merchant: inv.Merchant, Token: inv.Token}
	k.Amount, ok = inv.Amount.Add(invoice.NewAmount(suffix))
	return k, ok
}

// chooseFree sets one of the transfer amounts that mean nothing, at random; if
// there is none, the one whose last invoice expired longest ago; if all are
// those of open invoices, none.
func (s *Service) chooseFree(ctx context.Context, tx *store.Tx, inv *invoice.Invoice) error {
	var all []store.AmountKey
	for suffix := range uint64(invoice.MaxSuffix) {
		if k, ok := suffixed(inv, suffix+1); ok {
			all = append(all, k)
		}
	}
	uses, err := tx.AmountUses(ctx, all, s.Now().Unix()-Quarantine)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(k store.AmountKey) bool { return uses[k].Taken })
	if len(all) == 0 {
		s.exhaust(inv)
		return nil
	}
	oldest := uses[slices.MinFunc(all, func(a, b store.AmountKey) int { return cmp.Compare(uses[a].Until, uses[b].Until) })].Until
	all = slices.DeleteFunc(all, func(k store.AmountKey) bool { return uses[k].Until != oldest })
	n, err := rand.Int(s.Rand, big.NewInt(int64(len(all))))
	if err != nil {
		return err
	}
	inv.TransferAmount = all[n.Int64()].Amount
	return nil
}

func (s *Service) isExhausted(inv *invoice.Invoice) bool {
	s.creates.mu.Lock()
	defer s.creates.mu.Unlock()
	until, ok := s.creates.exhausted[exhaustionKey(inv)]
	return ok && s.Now().Before(until)
}

func (s *Service) exhaust(inv *invoice.Invoice) {
	s.creates.mu.Lock()
	defer s.creates.mu.Unlock()
	if len(s.creates.exhausted) > exhaustedLimit {
		clear(s.creates.exhausted)
	}
	s.creates.exhausted[exhaustionKey(inv)] = s.Now().Add(exhaustedFor)
}

// exhaustionKey names the invoices that share the suffixes of an amount.
func exhaustionKey(inv *invoice.Invoice) store.AmountKey {
	k, _ := suffixed(inv, 0)
	return k
}
