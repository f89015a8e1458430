package settle

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// maxLostAddresses bounds the deposit addresses of lost invoices that are watched on a chain.
const maxLostAddresses = 1_000_000

// noteLost records the commitments in the blocks' events that the database lacks, and open invoices
// that the registry closed before they expired.
func noteLost(ctx context.Context, tx *store.Tx, chainKey string, blocks []Block) error {
	var lost []store.LostInvoice
	paidTo := make(map[invoice.Address]invoice.Hash)
	for _, b := range blocks {
		for _, e := range b.Registry {
			inv, err := tx.InvoiceByCommitment(ctx, e.CommitmentID)
			l := store.LostInvoice{ChainKey: chainKey, CommitmentID: e.CommitmentID, Registry: e.Registry, Block: b.Number}
			switch {
			case errors.Is(err, store.ErrNotFound):
				lost = append(lost, l)
				if !e.Merchant.IsZero() {
					paidTo[e.Merchant] = invoice.Hash{}
				}
			case err != nil:
				return err
			case e.Kind == RegistryClosed && inv.Status == invoice.Open && b.Time.Before(inv.ExpiresAt):
				l.Closed = true
				lost = append(lost, l)
			}
		}
	}
	if err := tx.InsertLostInvoices(ctx, lost); err != nil {
		return err
	}
	return tx.InsertLostAddresses(ctx, chainKey, paidTo)
}

// WatchLost has the deposit addresses recorded that lost invoices of a chain may have: one for each lost invoice
// and settlement address. It returns how many lost addresses are watched, and does nothing on a chain
// without a deposit factory.
func (s *Service) WatchLost(ctx context.Context, chainKey string) (watched int, err error) {
	c := s.byKey[chainKey]
	lost, err := s.store.LostInvoices(ctx, chainKey)
	if err != nil {
		return 0, err
	}
	settlements, err := s.store.AllSettlementAddresses(ctx, chainKey)
	if err != nil {
		return 0, err
	}
	if n := len(lost) * len(settlements); n > maxLostAddresses && !c.DepositFactory.IsZero() {
		return 0, fmt.Errorf("%d lost invoices of %s and %d settlement addresses make %d deposit addresses, more than %d; "+
			"import the invoices from the merchants' copies first, with quittance recover import", len(lost), chainKey, len(settlements), n, maxLostAddresses)
	}
	for _, l := range lost {
		if l.Closed || c.DepositFactory.IsZero() {
			continue
		}
		addresses := make(map[invoice.Address]invoice.Hash)
		for _, to := range settlements {
			addresses[c.DepositAddress(to, l.CommitmentID)] = l.CommitmentID
		}
		if err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.InsertLostAddresses(ctx, chainKey, addresses) }); err != nil {
			return 0, err
		}
	}
	return s.store.LostAddresses(ctx, chainKey)
}

// ReadAgain schedules the blocks of a chain from a number on for reading again, also those that are not
// final.
func (s *Service) ReadAgain(ctx context.Context, chainKey string, from uint64) error {
	cur, err := s.Cursor(ctx, chainKey)
	if err != nil || !cur.Started {
		return err
	}
	if cur.Confirmed.Number < cur.Indexed.Number {
		if err := s.Rollback(ctx, chainKey, cur.Confirmed); err != nil {
			return err
		}
	}
	if from > cur.Confirmed.Number {
		return nil
	}
	_, err = s.Rescan(ctx, chainKey, from)
	return err
}
