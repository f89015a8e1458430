package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// Rescan schedules the chain's blocks from a number up to the newest one read for reading again, while the head is
// followed. Transfers that were missed are recorded; payments that are known keep their attribution. An existing gap is
// widened. It returns the gap, ErrNotStarted for a chain that was never read, or an *invoice.FieldError when the number
// is above the newest block read.
func (s *Service) Rescan(ctx context.Context, chainKey string, from uint64) (Gap, error) {
	var gap Gap
	err := s.updateCursor(ctx, chainKey, func(tx *db.Tx, cur *Cursor) error {
		if from > cur.Indexed.Number {
			return &invoice.FieldError{Field: "from", Detail: fmt.Sprintf("is block %d; %s is read up to block %d; give that or a lower one", from, chainKey, cur.Indexed.Number)}
		}
		var before any
		if cur.Gap != nil {
			before = auditedGap{cur.Gap.Next, cur.Gap.Last}
		}
		cur.ReadAgain(from)
		gap = *cur.Gap
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, s.conf.Now(), access.Change{
			Action: access.ActionChainRescan, Object: chainKey, Before: before, After: auditedGap{gap.Next, gap.Last},
		}))
	})
	return gap, err
}

// auditedGap is a range of blocks to read in the audit log.
type auditedGap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Fill stores the contents of the next blocks of the chain's gap, up to the block through. blocks are the ones with
// relevant transfers or events, in ascending order. All of them are final: new payments are attributed, announced and
// confirmed immediately, invoices are paid, refunds are announced, and intents are finished. Payments that are
// confirmed already stay as they are. The gap shrinks in the same transaction. Undecided payments are attributed once
// all blocks that were never read are read. Invoices that the gap kept from expiring expire once it is closed; if there
// are very many, some expire when the next block is final. If a payment of an invoice is new, the gap grows up to the
// newest block read, because a transfer there may refund it.
//
// It returns ErrCursorMoved when the gap does not begin at the block next, or when through is above the gap or the
// finalized height, and ErrFinalityViolated when through is not the block that was read at its number.
func (s *Service) Fill(ctx context.Context, chainKey string, next uint64, blocks []Block, through invoice.Header) (err error) {
	ctx, end := tracing.Begin(ctx, "fill gap", tracing.Chain(chainKey))
	defer end(&err)
	if err := checkAscending(next, blocks, through.Number); err != nil {
		return fmt.Errorf("fill the gap of %s: %w", chainKey, err)
	}
	_, err = s.updateAndExpire(ctx, chainKey, 0, func(tx *db.Tx, out *outbox, cur *Cursor) error {
		gap := cur.Gap
		if gap == nil || gap.Next != next || through.Number > min(gap.Last, cur.Confirmed.Number) {
			return ErrCursorMoved
		}
		kept, err := Headers(ctx, tx, chainKey, through.Number, through.Number)
		if err != nil {
			return err
		}
		if len(kept) == 1 && kept[0].Hash != through.Hash {
			return fmt.Errorf("block %d of %s: %w", through.Number, chainKey, ErrFinalityViolated)
		}
		scope := s.scope(chainKey, *cur)
		scope.final = true
		stored, err := s.storeBlocks(ctx, tx, out, scope, blocks)
		if err != nil {
			return err
		}
		if err := deleteRead(ctx, tx, chainKey, *cur, blocks); err != nil {
			return err
		}
		if err := FinishIntents(ctx, tx, chainKey, through.Number); err != nil {
			return err
		}
		if err := auditOlder(ctx, tx, chainKey, next, through.Number); err != nil {
			return err
		}
		shrinkGap(cur, through.Number, stored)
		if stored.unread || cur.UnreadTx > 0 {
			return saveCursor(ctx, tx, chainKey, cur)
		}
		return SaveCursor(ctx, tx, chainKey, *cur)
	})
	return err
}

// deleteRead deletes the unread transactions that have a transfer in the blocks.
func deleteRead(ctx context.Context, tx *db.Tx, chainKey string, cur Cursor, blocks []Block) error {
	if cur.UnreadTx == 0 {
		return nil
	}
	unread, err := unreadTransactions(ctx, tx, chainKey, MaxUnread+MaxUnreadable+MaxOversized)
	if err != nil {
		return err
	}
	isUnread := make(map[invoice.Hash]bool)
	for _, u := range unread {
		isUnread[u.TxHash] = true
	}
	var read []invoice.Hash
	for _, b := range blocks {
		for _, t := range b.Transfers {
			if isUnread[t.TxHash] {
				read = append(read, t.TxHash)
			}
		}
	}
	return deleteUnread(ctx, tx, chainKey, slices.Compact(read))
}

// shrinkGap ends the part of the gap up to a block, in which blocks were stored.
func shrinkGap(cur *Cursor, through uint64, stored storedBlocks) {
	gap := cur.Gap
	cur.Gap = gap.After(through)
	if stored.moved {
		cur.Revision++
	}
	if stored.found && cur.Unread == nil && gap.Last < cur.Indexed.Number {
		cur.ReadAgain(through + 1) // transfers above the gap may refund it
	}
}

// saveCursor writes the cursor, and reads it with the newest block that has unread transactions.
func saveCursor(ctx context.Context, tx *db.Tx, chainKey string, cur *Cursor) (err error) {
	if err := SaveCursor(ctx, tx, chainKey, *cur); err != nil {
		return err
	}
	*cur, err = LockCursor(ctx, tx, chainKey)
	return err
}

// checkAscending returns an error unless the blocks are in ascending order and between the numbers, both included.
func checkAscending(from uint64, blocks []Block, to uint64) error {
	if to < from {
		return fmt.Errorf("expected blocks from %d on, up to %d", from, to)
	}
	for _, b := range blocks {
		if b.Number < from || b.Number > to {
			return fmt.Errorf("expected a block between %d and %d, got %d", from, to, b.Number)
		}
		from = b.Number + 1
	}
	return nil
}
