package indexer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// gapPollInterval is the time between two checks for a gap.
const gapPollInterval = 5 * time.Second

// fillGaps back-fills the chain's gap whenever there is one, until ctx ends.
func (ix *Indexer) fillGaps(ctx context.Context) {
	failures := 0
	said := ""
	for ctx.Err() == nil {
		var more bool
		var err error
		ix.step(ctx, loopGap, func(ctx context.Context) { more, err = ix.fill(ctx) })
		ix.mu.Lock()
		ix.noteFailure(loopGap, err)
		ix.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; err.Error() != said {
				said = err.Error()
				ix.cfg.Logger.Warn("back-fill failed, will retry", "chain", ix.cfg.Chain.Key, "err", err)
			}
			clock.Sleep(ctx, ix.backoff(failures), nil)
		case more:
			failures, said = 0, ""
		default:
			failures, said = 0, ""
			clock.Sleep(ctx, gapPollInterval, ix.gapSeen)
		}
	}
}

// fill reads the next blocks of the chain's gap, and reports whether there is more to read.
func (ix *Indexer) fill(ctx context.Context) (more bool, err error) {
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return false, err
	}
	gap := cursor.Gap
	if gap == nil || cursor.Halted != "" {
		ix.backfill.end()
		return false, nil
	}
	if !ix.reads() {
		ix.backfill.follow(gap.Next, gap.Last)
		return false, nil
	}
	last := min(gap.Last, cursor.Confirmed.Number)
	if gap.Next > last {
		return false, nil // the rest is not final yet
	}
	below := ix.filled
	if below.Number+1 != gap.Next {
		below = invoice.Header{}
	}
	ix.backfill.begin(gap.Next, gap.Last)
	s := blockRange{first: gap.Next, last: last, rangedUpTo: rangedUpTo(cursor.Confirmed.Number)}
	err = ix.stream(ctx, s, below, cursor.Confirmed, func(ctx context.Context, blocks []ledger.Block) error {
		through := blocks[len(blocks)-1].Header
		if err := ix.cfg.Ledger.Fill(ctx, ix.cfg.Chain.Key, gap.Next, withEvents(blocks), through); err != nil {
			return err
		}
		gap.Next, ix.filled = through.Number+1, through
		ix.backfill.reached(gap.Next)
		ix.advanced(loopGap)
		return nil
	})
	switch {
	case errors.Is(err, ledger.ErrCursorMoved):
		return true, nil // another replica fills the gap too, or the gap was widened
	case errors.Is(err, ledger.ErrFinalityViolated):
		return false, fmt.Errorf("blocks read for the gap of %s do not lead to the blocks that are final above it: %w", ix.cfg.Chain.Key, err)
	}
	return err == nil, err
}

// rangedUpTo returns the last block for which logs may be requested by range, if blocks up to line are final.
func rangedUpTo(line uint64) uint64 { return line - min(line, maxBlocks) }
