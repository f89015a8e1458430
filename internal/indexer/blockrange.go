package indexer

import (
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/settle"
)

// blockRange is the blocks first..last, which are final or about to be.
type blockRange struct {
	first, last uint64
	rangedUpTo  uint64 // block up to which logs may be asked for by range
}

// readBlockRange reads a block range from one node, in as many requests as its
// adaptive ranges say. It returns at least the blocks with events and the last one.
func (ix *Indexer) readBlockRange(ctx context.Context, n node, s blockRange, c *addressCache) ([]settle.Block, error) {
	var blocks []settle.Block
	for at := s.first; at <= s.last; {
		last, size := s.nextPart(at, ix.rangesOf(n))
		count := last - at + 1
		part, logs, err := ix.readPart(ctx, n, blockRange{at, last, s.rangedUpTo}, c)
		if count == 1 && at <= s.rangedUpTo && ctx.Err() == nil && chain.IsTooLarge(err) {
			// By its hash a block's logs can be had in other ways, too.
			part, logs, err = ix.readPart(ctx, n, blockRange{at, last, 0}, c)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || !chain.IsTooLarge(err) || !size.shrink(count, err) || errors.Is(err, chain.ErrTimeout):
			// One that takes too long is asked for less the next time. Now it
			// may not answer at all.
			return nil, err
		default:
			continue
		}
		if len(blocks) > 0 && part[0].Number == at && part[0].Parent != blocks[len(blocks)-1].Hash {
			return nil, n.contradicts("has block %d on top of %s, and %s as the block below", at, part[0].Parent, blocks[len(blocks)-1].Hash)
		}
		size.grow(count, logs)
		blocks = append(blocks, part...)
		at = last + 1
	}
	return blocks, nil
}

// nextPart returns the last block of the next request, which starts at a block, and
// the adaptive range that limits it.
func (s blockRange) nextPart(at uint64, ranges adaptiveRanges) (last uint64, by *adaptiveRange) {
	if at > s.rangedUpTo {
		return min(at+ranges.blocks.next()-1, s.last), ranges.blocks
	}
	return min(at+ranges.ranges.next()-1, s.rangedUpTo, s.last), ranges.ranges
}

// readPart reads one part of a range, and also returns how many logs it holds.
func (ix *Indexer) readPart(ctx context.Context, n node, part blockRange, c *addressCache) ([]settle.Block, int, error) {
	if part.first <= part.rangedUpTo {
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

// withEvents returns the blocks that hold transfers, registry events or transactions that
// are set aside.
func withEvents(blocks []settle.Block) []settle.Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b settle.Block) bool { return len(b.Transfers)+len(b.Registry)+len(b.Unread) == 0 })
}
