package settle

import (
	"context"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// maxTransferBatch is how many transfers share their queries.
const maxTransferBatch = 1000

// chainScope is the common context of the transfers of one transaction.
type chainScope struct {
	key     string // of the chain
	indexed uint64 // the newest block that was read before the transaction
	final   bool   // the transfers are in final blocks
	// finalized is the newest final block, if there are transfers below and above it; 0 if final covers
	// all of them.
	finalized uint64
	// unread is the newest block that was never read; nil without one. The
	// attribution of transfers above it may depend on it and on blocks below.
	unread *uint64
}

// isAboveUnread reports whether a position is above blocks that were never read.
func (c chainScope) isAboveUnread(p invoice.Position) bool {
	return c.unread != nil && p.BlockNumber > *c.unread
}

// storedBlocks is the result of storing blocks.
type storedBlocks struct {
	moved  bool // a pending payment was found in another block than before
	found  bool // a payment of an invoice was not known, or was orphaned
	unread bool // a transaction in them could not be read
}

// storeBlocks stores the transfers of the blocks, in their order, and the registry's events.
func (s *Service) storeBlocks(ctx context.Context, tx *db.Tx, out *outbox, scope chainScope, blocks []Block) (stored storedBlocks, err error) {
	var transfers []invoice.Transfer
	var observations []IntentObservation
	var unread []UnreadTransaction
	for _, b := range blocks {
		for _, t := range b.Transfers {
			if !t.Amount.IsZero() { // anyone can make a transfer of zero between any two accounts
				transfers = append(transfers, t)
			}
		}
		for _, e := range b.Registry {
			observations = append(observations, e.observations(b.Number)...)
		}
		unread = append(unread, s.newUnread(b.Unread)...)
	}
	stored.unread = len(unread) > 0
	if err := insertUnread(ctx, tx, scope.key, unread); err != nil {
		return stored, err
	}
	if err := s.noteRegistry(ctx, tx, scope.key, blocks); err != nil {
		return stored, err
	}
	if !s.recovery {
		if err := noteForeign(ctx, tx, out, scope.key, blocks); err != nil {
			return stored, err
		}
	}
	invoices := newInvoiceSet(tx)
	for part := range slices.Chunk(transfers, maxTransferBatch) {
		b := s.newTransferBatch(invoices, out, scope, part)
		if err := b.store(ctx); err != nil {
			return stored, fmt.Errorf("transfers in blocks %d to %d of %s: %w",
				part[0].BlockNumber, part[len(part)-1].BlockNumber, scope.key, err)
		}
		stored.moved, stored.found = stored.moved || b.moved, stored.found || b.found
	}
	if err := s.finishInvoices(ctx, out, invoices, scope.indexed); err != nil {
		return stored, err
	}
	return stored, MarkIntentsObserved(ctx, tx, scope.key, observations)
}

// finishInvoices ends the batches of a transaction: it emits the events of invoices that they paid,
// and writes the resulting changes.
func (s *Service) finishInvoices(ctx context.Context, out *outbox, invoices *invoiceSet, indexed uint64) error {
	if err := s.emitPaid(ctx, out, invoices); err != nil {
		return err
	}
	return s.saveInvoices(ctx, invoices, indexed)
}

// observations returns the intents that the event carries out. Paid and Closed
// carry out an intent to open as well, because the commitment is past being
// opened.
func (e RegistryEvent) observations(block uint64) []IntentObservation {
	opened := IntentObservation{Registry: e.Registry, CommitmentID: e.CommitmentID, Kind: invoice.IntentOpen, Block: block}
	if e.Kind == RegistryOpened {
		return []IntentObservation{opened}
	}
	closed := opened
	closed.Kind = invoice.IntentClose
	return []IntentObservation{opened, closed}
}
