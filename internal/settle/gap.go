package settle

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Rescan has the chain's blocks from a number up to the newest one that was
// read be read again while the head is followed: what they hold and was missed is
// recorded, what is known stays, also where what was missed would have decided
// otherwise about it. A gap that is there already is widened. It returns the
// gap; ErrNotStarted for a chain that was never read, and an error when the
// number lies above the newest block read.
func (s *Service) Rescan(ctx context.Context, chainKey string, from uint64) (Gap, error) {
	var gap Gap
	err := s.mark(ctx, chainKey, func(cur *store.Cursor) error {
		if from > cur.Indexed.Number {
			return fmt.Errorf("rescan %s from block %d: it is read up to block %d; give that or a lower one", chainKey, from, cur.Indexed.Number)
		}
		gap = Gap{Next: from, Last: cur.Indexed.Number, LastTime: cur.Indexed.Time}
		if cur.Gap != nil {
			gap.Next = min(gap.Next, cur.Gap.Next)
		}
		cur.Gap = &gap
		return nil
	})
	return gap, err
}

// Fill stores what the next blocks of the chain's gap hold, up to and with the
// block through: those that hold anything of interest, in ascending order. All
// of them are final, and so is what they hold: unknown payments are attributed,
// announced and confirmed at once, invoices are paid, refunds are announced,
// and what the registry said is done. Payments that are confirmed already stay
// as they are. The gap moves with it, in the same transaction. When those of its
// blocks are read that never were, the payments are decided that waited for
// them; when it is closed, the invoices expire that it held up.
//
// It returns ErrCursorMoved when the gap does not begin at the block next, or
// when through lies beyond the gap or the finality line, and
// ErrFinalityViolated when through is not the block that was read there.
func (s *Service) Fill(ctx context.Context, chainKey string, next uint64, blocks []Block, through invoice.Header) error {
	if err := ascending(next, blocks, through.Number); err != nil {
		return fmt.Errorf("fill the gap of %s: %w", chainKey, err)
	}
	return s.expiring(ctx, chainKey, func(tx *store.Tx, out *outbox, cur *store.Cursor) error {
		gap := cur.Gap
		if gap == nil || gap.Next != next || through.Number > min(gap.Last, cur.Confirmed.Number) {
			return ErrCursorMoved
		}
		kept, err := tx.Headers(ctx, chainKey, through.Number, through.Number)
		if err != nil {
			return err
		}
		if len(kept) == 1 && kept[0].Hash != through.Hash {
			return fmt.Errorf("block %d of %s: %w", through.Number, chainKey, ErrFinalityViolated)
		}
		o := &observer{Service: s, tx: tx, outbox: out, chainKey: chainKey, final: true, height: cur.Indexed.Number, unread: cur.Unread}
		if err := o.observe(ctx, blocks); err != nil {
			return err
		}
		if err := tx.FinishIntents(ctx, chainKey, through.Number); err != nil {
			return err
		}
		cur.Gap = gap.After(through.Number)
		if o.moved {
			cur.Revision++
		}
		return tx.SaveCursor(ctx, chainKey, *cur)
	})
}

// ascending reports an error unless the blocks are in ascending order
// between the numbers given, both included.
func ascending(from uint64, blocks []Block, to uint64) error {
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
