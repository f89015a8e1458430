package ledger

import (
	"context"
	"fmt"
	"math"
	"slices"

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
