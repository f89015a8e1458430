package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// confirm makes everything up to the finality line final, if the line has
// advanced and what was recorded still is what the node says. Where it is not,
// it is rolled back and settled is false: the blocks must be read again.
func (w *Watcher) confirm(ctx context.Context, src Source, line uint64) (settled bool, err error) {
	at, ok := w.tracker.At(line)
	if !ok || at.Number <= w.tracker.Final().Number {
		return true, nil
	}
	pending, err := w.Ledger.Pending(ctx, w.Chain.Key, at.Number)
	if err != nil {
		return false, err
	}
	if ok, err := w.canonical(ctx, src, at, pending); !ok || err != nil {
		return false, err
	}
	if ok, err := w.proven(ctx, src, pending); !ok || err != nil {
		return false, err
	}
	if err := w.Ledger.Confirm(ctx, w.Chain.Key, at); err != nil {
		return false, err
	}
	w.tracker.Finalize(at)
	return true, nil
}

// canonical compares the line's block and those of the pending transfers with
// the node's blocks at their heights. What differs is rolled back.
func (w *Watcher) canonical(ctx context.Context, src Source, line settle.Header, pending []invoice.Transfer) (bool, error) {
	read := map[uint64]settle.Header{line.Number: line}
	for _, t := range pending {
		h, _ := w.tracker.At(t.BlockNumber)
		if h.Hash != t.BlockHash {
			return false, fmt.Errorf("the ledger holds a pending transfer in block %s, which is not the block %d that was read", t.BlockHash, t.BlockNumber)
		}
		read[h.Number] = h
	}
	numbers := slices.Sorted(maps.Keys(read))
	headers, err := src.Headers(ctx, numbers)
	if err != nil {
		return false, err
	}
	for _, h := range headers {
		if h.Hash != read[h.Number].Hash {
			_, err := w.follow(ctx, src, h)
			return false, err
		}
	}
	return true, nil
}

// proven compares the pending transfers with the receipts of their
// transactions. From the first block on where they differ, what was recorded
// is rolled back.
func (w *Watcher) proven(ctx context.Context, src Source, pending []invoice.Transfer) (bool, error) {
	byTx := map[common.Hash]*chain.Receipt{}
	for _, t := range pending {
		byTx[common.Hash(t.TxHash)] = nil
	}
	receipts, err := src.Receipts(ctx, slices.Collect(maps.Keys(byTx)))
	if err != nil {
		return false, err
	}
	for _, r := range receipts {
		byTx[r.TxHash] = r
	}
	var wrong *invoice.Transfer
	for i, t := range pending {
		if !w.decoder.proves(byTx[common.Hash(t.TxHash)], t) && (wrong == nil || t.BlockNumber < wrong.BlockNumber) {
			wrong = &pending[i]
		}
	}
	if wrong == nil {
		return true, nil
	}
	w.Logger.Error("a recorded transfer is not in its receipt; reading its block again",
		"chain", w.Chain.Key, "node", src.String(), "block", wrong.BlockNumber, "tx", wrong.TxHash.String(), "ordinal", wrong.Ordinal)
	below, ok := w.tracker.At(wrong.BlockNumber - 1)
	if !ok {
		return false, fmt.Errorf("pending transfer in block %d, at or below the final block %d", wrong.BlockNumber, w.tracker.Final().Number)
	}
	return false, w.rollback(ctx, below)
}

// proves reports whether the receipt holds the transfer just as it was
// recorded.
func (d decoder) proves(r *chain.Receipt, t invoice.Transfer) bool {
	if !r.Succeeded() || invoice.Hash(r.BlockHash) != t.BlockHash || t.Ordinal >= len(r.Logs) {
		return false
	}
	log := &r.Logs[t.Ordinal]
	m, ok := d.movement(log)
	return ok && int(log.Index) == t.LogIndex && m.token.Address == t.Token && m.from == t.From && m.to == t.To && m.amount == t.Amount
}
