package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// chainScope is what the transfers of one transaction have in common.
type chainScope struct {
	key     string    // of the chain
	indexed uint64    // the newest block that was read before the transaction
	now     time.Time // the time, in whole seconds
	// scheduled is the schedule's clock, in whole seconds.
	scheduled time.Time
	screens   bool // new payments are screened
	recovery  bool
	past      blockRange // of the chain's lost past, where it was read
	final     bool       // the transfers are in final blocks
	deferred  bool       // the transfers are stored already, and their attribution was deferred
	// finalized is the newest final block, where the transfers are below and
	// above it; 0 where final covers all of them.
	finalized uint64
	// unread is the newest block that was never read; nil without one. The
	// attribution of transfers above it may depend on it and on blocks below.
	unread *uint64
}

// isLost reports whether a block belongs to a past that the database has lost. A recovery reads it, and so does the
// service later: for imported invoices, or if a node withheld a transaction.
func (c chainScope) isLost(block uint64) bool { return c.recovery || c.past.has(block) }

// isAboveUnread reports whether a position is above blocks that were never read.
func (c chainScope) isAboveUnread(p invoice.Position) bool {
	return c.unread != nil && p.BlockNumber > *c.unread
}

// confirmedAt returns when a transfer was confirmed that is final now. A recovery reads what was confirmed after the backup
// was made; the time of its block is nearer to that than the present.
func (c chainScope) confirmedAt(p invoice.Position) time.Time {
	if c.recovery {
		return clock.Earlier(c.now, p.BlockTime)
	}
	return c.now
}

// scope returns what decisions about a chain have in common.
func (s *Service) scope(chainKey string, cur Cursor) chainScope {
	return chainScope{
		key: chainKey, indexed: cur.Indexed.Number, unread: cur.Unread,
		now: s.seconds(), scheduled: s.scheduled(), screens: s.conf.Screens, recovery: s.conf.Recovery,
	}
}

// storedBlocks is what blocks changed.
type storedBlocks struct {
	moved  bool // a pending payment was found in another block than before
	found  bool // a payment of an invoice was not known, or was orphaned
	other  bool // a payment without an invoice was not known
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
	if scope.past, err = lostPast(ctx, tx, scope.key); err != nil {
		return stored, err
	}
	if err := s.noteRegistry(ctx, tx, scope, blocks); err != nil {
		return stored, err
	}
	if err := noteForeign(ctx, tx, out, scope, blocks); err != nil {
		return stored, err
	}
	if len(transfers) > 0 {
		if err := s.apply(ctx, tx, out, scope, transfers, Apply, func(ch *Changes) {
			stored.moved, stored.found, stored.other = stored.moved || ch.effects.moved, stored.found || ch.effects.found, stored.other || ch.effects.other
		}); err != nil {
			return stored, fmt.Errorf("transfers in blocks %d to %d of %s: %w",
				transfers[0].BlockNumber, transfers[len(transfers)-1].BlockNumber, scope.key, err)
		}
	}
	return stored, MarkIntentsObserved(ctx, tx, scope.key, observations)
}

// maxTransfers bounds the transfers of one decision, and with them its memory.
const maxTransfers = 20_000

// apply decides about transfers, in their order, saves the changes, and calls saved with them. It divides the transfers
// if they are more than maxTransfers, or if the decision needs many reads: each transfer may ask for facts that depend
// on the transfer before it, and anyone can make such transfers.
func (s *Service) apply(
	ctx context.Context, tx *db.Tx, out *outbox, scope chainScope, transfers []invoice.Transfer,
	decision func(*Snapshot, []invoice.Transfer) *Changes, saved func(*Changes),
) error {
	if len(transfers) <= maxTransfers {
		reads := maxReads
		if len(transfers) > 1 {
			reads = fewReads
		}
		ch, err := newSnapshot(ctx, tx, scope, transfers).decide(reads, func(before *Snapshot) *Changes { return decision(before, transfers) })
		if err == nil {
			if err = s.save(ctx, tx, out, ch); err == nil {
				saved(ch)
			}
			return err
		}
		if !errors.Is(err, errManyReads) || len(transfers) <= 1 {
			return err
		}
	}
	half := len(transfers) / 2
	if err := s.apply(ctx, tx, out, scope, transfers[:half], decision, saved); err != nil {
		return err
	}
	return s.apply(ctx, tx, out, scope, transfers[half:], decision, saved)
}

// observations returns the intents that the event carries out. Paid and Closed carry out an intent to open as well,
// because the commitment is past being opened.
func (e RegistryEvent) observations(block uint64) []IntentObservation {
	opened := IntentObservation{Registry: e.Registry, CommitmentID: e.CommitmentID, Kind: invoice.IntentOpen, Block: block}
	if e.Kind == RegistryOpened {
		return []IntentObservation{opened}
	}
	closed := opened
	closed.Kind = invoice.IntentClose
	return []IntentObservation{opened, closed}
}
