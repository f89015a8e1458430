package indexer

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of reading final blocks.
const (
	// maxInFlight is how many parts of a span are being requested or wait to be recorded.
	maxInFlight = 4
	// maxParts is how many parts are read before the next look at the head.
	maxParts = 64
	// maxSecondRequests is how many requests the second node of a quorum gets for the logs of one part. A part is recorded
	// as a whole, so that one that is long for the second node would fail as a whole, or take too long.
	maxSecondRequests = 4
)

// stream reads a range of final blocks in parts, several in parallel and from all nodes, and applies them in order.
// Between the steps, waiting creates go first. It stops after maxParts. Each part must follow the one before; below is
// the block below the range, if its hash is not zero. final is a block that is already final.
func (ix *Indexer) stream(
	ctx context.Context, s blockRange, below, final invoice.Header, apply func(context.Context, []ledger.Block) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()

	type answer struct {
		reading
		err error
	}
	slots := make(chan struct{}, ix.maxInFlight)
	answers := make(chan chan answer, ix.maxInFlight)
	c, pace := ix.newAddressCache(), newRecordPace()
	group.Go(func() {
		defer close(answers)
		for turn, at := 0, s.first; turn < maxParts && at <= s.last; turn++ {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			last := ix.endOfPart(s, at, turn)
			part := blockRange{first: at, last: last, rangedUpTo: s.rangedUpTo}
			at = last + 1
			arrives := make(chan answer, 1)
			answers <- arrives
			group.Go(func() {
				r, err := ix.readFinal(ctx, turn, part, final, c)
				arrives <- answer{r, err}
			})
		}
	})
	for arrives := range answers {
		a := <-arrives
		if a.err != nil {
			return a.err
		}
		if first := a.blocks[0]; !below.Hash.IsZero() && first.Number == below.Number+1 && first.Parent != below.Hash {
			return a.contradicts("has block %d on top of %s, where %s is final", first.Number, first.Parent, below.Hash)
		}
		for next, rest := pace.split(a.blocks); len(next) > 0; next, rest = pace.split(rest) {
			began := time.Now()
			if err := apply(ctx, next); err != nil {
				return err
			}
			took := time.Since(began)
			pace.recorded(sizeOf(next...), took, ix.cfg.Ledger.GiveWay(ctx, min(took, recordIdleTurn)))
		}
		below = a.last()
		<-slots
	}
	return ctx.Err()
}

// endOfPart returns the last block of the part of a stream that begins at a block.
func (ix *Indexer) endOfPart(s blockRange, at uint64, turn int) uint64 {
	usable := ix.cfg.Pool.Usable()
	first := usable[turn%len(usable)]
	last, _ := s.nextPart(at, node{first})
	others := ix.cfg.Pool.Others(first)
	if ix.cfg.Chain.Quorum < 2 || len(others) == 0 {
		return last
	}
	size := cmp.Or(others[0].Limit(chain.KindRange).Size(), others[0].Limit(chain.KindBlocks).Size())
	return min(last, at+maxSecondRequests*size-1)
}

// readFinal reads a range of final blocks from the first node that succeeds, and compares it with other nodes.
func (ix *Indexer) readFinal(ctx context.Context, turn int, s blockRange, final invoice.Header, c *addressCache) (r reading, err error) {
	err = ix.try(ctx, turn, func(n node) error {
		if err := n.ready(ctx); err != nil {
			return err
		}
		blocks, err := ix.readBlockRange(ctx, n, s, c)
		if err != nil {
			return err
		}
		r = reading{n, blocks}
		if err := ix.verifyBlock(ctx, n, r.last(), final); err != nil {
			return err
		}
		if ix.cfg.Chain.Quorum > 1 {
			return ix.requireSecond(ctx, r, s, final, c)
		}
		return nil
	})
	return r, err
}
