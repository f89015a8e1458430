package settle

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Observe stores what blocks above the newest one read hold: pending payments
// with their attribution, payment.received events, pending refunds, and the
// registry's events. The cursor moves in the same transaction.
//
// Blocks come in ascending order. The first must be the child of the newest
// block read, and a block whose number follows the one before it must be its
// child; otherwise the error is ErrCursorMoved. After the first, and below the
// finalized height, blocks without relevant transfers and events may be left
// out.
func (s *Service) Observe(ctx context.Context, chainKey string, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *store.Tx, out *outbox) error {
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
		if err := tx.InsertHeaders(ctx, chainKey, headers); err != nil {
			return err
		}
		moved, err := s.storeBlocks(ctx, tx, out, chainScope{key: chainKey, indexed: cur.Indexed.Number, unread: cur.Unread}, blocks)
		if err != nil {
			return err
		}
		cur.Indexed = last
		if moved {
			cur.Revision++
		}
		return tx.SaveCursor(ctx, chainKey, cur)
	})
}

// follows reports whether a block can be above another: as its child, or higher
// with blocks between them that were left out.
func follows(b, below invoice.Header) bool {
	if b.Number == below.Number+1 {
		return b.Parent == below.Hash
	}
	return b.Number > below.Number && b.Time >= below.Time
}

// lockRunning locks the chain's cursor until the transaction ends. It returns
// ErrHalted for a halted chain.
func lockRunning(ctx context.Context, tx *store.Tx, chainKey string) (store.Cursor, error) {
	cur, err := tx.LockCursor(ctx, chainKey)
	if err == nil && cur.Halted != "" {
		err = fmt.Errorf("%w: %s", ErrHalted, cur.Halted)
	}
	return cur, err
}
