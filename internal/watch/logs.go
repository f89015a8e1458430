package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of requests for logs.
const (
	// firstSpan and maxSpan are how many blocks the first and the longest
	// range has.
	firstSpan = 512
	maxSpan   = 8192
	// secondOpinion is how long another node may take to say what a block
	// holds; with it unreachable, reading must go on.
	secondOpinion = time.Second
)

// logsOfBlocks returns each block's logs that the filter selects. An empty
// answer for a block whose bloom filter mentions them is right when the bloom
// filter speaks of other logs, and wrong when the node has lost or not yet
// stored these. So it is asked for once more, and the second answer stands.
func (w *Watcher) logsOfBlocks(ctx context.Context, src Source, blocks []invoice.Hash, filter chain.LogFilter) ([][]types.Log, error) {
	found, err := src.LogsOfBlocks(ctx, blocks, filter)
	if err != nil || !w.Chain.FullBloom {
		return found, err
	}
	var empty []int
	var doubted []invoice.Hash
	for i, logs := range found {
		if len(logs) == 0 {
			empty, doubted = append(empty, i), append(doubted, blocks[i])
		}
	}
	if len(doubted) == 0 {
		return found, nil
	}
	again, err := w.askAgain(ctx, src, doubted, filter)
	if err != nil {
		return nil, err
	}
	for i, logs := range again {
		if found[empty[i]] = logs; len(logs) > 0 {
			w.Logger.Warn("a node left out a block's logs", "chain", w.Chain.Key, "node", src.String(), "block", doubted[i].String())
		}
	}
	return found, nil
}

// askAgain asks the first other node that answers in time for the blocks'
// logs, or the same one once more when there is none.
func (w *Watcher) askAgain(ctx context.Context, src Source, blocks []invoice.Hash, filter chain.LogFilter) ([][]types.Log, error) {
	for n := 1; n < len(w.Sources); n++ {
		found, err := w.askOther(ctx, (w.source+n)%len(w.Sources), blocks, filter)
		if err == nil {
			return found, nil
		}
		w.Logger.Debug("no second opinion", "chain", w.Chain.Key, "err", err)
	}
	return src.LogsOfBlocks(ctx, blocks, filter)
}

// askOther asks one node for the blocks' logs within secondOpinion.
func (w *Watcher) askOther(ctx context.Context, source int, blocks []invoice.Hash, filter chain.LogFilter) ([][]types.Log, error) {
	ctx, cancel := context.WithTimeout(ctx, secondOpinion)
	defer cancel()
	if err := w.check(ctx, source); err != nil {
		return nil, err
	}
	return w.Sources[source].LogsOfBlocks(ctx, blocks, filter)
}

// logsInRange returns the logs from block first on, and the last block that
// they reach. It asks for fewer blocks while the node refuses, and for more
// from range to range while it does not.
func (w *Watcher) logsInRange(ctx context.Context, src Source, first, end uint64) (last uint64, logs []types.Log, err error) {
	for {
		last = min(first+w.span-1, end)
		logs, err = src.LogsInRange(ctx, first, last, w.decoder.filter())
		switch {
		case err == nil:
			w.span = grown(w.span, maxSpan)
			return last, logs, checkRange(src, logs, first, last)
		case w.span == 1:
			return 0, nil, err
		}
		w.span /= 2
		if !tooMuch(err) {
			return 0, nil, err
		}
	}
}

// grown returns how many blocks to ask for when a node has answered for n.
func grown(n, most uint64) uint64 { return min(n+n/4+1, most) }

// tooMuch reports whether a node may answer when asked for less.
func tooMuch(err error) bool {
	var refused rpc.Error
	return errors.As(err, &refused) || errors.Is(err, chain.ErrResponseTooLarge)
}

// checkRange refuses logs of blocks that were not asked for.
func checkRange(src Source, logs []types.Log, first, last uint64) error {
	for _, l := range logs {
		if l.BlockNumber < first || l.BlockNumber > last {
			return fmt.Errorf("%s: answered a log of block %d when asked for blocks %d to %d", src, l.BlockNumber, first, last)
		}
	}
	return nil
}
