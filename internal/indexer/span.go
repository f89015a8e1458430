package indexer

import (
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/settle"
)

// span is a run of blocks, which are final or about to be.
type span struct {
	first, last uint64
	ranged      uint64 // block up to which logs may be asked for by range
}

// readSpan reads a span from one provider, in as many questions as it wants to
// be asked. It returns the blocks of interest, the last one, and others.
func (w *Watcher) readSpan(ctx context.Context, n node, s span, c *census) ([]settle.Block, error) {
	var blocks []settle.Block
	for at := s.first; at <= s.last; {
		last, size := s.cut(at, w.sizersOf(n))
		count := last - at + 1
		part, logs, err := w.readPart(ctx, n, span{at, last, s.ranged}, c)
		if count == 1 && at <= s.ranged && ctx.Err() == nil && chain.IsTooMuch(err) {
			// By its hash a block's logs can be had in other ways, too.
			part, logs, err = w.readPart(ctx, n, span{at, last, 0}, c)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || !chain.IsTooMuch(err) || !size.refused(count, err) || errors.Is(err, chain.ErrTimeout):
			// One that takes too long is asked for less the next time. Now it
			// may not answer at all.
			return nil, err
		default:
			continue
		}
		if len(blocks) > 0 && part[0].Number == at && part[0].Parent != blocks[len(blocks)-1].Hash {
			return nil, n.contradicts("has block %d on top of %s, and %s as the block below", at, part[0].Parent, blocks[len(blocks)-1].Hash)
		}
		size.answered(count, logs)
		blocks = append(blocks, part...)
		at = last + 1
	}
	return blocks, nil
}

// cut returns the last block of the part of a span that begins with a block
// and that a provider with these sizers is to be asked for at once, and which
// of them has decided that.
func (s span) cut(at uint64, sizers sizers) (last uint64, by *sizer) {
	if at > s.ranged {
		return min(at+sizers.blocks.next()-1, s.last), sizers.blocks
	}
	return min(at+sizers.ranges.next()-1, s.ranged, s.last), sizers.ranges
}

// readPart reads a part of a span, and says how many logs it holds.
func (w *Watcher) readPart(ctx context.Context, n node, part span, c *census) ([]settle.Block, int, error) {
	if part.first <= part.ranged {
		return w.readRange(ctx, n, part.first, part.last, c)
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
	return w.readBlocks(ctx, n, headers, c)
}

// interesting returns the blocks that hold something.
func interesting(blocks []settle.Block) []settle.Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b settle.Block) bool { return len(b.Transfers)+len(b.Registry) == 0 })
}
