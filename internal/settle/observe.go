package settle

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Observe stores what blocks on top of the newest one read hold: pending
// payments, attributed where a rule says to whom, their payment.received
// events, pending refunds, and what the registry announced. The cursor moves
// with it, in the same transaction.
//
// Blocks come in ascending order. The first must be the child of the newest
// block read, and one that follows the block before it must be its child;
// otherwise the error is ErrCursorMoved. After the first, and below the
// finality line, blocks without anything of interest may be left out.
func (s *Service) Observe(ctx context.Context, chainKey string, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *store.Tx, out *outbox) error {
		cur, err := s.lock(ctx, tx, chainKey)
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
		o := &observer{Service: s, tx: tx, outbox: out, chainKey: chainKey, height: cur.Indexed.Number, unread: cur.Unread}
		if err := o.observe(ctx, blocks); err != nil {
			return err
		}
		cur.Indexed = last
		if o.moved {
			cur.Revision++
		}
		return tx.SaveCursor(ctx, chainKey, cur)
	})
}

// follows reports whether a block can be above another: as its child, or
// higher up with blocks between them that were left out.
func follows(b, below invoice.Header) bool {
	if b.Number == below.Number+1 {
		return b.Parent == below.Hash
	}
	return b.Number > below.Number && b.Time >= below.Time
}

// lock takes the chain's cursor for the length of the transaction.
func (s *Service) lock(ctx context.Context, tx *store.Tx, chainKey string) (store.Cursor, error) {
	cur, err := tx.LockCursor(ctx, chainKey)
	if err == nil && cur.Halted != "" {
		err = fmt.Errorf("%w: %s", ErrHalted, cur.Halted)
	}
	return cur, err
}
