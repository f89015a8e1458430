package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// Observe stores the contents of blocks above the newest one read: pending payments with their attribution,
// payment.received events, pending refunds, and the registry's events. The cursor moves in the same transaction.
//
// Blocks come in ascending order. The first must be the child of the newest read block, and a block with the next
// number after the one before it must be its child; otherwise the error is ErrCursorMoved. After the first, and below
// the finalized height, blocks without relevant transfers and events may be left out.
func (s *Service) Observe(ctx context.Context, chainKey string, blocks []Block) (err error) {
	ctx, end := tracing.Begin(ctx, "observe blocks", tracing.Chain(chainKey))
	defer end(&err)
	if len(blocks) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *db.Tx, out *outbox) error {
		cur, err := lockRunning(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		headers := make([]invoice.Header, len(blocks))
		last := cur.Indexed
		for i, b := range blocks {
			if !follows(b.Header, last) || (i == 0 && b.Number != last.Number+1) {
				return ErrCursorMoved
			}
			headers[i], last = b.Header, b.Header
		}
		if err := s.storeHeaders(ctx, tx, chainKey, cur.Indexed.Number, headers); err != nil {
			return err
		}
		stored, err := s.storeBlocks(ctx, tx, out, s.scope(chainKey, cur), blocks)
		if err != nil {
			return err
		}
		cur.Indexed = last
		if stored.moved {
			cur.Revision++
		}
		return SaveCursor(ctx, tx, chainKey, cur)
	})
}

// storeHeaders stores the headers of blocks that are read above a height. If blocks were rolled back,
// it compares the headers with theirs: the newest equal one proves that all below it are equal, and the
// first different one that all above it were replaced. Invoices that were created when the replaced
// blocks were known can be paid by the new ones. To a recovery, those belong to the lost past.
//
// A range of blocks leaves only a few headers, so it may not be known which blocks were replaced.
// LowerFromBlocks can be called without that knowledge.
func (s *Service) storeHeaders(ctx context.Context, tx *db.Tx, chainKey string, height uint64, headers []invoice.Header) error {
	known, err := Headers(ctx, tx, chainKey, height+1, math.MaxInt64)
	if err != nil {
		return err
	}
	same, replaced := compareHeaders(height, known, headers)
	last := headers[len(headers)-1].Number
	above := slices.IndexFunc(known, func(k invoice.Header) bool { return same < k.Number })
	if above < 0 || same == last {
		return insertHeaders(ctx, tx, chainKey, headers)
	}
	if err := lockFromBlocks(ctx, tx, chainKey); err != nil {
		return err
	}
	if err := LowerFromBlocks(ctx, tx, chainKey, same, replaced); err != nil {
		return err
	}
	if s.conf.Recovery && known[above].Number <= last {
		if err := lowerRecoveredFrom(ctx, tx, chainKey, same+1); err != nil {
			return err
		}
	}
	stale := last // headers that were not read again are not known to be on the chain
	if replaced > 0 {
		stale = math.MaxInt64
	}
	if err := DeleteHeaders(ctx, tx, chainKey, same+1, stale); err != nil {
		return err
	}
	return insertHeaders(ctx, tx, chainKey, headers)
}

// compareHeaders returns the newest of some headers above a height that equals a known one, or the height, and the first
// above it that differs from a known one, or 0.
func compareHeaders(height uint64, known, headers []invoice.Header) (same, replaced uint64) {
	hashes := make(map[uint64]invoice.Hash, len(known))
	for _, k := range known {
		hashes[k.Number] = k.Hash
	}
	same = height
	for _, h := range headers {
		switch was, ok := hashes[h.Number]; {
		case ok && was == h.Hash:
			same, replaced = h.Number, 0
		case ok && replaced == 0:
			replaced = h.Number
		}
	}
	return same, replaced
}

// follows reports whether a block can be above another: as its child, or higher
// with blocks between them that were left out.
func follows(b, below invoice.Header) bool {
	if b.Number == below.Number+1 {
		return b.Parent == below.Hash
	}
	return b.Number > below.Number && !b.Time.Before(below.Time)
}

// lockRunning locks the chain's cursor until the transaction ends. It returns ErrHalted for a halted chain.
func lockRunning(ctx context.Context, tx *db.Tx, chainKey string) (Cursor, error) {
	cur, err := LockCursor(ctx, tx, chainKey)
	if err == nil && cur.Halted != "" {
		err = fmt.Errorf("%w: %s", ErrHalted, cur.Halted)
	}
	return cur, err
}

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
