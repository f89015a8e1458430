package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// maxLostAddresses bounds the deposit addresses of lost invoices that are watched on a chain.
const maxLostAddresses = 1_000_000

// noteRegistry records facts in the blocks' events about a past that the database has lost. If the
// commitment of an open invoice was closed before the invoice expired, the invoice ended in that past:
// the service closes only invoices that are not open. During a recovery, commitments without an
// invoice are recorded as well. A chain that was never recovered has no such past.
func (s *Service) noteRegistry(ctx context.Context, tx *db.Tx, chainKey string, blocks []Block) error {
	facts := registryFacts(chainKey, blocks, s.conf.Recovery)
	if len(facts) == 0 {
		return nil
	}
	if !s.conf.Recovery {
		from, err := RecoveredFrom(ctx, tx)
		if _, recovered := from[chainKey]; err != nil || !recovered {
			return err
		}
	}
	return s.noteFacts(ctx, tx, chainKey, facts)
}

// noteFacts records facts in events of the registry about the lost past.
func (s *Service) noteFacts(ctx context.Context, tx *db.Tx, chainKey string, facts []registryFact) error {
	ids := make([]invoice.Hash, len(facts))
	for i, f := range facts {
		ids[i] = f.CommitmentID
	}
	found, err := InvoicesByCommitment(ctx, tx, ids)
	if err != nil {
		return err
	}
	ch, err := s.load(ctx, tx, chainKey, slices.Collect(maps.Values(found))...)
	if err != nil {
		return err
	}
	var lost []LostInvoice
	paidTo := make(map[invoice.Address]invoice.Hash)
	for _, f := range facts {
		if inv := ch.invoice(found[f.CommitmentID]); inv.ID != "" {
			if !endsInLostPast(inv, f.LostInvoice) {
				continue
			}
			if err := endInLostPast(ctx, tx, inv, f.LostInvoice); err != nil {
				return err
			}
			continue
		}
		if isLost, err := s.isLost(ctx, tx, f.CommitmentID); err != nil {
			return err
		} else if !isLost {
			continue
		}
		lost = append(lost, f.LostInvoice)
		if !f.paidTo.IsZero() {
			paidTo[f.paidTo] = invoice.Hash{}
		}
	}
	if err := insertLostInvoices(ctx, tx, lost); err != nil {
		return err
	}
	return InsertLostAddresses(ctx, tx, chainKey, paidTo)
}

// registryFact is the content of an event of a registry about a commitment.
type registryFact struct {
	LostInvoice
	paidTo invoice.Address // zero unless it was paid
}

// registryFacts returns the facts in the blocks' events: all of them, or only closed commitments.
func registryFacts(chainKey string, blocks []Block, all bool) (facts []registryFact) {
	for _, b := range blocks {
		for _, e := range b.Registry {
			f := registryFact{LostInvoice{ChainKey: chainKey, CommitmentID: e.CommitmentID, Registry: e.Registry, Block: b.Number}, e.Merchant}
			if e.Kind != RegistryPaid { // payers do that
				f.TxHash = e.TxHash
			}
			if e.Kind == RegistryClosed {
				f.ClosedBlock, f.ClosedAt = b.Number, b.Time
			} else if !all {
				continue
			}
			facts = append(facts, f)
		}
	}
	return facts
}

// isLost reports whether a commitment without an invoice is from the lost past. During a recovery all
// are, and afterwards the ones that it found.
func (s *Service) isLost(ctx context.Context, tx *db.Tx, id invoice.Hash) (bool, error) {
	if s.conf.Recovery {
		return true, nil
	}
	_, err := lostInvoice(ctx, tx, id)
	if errors.Is(err, db.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// noteForeign collects the transactions that opened or closed commitments and that the service has not
// stored. Blocks of a lost past, which may be read again, have transactions that the recovery knew.
func noteForeign(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, blocks []Block) error {
	past, err := lostPast(ctx, tx, chainKey)
	if err != nil {
		return err
	}
	var txs []invoice.Hash
	for _, b := range blocks {
		if past.has(b.Number) {
			continue
		}
		for _, e := range b.Registry {
			if e.Kind != RegistryPaid && !slices.Contains(txs, e.TxHash) {
				txs = append(txs, e.TxHash)
			}
		}
	}
	foreign, err := foreignTxs(ctx, tx, txs)
	for _, hash := range foreign {
		out.foreign = append(out.foreign, foreignTx{chainKey, hash})
	}
	return err
}

// WatchLost records the deposit addresses that lost invoices of a chain may have: one for each lost
// invoice and settlement address, the oldest invoices first, up to maxLostAddresses. It returns how
// many lost addresses are watched. On a chain without a deposit factory it has no effect.
func (s *Service) WatchLost(ctx context.Context, chainKey string) (watched int, err error) {
	lost, settlements, _, err := s.lostDeposits(ctx, chainKey)
	if err != nil {
		return 0, err
	}
	for _, l := range lost {
		addresses := make(map[invoice.Address]invoice.Hash)
		for _, to := range settlements {
			addresses[s.byKey[chainKey].DepositAddress(to, l.CommitmentID)] = l.CommitmentID
		}
		if err := s.conf.Store.Update(ctx, func(tx *db.Tx) error { return InsertLostAddresses(ctx, tx, chainKey, addresses) }); err != nil {
			return 0, err
		}
	}
	return LostAddresses(ctx, s.conf.Store, chainKey)
}

// LostDeposits returns which of the addresses are deposit addresses of lost invoices. Transfers from
// these are not recorded.
func (s *Service) LostDeposits(ctx context.Context, chainKey string, among []invoice.Address) (map[invoice.Address]bool, error) {
	found, err := Deposits(ctx, s.conf.Store, chainKey, among)
	lost := make(map[invoice.Address]bool)
	for a, id := range found {
		if isLostDeposit(id) {
			lost[a] = true
		}
	}
	return lost, err
}

// UnwatchedLost returns how many lost invoices WatchLost leaves out, because they have too many deposit addresses.
func (s *Service) UnwatchedLost(ctx context.Context, chainKey string) (int, error) {
	_, _, left, err := s.lostDeposits(ctx, chainKey)
	return left, err
}

// lostDeposits returns the lost invoices of a chain with watched deposit addresses, for these
// settlement addresses, and how many invoices are left out.
func (s *Service) lostDeposits(ctx context.Context, chainKey string) (lost []LostInvoice, settlements []invoice.Address, left int, err error) {
	if s.byKey[chainKey].DepositFactory.IsZero() {
		return nil, nil, 0, nil
	}
	if lost, err = LostInvoices(ctx, s.conf.Store, chainKey); err != nil {
		return nil, nil, 0, err
	}
	if settlements, err = allSettlementAddresses(ctx, s.conf.Store, chainKey); err != nil {
		return nil, nil, 0, err
	}
	lost = slices.DeleteFunc(lost, func(l LostInvoice) bool { return l.InvoiceID != "" })
	fit := fittingLost(len(lost), len(settlements))
	return lost[:fit], settlements, len(lost) - fit, nil
}

// fittingLost returns how many of the lost invoices have no more than maxLostAddresses deposit addresses together.
func fittingLost(lost, settlements int) int { return min(lost, maxLostAddresses/max(1, settlements)) }

// ReadAgain schedules the blocks of a chain from a number on to be read again, including ones that are
// not final.
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
