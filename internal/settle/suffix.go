package settle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"math/big"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// blindTries is how many random suffixes are tried before the database is
	// asked which are free.
	blindTries = 3
	// knowingTries is how many of those are tried: others may take them first.
	knowingTries = 3
	// exhaustedFor is how long it is believed that no suffix of an amount is
	// free.
	exhaustedFor = 5 * time.Second
	// exhaustedLimit bounds how many such amounts are remembered.
	exhaustedLimit = 4096
)

// amountKey names the invoices that share the suffixes of an amount.
type amountKey struct {
	chainKey        string
	token, merchant invoice.Address
	amount          invoice.Amount
}

func amountKeyOf(inv *invoice.Invoice) amountKey {
	return amountKey{inv.ChainKey, inv.Token, inv.Merchant, inv.Amount}
}

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
	values := make([]invoice.Invoice, len(invoices))
	for i, inv := range invoices {
		if err := s.chooseSuffix(ctx, tx, inv, try); err != nil {
			return nil, err
		}
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

// chooseSuffix sets the transfer amount to try, or none.
func (s *Service) chooseSuffix(ctx context.Context, tx *store.Tx, inv *invoice.Invoice, try int) error {
	inv.TransferAmount = invoice.Amount{}
	switch {
	case try >= blindTries+knowingTries || s.isExhausted(inv):
		return nil
	case try < blindTries:
		n, err := rand.Int(s.Rand, big.NewInt(invoice.MaxSuffix))
		if err != nil {
			return err
		}
		if sum, ok := inv.Amount.Add(invoice.NewAmount(n.Uint64() + 1)); ok {
			inv.TransferAmount = sum
		}
		return nil
	}
	free, err := freeAmounts(ctx, tx, *inv)
	if err != nil {
		return err
	}
	if len(free) == 0 {
		s.exhaust(inv)
		return nil
	}
	n, err := rand.Int(s.Rand, big.NewInt(int64(len(free))))
	if err != nil {
		return err
	}
	inv.TransferAmount = free[n.Int64()]
	return nil
}

// freeAmounts returns the transfer amounts that the invoice could have.
func freeAmounts(ctx context.Context, tx *store.Tx, inv invoice.Invoice) ([]invoice.Amount, error) {
	all := make([]invoice.Amount, 0, invoice.MaxSuffix)
	for suffix := range uint64(invoice.MaxSuffix) {
		if a, ok := inv.Amount.Add(invoice.NewAmount(suffix + 1)); ok {
			all = append(all, a)
		}
	}
	taken, err := tx.TakenTransferAmounts(ctx, inv, all)
	if err != nil {
		return nil, err
	}
	var free []invoice.Amount
	for _, a := range all {
		if !taken[a] {
			free = append(free, a)
		}
	}
	return free, nil
}

func (s *Service) isExhausted(inv *invoice.Invoice) bool {
	s.creates.mu.Lock()
	defer s.creates.mu.Unlock()
	until, ok := s.creates.exhausted[amountKeyOf(inv)]
	return ok && s.Now().Before(until)
}

func (s *Service) exhaust(inv *invoice.Invoice) {
	s.creates.mu.Lock()
	defer s.creates.mu.Unlock()
	if len(s.creates.exhausted) > exhaustedLimit {
		clear(s.creates.exhausted)
	}
	s.creates.exhausted[amountKeyOf(inv)] = s.Now().Add(exhaustedFor)
}
