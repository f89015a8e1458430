package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/tracing"
)

// The loops of an indexer, as the watchdog names them.
const (
	loopHead         = "reading the head"
	loopGap          = "filling the gap"
	loopUnread       = "reading transactions again"
	loopAudit        = "auditing final blocks"
	loopRefreshHeads = "surveying the nodes"
	loopNews         = "looking for new logs"
)

// loop is a running step of one of the indexer's loops.
type loop struct {
	task     *clock.Task
	advanced time.Time // when it began, or last recorded something
}

// step runs one step of a loop under the watchdog. Each completed request to a node counts as progress.
func (ix *Indexer) step(ctx context.Context, name string, do func(context.Context)) {
	task := ix.cfg.Watchdog.Begin(name + " of " + ix.cfg.Chain.Key)
	defer task.End()
	ix.mu.Lock()
	ix.loops[name] = &loop{task, time.Now()}
	ix.mu.Unlock()
	defer func() {
		ix.mu.Lock()
		delete(ix.loops, name)
		ix.mu.Unlock()
	}()
	ctx, span := tracing.Start(ctx, name, trace.SpanKindInternal)
	defer span.End()
	span.SetAttributes(attribute.String("quittance.chain", ix.cfg.Chain.Key))
	do(chain.OnRequestDone(ctx, task.Progress))
}

// advanced records that a step of a loop wrote to the ledger, which also counts as progress.
func (ix *Indexer) advanced(name string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if l := ix.loops[name]; l != nil {
		l.task.Progress()
		l.advanced = time.Now()
	}
}

// stalled returns why the indexer is stalled, or "". A loop stalls if it made no progress for the watchdog's limit. The
// head loop also stalls if it recorded nothing for that long, and another node has the next block; slow is then the
// node that it uses. A node that was slow before is not replaced again: all nodes may be slow.
func (ix *Indexer) stalled() (reason string, slow *chain.Node) {
	limit := ix.cfg.Watchdog.Limit()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for name, l := range ix.loops {
		if l.task.Idle() >= limit {
			return fmt.Sprintf("%s made no progress for %s", name, limit), nil
		}
	}
	if head := ix.loops[loopHead]; head != nil && time.Since(head.advanced) >= limit {
		if slow := ix.lastNode; slow != nil && !slow.IsSlow() && ix.cfg.Pool.OtherHaving(ix.status.Indexed+1, slow) != nil {
			return fmt.Sprintf("%s asked %s for %s and recorded nothing", loopHead, slow, limit), slow
		}
	}
	return "", nil
}

// abandon marks the tasks of this indexer as replaced by another one.
func (ix *Indexer) abandon() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, l := range ix.loops {
		l.task.Replace()
	}
}

// startMargin is how much older than the first invoice a new chain's first block to read is. A clock that was set in
// the wrong time zone is wrong by up to 14 hours.
const startMargin = 24 * time.Hour

// start begins a new chain at the finalized height. Blocks above it are read next. Blocks below it become a gap, which
// begins at the configured block or when the first invoice was created: invoices can be older than the first answer of
// a node. The service's clock may have been moved since, or differ from the chain's. So that time is the older of what
// the invoice holds and what is counted back from the chain's time, with a margin. A node without a tagged block is an
// error: reading from block 0 would take years.
func (ix *Indexer) start(ctx context.Context, n node, t heads, line uint64) error {
	if tag := ix.cfg.Chain.Finality.Tag; tag != "" && t.tagged.Hash.IsZero() {
		return n.wrap(fmt.Errorf("%s knows no %s block yet, so where to begin on chain %s is open; wait until it is synced, or set a finality in blocks: %w",
			n, tag, ix.cfg.Chain.Key, chain.ErrNotFound))
	}
	from := line + 1
	if first := ix.cfg.Chain.StartBlock; first != nil {
		from = min(from, max(*first, 1)) // block 0 holds no transactions
	} else if first, ok, err := ix.cfg.Ledger.FirstInvoice(ctx, ix.cfg.Chain.Key); err != nil {
		return err
	} else if ok {
		if counted := t.head.Time.Add(first.Sub(ix.cfg.Now())); counted.Before(first) {
			first = counted
		}
		older, err := blockBefore(ctx, n, line, first.Add(-startMargin))
		if err == nil && older.Number > 0 {
			err = ix.checkStart(ctx, n, older.Header)
		}
		if err != nil {
			return err
		}
		from = older.Number + 1
	}
	headers, err := n.headers(ctx, line)
	if err != nil {
		return err
	}
	if err := ix.checkStart(ctx, n, headers[0].Header); err != nil {
		return err
	}
	ix.cfg.Logger.Info("indexing starts", "chain", ix.cfg.Chain.Key, "block", line+1, "older_from", from)
	return ix.cfg.Ledger.Start(ctx, ix.cfg.Chain.Key, headers[0].Header, from)
}

// checkStart fails unless other nodes confirm the block at which a chain begins, because that block is final from then
// on.
func (ix *Indexer) checkStart(ctx context.Context, n node, at invoice.Header) error {
	if err := ix.verifyBlock(ctx, n, at, invoice.Header{}); err != nil || ix.cfg.Chain.Quorum < 2 {
		return err
	}
	var p poll
	p.ask(ctx, ix, ix.cfg.Pool.Others(n.Node), at.Number)
	if slices.ContainsFunc(p.readings, func(r blockReading) bool { return r.block == idOf(at) }) {
		return nil
	}
	return &NoQuorumError{fmt.Sprintf("the quorum is two nodes, but none besides %s answers for block %d, where reading is to begin", n, at.Number)}
}

// blockBefore returns the newest block at or below a height that is older than a time, or block 0, of which it does not
// read the rest of the header.
func blockBefore(ctx context.Context, n node, line uint64, since time.Time) (found chain.Header, err error) {
	low, high := uint64(0), line // the answer is between low and high, both included
	for low < high {
		middle := high - (high-low)/2
		headers, err := n.headers(ctx, middle)
		if err != nil {
			return found, err
		}
		if headers[0].Time.Before(since) {
			low, found = middle, headers[0]
		} else {
			high = middle - 1
		}
	}
	return found, nil
}

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
