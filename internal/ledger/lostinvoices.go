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
// the service closes only invoices that are not open. In blocks of the lost past, commitments without an
// invoice are recorded as well. A chain that was never recovered has no such past.
func (s *Service) noteRegistry(ctx context.Context, tx *db.Tx, scope chainScope, blocks []Block) error {
	if !scope.recovery && scope.past == (blockRange{}) {
		return nil
	}
	facts := registryFacts(scope, blocks)
	if len(facts) == 0 {
		return nil
	}
	return s.noteFacts(ctx, tx, scope, facts)
}

// noteFacts records facts in events of the registry about the lost past.
func (s *Service) noteFacts(ctx context.Context, tx *db.Tx, scope chainScope, facts []registryFact) error {
	ids := db.Each(facts, func(f registryFact) invoice.Hash { return f.CommitmentID })
	found, err := InvoicesByCommitment(ctx, tx, ids)
	if err != nil {
		return err
	}
	ch, err := s.load(ctx, tx, scope.key, slices.Collect(maps.Values(found))...)
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
		if isLost, err := isLost(ctx, tx, scope, f.LostInvoice); err != nil {
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
	return InsertLostAddresses(ctx, tx, scope.key, paidTo)
}

// registryFact is the content of an event of a registry about a commitment.
type registryFact struct {
	LostInvoice
	paidTo invoice.Address // zero unless it was paid
}

// registryFacts returns the facts in the blocks' events: all of them in blocks of the lost past, and in others only
// closed commitments.
func registryFacts(scope chainScope, blocks []Block) (facts []registryFact) {
	for _, b := range blocks {
		for _, e := range b.Registry {
			f := registryFact{LostInvoice{ChainKey: scope.key, CommitmentID: e.CommitmentID, Registry: e.Registry, Block: b.Number}, e.Merchant}
			if e.Kind != RegistryPaid { // payers do that
				f.TxHash = e.TxHash
			}
			if e.Kind == RegistryClosed {
				f.ClosedBlock, f.ClosedAt = b.Number, b.Time
			} else if !scope.isLost(b.Number) {
				continue
			}
			facts = append(facts, f)
		}
	}
	return facts
}

// isLost reports whether a commitment without an invoice is from the lost past: all in its blocks are, and after these
// the ones that it has.
func isLost(ctx context.Context, tx *db.Tx, scope chainScope, l LostInvoice) (bool, error) {
	if scope.isLost(l.Block) {
		return true, nil
	}
	_, err := lostInvoice(ctx, tx, l.CommitmentID)
	return err == nil, db.IgnoreNotFound(err)
}

// noteForeign collects the transactions that opened or closed commitments and that the service has not
// stored. Blocks of a lost past, which may be read again, have transactions that the recovery knew.
func noteForeign(ctx context.Context, tx *db.Tx, out *outbox, scope chainScope, blocks []Block) error {
	var txs []invoice.Hash
	for _, b := range blocks {
		if scope.isLost(b.Number) {
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
		out.foreign = append(out.foreign, foreignTx{scope.key, hash})
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

// ReadAgain schedules the blocks of a chain from a number on to be read again, including ones that are not final.
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

const (
	// closedBatch is how many closed invoices one transaction decides about. While it runs, their chain cannot be read.
	closedBatch = 20
	// ClosedPayments is how many payments without an invoice it reads for each. An invoice with that many
	// may be paid by hand.
	ClosedPayments = 500
)

// endsInLostPast reports whether the close of an invoice's commitment shows that the invoice became void or paid in a past
// that the database has lost.
func endsInLostPast(inv invoice.Invoice, l LostInvoice) bool {
	return l.ClosedBlock > 0 && inv.Status == invoice.Open && !inv.EndedInLostPast() && !l.ClosedAt.After(inv.ExpiresAt)
}

// endInLostPast records that the close of its commitment ended an open invoice. voidClosed decides about it.
func endInLostPast(ctx context.Context, tx *db.Tx, inv invoice.Invoice, l LostInvoice) error {
	if err := insertLostInvoices(ctx, tx, []LostInvoice{l}); err != nil {
		return err
	}
	if err := markClosed(ctx, tx, l.CommitmentID, true); err != nil {
		return err
	}
	return markEndedInLostPast(ctx, tx, inv.ID, l.ClosedBlock)
}

// voidClosed makes open invoices void if their commitments were closed in final blocks, before they
// expired, by a past that the database has lost. Payments up to there have paid the invoices that they
// cover. An invoice that payments without an invoice may have paid by hand stays open until a person
// decides; it does not expire. During a recovery voidClosed does not decide, because imported invoices
// may explain such payments. It reports whether there may be more invoices than it decided about.
func (s *Service) voidClosed(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, cur Cursor) (more bool, err error) {
	if s.conf.Recovery {
		return false, nil
	}
	closed, err := closedInvoices(ctx, tx, chainKey, cur.Confirmed.Number, closedBatch)
	if err != nil || len(closed) == 0 {
		return false, err
	}
	uncounted, err := newestUncounted(ctx, tx, chainKey, cur)
	if err != nil {
		return false, err
	}
	ids := db.Each(closed, func(l LostInvoice) string { return l.InvoiceID })
	ch, err := s.load(ctx, tx, chainKey, ids...)
	if err != nil {
		return false, err
	}
	for _, l := range closed {
		was := ch.invoice(l.InvoiceID)
		if was.EndedInLostPast() && was.FromBlock < uncounted {
			continue
		}
		if err := s.voidUnlessPaid(ctx, tx, out, ch, was); err != nil {
			return false, err
		}
		if err := markClosed(ctx, tx, l.CommitmentID, false); err != nil {
			return false, err
		}
		more = len(closed) == closedBatch
	}
	return more, UpdateInvoices(ctx, tx, ch.changedInvoices())
}

// voidUnlessPaid makes an invoice void if it is open and no payment up to the block at which it ended can have
// paid it. An invoice that a held payment can have paid before it was refunded stays open until the payment's verdict.
func (s *Service) voidUnlessPaid(ctx context.Context, tx *db.Tx, out *outbox, ch *Changes, was invoice.Invoice) error {
	if !was.EndedInLostPast() {
		return nil
	}
	byHand, err := mayBePaidByHand(ctx, tx, was)
	if err != nil || byHand {
		return err
	}
	kept := was
	if kept.Sums.Returned = (invoice.Amount{}); kept.Covered() {
		if held, err := hasHeldPayment(ctx, tx, was); err != nil || held {
			return err
		}
	}
	voided, err := was.Cancel(was.ClosedBlock)
	if errors.Is(err, invoice.ErrCovered) {
		return nil
	}
	if err != nil {
		return err
	}
	ch.putInvoice(voided)
	return s.recordVoid(ctx, tx, out, was, voided)
}

// mayBePaidByHand reports whether payments without an invoice, up to the block at which an open
// invoice ended, may have paid it, or are too many to be read.
func mayBePaidByHand(ctx context.Context, tx *db.Tx, inv invoice.Invoice) (bool, error) {
	payments, err := unattributedOf(ctx, tx, inv, ClosedPayments)
	for _, p := range payments {
		if inv.Accepts(p.Transfer) {
			inv = inv.WithPayment(p)
		}
	}
	return len(payments) == ClosedPayments || inv.Covered(), err
}
