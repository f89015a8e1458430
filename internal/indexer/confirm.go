package indexer

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// maxQuorumBlocks is how many blocks are read from two providers at once to become
// final: after days in which one alone answered there are many.
const maxQuorumBlocks = 4 * maxBlocks

// confirm makes everything up to the finality line final, if the line has
// advanced and what was recorded still is what the provider says, and what the
// others say. Where it is not, it is rolled back and settled is false: the
// blocks must be read again. It is false, too, when there is more to confirm
// than is done at once.
func (w *Indexer) confirm(ctx context.Context, n node, t heads, line uint64) (settled bool, err error) {
	last, ok := w.tracker.At(line)
	if !ok || last.Number <= w.tracker.Final().Number {
		return true, nil
	}
	at := last
	if next := w.tracker.Ahead(maxQuorumBlocks); w.Chain.Quorum > 1 && next.Number < at.Number {
		at = next
	}
	pending, revision, err := w.Ledger.Pending(ctx, w.Chain.Key, at.Number)
	if err != nil {
		return false, err
	}
	if ok, err := w.verifyCanonical(ctx, n, t, at, pending); !ok || err != nil {
		return false, err
	}
	if err := w.crossCheck(ctx, n, at, w.tracker.Final()); err != nil {
		return false, err
	}
	check := w.verifyReceipts
	if w.Chain.Quorum > 1 {
		check = w.verifyQuorum
	}
	if ok, err := check(ctx, n, at, pending); !ok || err != nil {
		return false, err
	}
	if err := w.Ledger.Confirm(ctx, w.Chain.Key, at, revision); err != nil {
		return false, err
	}
	w.tracker.Finalize(at)
	return at == last, nil
}

// verifyCanonical compares the line's block and those of the pending transfers with
// the provider's blocks at their heights. What differs is rolled back. Blocks
// from which parents lead up to the head that the provider has just told of
// are canonical to it.
func (w *Indexer) verifyCanonical(ctx context.Context, n node, t heads, line settle.Header, pending []invoice.Transfer) (bool, error) {
	read := map[uint64]settle.Header{line.Number: line}
	for _, t := range pending {
		h, _ := w.tracker.At(t.BlockNumber)
		if h.Hash != t.BlockHash {
			return false, fmt.Errorf("the ledger holds a pending transfer in block %s, which is not the block %d that was read", t.BlockHash, t.BlockNumber)
		}
		read[h.Number] = h
	}
	linked := uint64(math.MaxUint64)
	if w.tracker.Tip().Hash == t.head.Hash {
		linked = w.tracker.Linked()
	}
	maps.DeleteFunc(read, func(number uint64, h settle.Header) bool { return number >= linked || h.Hash == t.tagged.Hash })
	headers, err := n.headers(ctx, slices.Sorted(maps.Keys(read))...)
	if err != nil {
		return false, err
	}
	for _, h := range headers {
		if h.Hash != read[h.Number].Hash {
			_, err := w.follow(ctx, n, h)
			return false, err
		}
	}
	return true, nil
}

// verifyReceipts compares the pending transfers, and payments that were lost, with the
// receipts of their transactions. From the first block on where they differ,
// what was recorded is rolled back, unless the provider contradicts itself or
// others hold it.
func (w *Indexer) verifyReceipts(ctx context.Context, n node, at settle.Header, pending []invoice.Transfer) (bool, error) {
	wrong, err := w.missingFromReceipts(ctx, n, pending)
	switch {
	case err != nil:
		return false, err
	case wrong == nil:
		return w.verifyOrphans(ctx, n, at)
	}
	if err := w.believeMissing(ctx, n, *wrong); err != nil {
		return false, err
	}
	w.Logger.Error("a recorded transfer is not in its receipt; reading its block again",
		"chain", w.Chain.Key, "provider", n.String(), "block", wrong.BlockNumber, "tx", wrong.TxHash.String(), "ordinal", wrong.Ordinal)
	return false, w.rollbackBelow(ctx, wrong.BlockNumber)
}

// rollbackBelow orphans a block that was read and is not final, and all above.
func (w *Indexer) rollbackBelow(ctx context.Context, block uint64) error {
	below, ok := w.tracker.At(block - 1)
	if !ok {
		return fmt.Errorf("block %d is to be read again, but is not above the final block %d", block, w.tracker.Final().Number)
	}
	return w.rollback(ctx, below)
}
