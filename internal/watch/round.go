package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// round brings the ledger nearer to what one node says: it rolls back what was
// replaced, reads the next blocks and confirms what is final. more says that
// there is more to do, and that doing it at once is of use.
func (w *Watcher) round(ctx context.Context) (more bool, err error) {
	src := w.Sources[w.source]
	w.note(func(s *Status) { s.Source = src.String() })
	if err := w.check(ctx, w.source); err != nil {
		return false, err
	}
	head, err := src.Head(ctx)
	if err != nil {
		return false, err
	}
	w.note(func(s *Status) { s.Head = head.Number })
	if head.Hash == w.complete {
		w.leaveFrozen()
		return false, nil
	}
	line, err := w.line(ctx, src, head)
	if err != nil {
		return false, err
	}
	before := w.position()
	more, err = w.advance(ctx, src, head, line)
	switch {
	case errors.Is(err, settle.ErrCursorMoved), errors.Is(err, settle.ErrFinalityViolated):
		if w.races++; w.races <= maxRaces {
			// Another replica was faster. The next round loads what it wrote.
			return true, nil
		}
		return false, err
	case err != nil:
		return false, err
	}
	w.races = 0
	if !more {
		w.complete, w.since = head.Hash, w.Now()
	}
	// Where nothing moved, the same would come of another round at once.
	return more && w.position() != before, nil
}

// position returns the newest block read and the newest final one.
func (w *Watcher) position() (p struct{ tip, final invoice.Hash }) {
	if w.tracker != nil {
		p.tip, p.final = w.tracker.Tip().Hash, w.tracker.Final().Hash
	}
	return p
}

// leaveFrozen makes the next round ask the next node if this one has told of
// nothing new for long. The chain may be silent, or the node cut off from it.
func (w *Watcher) leaveFrozen() {
	if now := w.Now(); now.Sub(w.since) >= frozenAfter {
		w.since = now
		w.rotate()
	}
}

// check holds the chain's configuration against a node, once.
func (w *Watcher) check(ctx context.Context, source int) error {
	if w.checked[source] {
		return nil
	}
	err := w.Sources[source].Check(ctx, w.Chain)
	if misfit := errors.Is(err, chain.ErrMismatch); misfit && !w.misfit[source] {
		w.Logger.Error("the configuration does not fit the node; correct one of them",
			"chain", w.Chain.Key, "node", w.Sources[source].String(), "err", err)
		w.misfit[source] = true
	}
	w.checked[source] = err == nil
	return err
}

// advance does the part of a round that follows a new head.
func (w *Watcher) advance(ctx context.Context, src Source, head chain.Header, line uint64) (more bool, err error) {
	if err := w.load(ctx, src, line); err != nil {
		return false, err
	}
	if tip := w.tracker.Tip(); head.Number < tip.Number {
		// The node is behind or still syncing. That says nothing of the blocks
		// that another one, or this one before, has told of.
		w.Logger.Debug("node is behind what was read", "chain", w.Chain.Key, "node", src.String(), "head", head.Number, "indexed", tip.Number)
		w.rotate()
		return false, nil
	}
	next, err := w.follow(ctx, src, head)
	if err != nil {
		return false, err
	}
	if next != nil {
		if err := w.read(ctx, src, *next, head, line); err != nil {
			return false, err
		}
	}
	settled, err := w.confirm(ctx, src, line)
	return !settled || w.tracker.Tip().Number < head.Number, err
}

// line returns the height up to which blocks are final to the node, 0 while
// none but the first is.
func (w *Watcher) line(ctx context.Context, src Source, head chain.Header) (uint64, error) {
	var tagged chain.Header
	if tag := w.Chain.Finality.Tag; tag != "" {
		var err error
		if tagged, err = src.Tagged(ctx, tag); err != nil && !errors.Is(err, chain.ErrNotFound) {
			return 0, err
		}
	}
	line, _ := w.Chain.Finality.Line(head.Number, tagged.Number)
	return line, nil
}

// load makes the tracker that of the ledger's cursor, which another replica or
// a change whose answer was lost can have moved. It starts the chain if it was
// never read.
func (w *Watcher) load(ctx context.Context, src Source, line uint64) error {
	cursor, err := w.Ledger.Cursor(ctx, w.Chain.Key)
	if err != nil {
		return err
	}
	if !cursor.Started {
		if err := w.start(ctx, src, line); err != nil {
			return err
		}
		if cursor, err = w.Ledger.Cursor(ctx, w.Chain.Key); err != nil {
			return err
		}
	}
	if cursor.Halted != "" {
		return &HaltedError{ChainKey: w.Chain.Key, Reason: cursor.Halted}
	}
	if w.tracker != nil && w.tracker.Tip().Hash == cursor.Indexed.Hash && w.tracker.Final().Hash == cursor.Confirmed.Hash {
		return nil
	}
	stored, err := w.Ledger.Headers(ctx, w.Chain.Key, cursor.Confirmed.Number, cursor.Indexed.Number)
	if err != nil {
		return err
	}
	w.tracker = NewTracker(cursor, stored)
	return nil
}

// start begins a chain that was never read. The block to begin after counts as
// final, so it is not above the line, whatever the configuration says: the
// newest block can still be replaced. While the node knows no line, nothing
// begins: from block 0 on there would be years to read. Without a configured
// block, reading begins where the first invoice was created: invoices can be
// older than the first answer of a node.
func (w *Watcher) start(ctx context.Context, src Source, line uint64) error {
	if tag := w.Chain.Finality.Tag; tag != "" {
		if _, err := src.Tagged(ctx, tag); errors.Is(err, chain.ErrNotFound) {
			return fmt.Errorf("%s knows no %s block yet, so where to begin on chain %s is open; wait until it is synced, or set a finality in blocks: %w",
				src, tag, w.Chain.Key, err)
		} else if err != nil {
			return err
		}
	}
	at := line
	if first := w.Chain.StartBlock; first != nil {
		// Block 0 holds no transactions, so the earliest begin is after it.
		at = min(at, max(*first, 1)-1)
	} else if since, ok, err := w.Ledger.Since(ctx, w.Chain.Key); err != nil {
		return err
	} else if ok {
		if at, err = before(ctx, src, line, since); err != nil {
			return err
		}
	}
	headers, err := src.Headers(ctx, []uint64{at})
	if err != nil {
		return err
	}
	w.Logger.Info("reading begins", "chain", w.Chain.Key, "block", at+1)
	return w.Ledger.Start(ctx, w.Chain.Key, header(headers[0]))
}

// before returns the newest block at or below line that is older than a time,
// or the first block of all.
func before(ctx context.Context, src Source, line uint64, since int64) (uint64, error) {
	low, high := uint64(0), line // the answer is in between, both included
	for low < high {
		middle := high - (high-low)/2
		headers, err := src.Headers(ctx, []uint64{middle})
		if err != nil {
			return 0, err
		}
		if headers[0].Time < since {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// follow compares the node's chain, of which h is a block, with what was read.
// It rolls back what was replaced, and returns the block to read next, nil
// when there is none.
func (w *Watcher) follow(ctx context.Context, src Source, h chain.Header) (next *chain.Header, err error) {
	ask := func(number uint64) error {
		headers, err := src.Headers(ctx, []uint64{number})
		if err == nil {
			h = headers[0]
		}
		return err
	}
	for {
		step := w.tracker.Judge(header(h))
		switch step.Verdict {
		case Known:
			return nil, nil
		case Extends:
			return &h, nil
		case Ask:
			err = ask(step.Ask)
		case Reorg:
			if err = w.rollback(ctx, step.Ancestor); err == nil {
				err = ask(step.Ancestor.Number + 1)
			}
		case Violation:
			return nil, w.halt(ctx, src, h)
		}
		if err != nil {
			return nil, err
		}
	}
}

// rollback orphans what was read above a block.
func (w *Watcher) rollback(ctx context.Context, to settle.Header) error {
	w.Logger.Info("blocks were replaced; reading them again",
		"chain", w.Chain.Key, "above", to.Number, "through", w.tracker.Tip().Number)
	if err := w.Ledger.Rollback(ctx, w.Chain.Key, to); err != nil {
		return err
	}
	w.tracker.Rewind(to)
	return nil
}

// halt records that the node replaced a final block by one that h descends
// from or is.
func (w *Watcher) halt(ctx context.Context, src Source, h chain.Header) error {
	final := w.tracker.Final()
	reason := fmt.Sprintf("block %d was final as %s, but %s now has a chain without it, with block %d as %s; finality %s is too weak, or the node is wrong",
		final.Number, final.Hash, src, h.Number, h.Hash, w.Chain.Finality)
	if err := w.Ledger.Halt(ctx, w.Chain.Key, reason); err != nil {
		return err
	}
	return &HaltedError{ChainKey: w.Chain.Key, Reason: reason}
}

// header drops what the ledger does not keep.
func header(h chain.Header) settle.Header {
	return settle.Header{Number: h.Number, Hash: h.Hash, Parent: h.Parent, Time: h.Time}
}
