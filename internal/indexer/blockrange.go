package indexer

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// blockRange is the blocks first..last, which are final or about to be.
type blockRange struct {
	first, last uint64
	rangedUpTo  uint64     // last block for which logs may be requested by range
	compared    Comparison // how blocks near the head are compared; "" for other blocks, and if no comparison is needed
}

// readBlockRange reads a block range from one node, in requests within its limits. It returns the blocks with events
// and the last block, and may return others.
func (ix *Indexer) readBlockRange(ctx context.Context, n node, s blockRange, c *addressCache) ([]ledger.Block, error) {
	var blocks []ledger.Block
	for at := s.first; at <= s.last; {
		last, kind := s.nextPart(at, n)
		count := last - at + 1
		read, logs, err := ix.readPart(ctx, n, kind, blockRange{first: at, last: last}, c)
		if err != nil {
			if ctx.Err() == nil && isSmallerRangeNext(err) {
				continue
			}
			return nil, err
		}
		if len(blocks) > 0 && read[0].Number == at && read[0].Parent != blocks[len(blocks)-1].Hash {
			return nil, n.contradicts("has block %d on top of %s, and %s as the block below", at, read[0].Parent, blocks[len(blocks)-1].Hash)
		}
		grow(n.Limit(kind), count, logs)
		blocks = append(blocks, read...)
		at = last + 1
	}
	return blocks, nil
}

// logsInParts returns the logs of a range, in requests that the node's limit allows.
func (ix *Indexer) logsInParts(ctx context.Context, n node, first, last uint64) ([]types.Log, error) {
	limit := n.Limit(chain.KindRange)
	var all []types.Log
	for at := first; at <= last; {
		end := min(last, at+max(1, limit.Next())-1)
		logs, err := n.LogsInRange(ctx, at, end, ix.decoder.filter())
		if err != nil {
			err = &nodeError{node: n.Node, err: err, byRange: true}
			if end > at && ctx.Err() == nil && isSmallerRangeNext(err) {
				continue
			}
			return nil, err
		}
		grow(limit, end-at+1, len(logs))
		all, at = append(all, logs...), end+1
	}
	return all, nil
}

// isSmallerRangeNext reports whether a node failed to return the logs of a range and lowered its limit, so that a
// smaller request should follow. A node that timed out may not answer at all, and a node may ask for a pause.
func isSmallerRangeNext(err error) bool {
	var failed *nodeError
	pause, _ := chain.IsRateLimit(err)
	return errors.As(err, &failed) && failed.byRange && chain.IsRefusal(err) && !errors.Is(err, chain.ErrTimeout) && pause == 0
}

// targetLogs is how many logs one answer should hold: enough to make the round trip a small part of the time, and few
// enough to keep several answers in memory.
const targetLogs = 10_000

// grow adapts the limit after an answer with the given numbers of blocks and logs.
func grow(limit *chain.Limit, blocks uint64, logs int) {
	switch {
	case logs > targetLogs:
		limit.Fit(blocks * targetLogs / uint64(logs))
	case logs <= targetLogs*3/4:
		limit.Answered(blocks)
	}
}

// nextPart returns the last block to read with one request to a node, starting at a block, and the kind of that
// request. If a node refuses to return logs by range even for one block, the blocks are requested by hash.
func (s blockRange) nextPart(at uint64, n node) (last uint64, kind chain.Kind) {
	if at <= s.rangedUpTo {
		if size := n.Limit(chain.KindRange).Next(); size > 0 {
			return min(at+size-1, s.rangedUpTo, s.last), chain.KindRange
		}
	}
	return min(at+n.Limit(chain.KindBlocks).Next()-1, s.last), chain.KindBlocks
}

// readPart reads one part of a range, and also returns how many logs it holds.
func (ix *Indexer) readPart(
	ctx context.Context, n node, kind chain.Kind, part blockRange, c *addressCache,
) ([]ledger.Block, int, error) {
	if kind == chain.KindRange {
		return ix.readRange(ctx, n, part.first, part.last, c)
	}
	var numbers []uint64
	for at := part.first; at <= part.last; at++ {
		numbers = append(numbers, at)
	}
	headers, err := n.headers(ctx, numbers...)
	if err != nil {
		return nil, 0, err
	}
	for i, h := range headers[1:] {
		if h.Parent != headers[i].Hash {
			return nil, 0, n.contradicts("has block %d on top of %s, and %s as the block below", h.Number, h.Parent, headers[i].Hash)
		}
	}
	return ix.readBlocks(ctx, n, headers, c)
}

// withEvents returns the blocks that hold transfers, registry events or skipped transactions.
func withEvents(blocks []ledger.Block) []ledger.Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b ledger.Block) bool { return len(b.Transfers)+len(b.Registry)+len(b.Unread) == 0 })
}
