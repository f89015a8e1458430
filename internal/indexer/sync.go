package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// errNodeBehind means that a node's head is below the newest indexed block. That does
// not contradict the blocks of other nodes.
var errNodeBehind = errors.New("the node's head is behind the newest indexed block")

// sync brings the ledger up to a node's chain: it rolls back replaced blocks, reads the next ones and confirms final
// ones. If the node fails, the next node is used immediately. It fails if all nodes stay behind the indexed blocks for
// maxBehind. more reports that another sync now would make progress.
func (ix *Indexer) sync(ctx context.Context) (more bool, err error) {
	err = ix.try(ctx, 0, func(n node) (err error) {
		more, err = ix.syncWith(ctx, n)
		return err
	})
	switch {
	case !errors.Is(err, errNodeBehind):
		ix.lastNotBehind = ix.cfg.Now()
	case ix.cfg.Now().Sub(ix.lastNotBehind) < maxBehind:
		return false, nil
	}
	return more && err == nil, err
}

// syncWith syncs with one node.
func (ix *Indexer) syncWith(ctx context.Context, n node) (more bool, err error) {
	ix.updateStatus(func(s *Status) { s.Source, ix.lastNode = n.String(), n.Node })
	if err := n.ready(ctx); err != nil {
		return false, err
	}
	if err := ix.checkIdentity(ctx, n); err != nil {
		return false, err
	}
	if err := ix.checkDistinct(ctx, n); err != nil {
		return false, err
	}
	t, err := n.head(ctx, ix.cfg.Chain.Finality.Tag)
	if err != nil {
		return false, err
	}
	ix.updateStatus(func(s *Status) { s.Head = t.head.Number })
	ix.measureSkew(t.head)
	ix.blockTimes.observe(t.head)
	if followed, err := ix.follows(ctx, n, t); followed {
		return false, err
	}
	if t.head.Hash == ix.lastSynced.head.Hash && t.tagged.Hash == ix.lastSynced.tagged.Hash {
		return false, nil
	}
	if err := ix.probeBlooms(ctx, n, t); err != nil {
		return false, err
	}
	before := ix.position()
	more, err = ix.advance(ctx, n, t)
	switch {
	case errors.Is(err, ledger.ErrCursorMoved), errors.Is(err, ledger.ErrFinalityViolated):
		if ix.lostRaces++; ix.lostRaces <= maxLostRaces {
			// Another replica was faster. The next sync loads what it wrote.
			return true, nil
		}
		return false, err
	case err != nil:
		return false, err
	}
	ix.lostRaces = 0
	if !more {
		ix.lastSynced = t
	}
	ix.noteOwnProgress()
	// Without a change, another sync at once would have the same outcome.
	return more && (ix.expiring || ix.position() != before), nil
}

// position returns the newest indexed block and the newest final one.
func (ix *Indexer) position() (p struct{ tip, final invoice.Hash }) {
	if ix.tracker != nil {
		p.tip, p.final = ix.tracker.Tip().Hash, ix.tracker.Final().Hash
	}
	return p
}

// advance follows the node's new heads.
func (ix *Indexer) advance(ctx context.Context, n node, t heads) (more bool, err error) {
	line, ok := ix.quorumHeight(ctx, n, t)
	if err := ix.load(ctx, n, t, line, ok); err != nil {
		return false, err
	}
	if t.head.Number < ix.tracker.Tip().Number {
		return false, &nodeError{node: n.Node, err: errNodeBehind, reported: true}
	}
	next, err := ix.nextHeader(ctx, n, t.head)
	if err != nil {
		return false, err
	}
	if next != nil && line >= next.Number+2*maxBlocks {
		return true, ix.catchUp(ctx, n, t, line)
	}
	ix.catchup.end()
	if next != nil {
		if err := ix.readOnTop(ctx, n, *next, t.head); err != nil {
			return false, err
		}
	}
	expiring := ix.expiring
	unfinal := t.above(line)
	if ok, err := ix.verifyTip(ctx, n, min(line, t.head.Number-1)); !ok || err != nil {
		return true, err
	}
	settled, err := ix.confirm(ctx, n, t, ix.confirmable(unfinal), unfinal)
	if err == nil && expiring {
		ix.expiring, err = ix.cfg.Ledger.Expire(ctx, ix.cfg.Chain.Key)
	}
	// The others may report a higher final block before the node has a new head.
	own, _ := ix.cfg.Chain.Finality.Height(t.head.Number, t.tagged.Number)
	return !settled || ix.expiring || line < own || ix.tracker.Tip().Number < t.head.Number, err
}

// readOnTop reads the block next, and as many above it as the pace asks for, and records them.
func (ix *Indexer) readOnTop(ctx context.Context, n node, next, head chain.Header) error {
	if err := ix.checkTipTime(ctx, n, next); err != nil {
		return err
	}
	blocks, err := ix.readUpTo(ctx, n, next, head)
	if err != nil {
		return err
	}
	return ix.observe(ctx, n, blocks)
}

// checkTipTime fails if the next block has an earlier time than the newest indexed one, which another node may have
// returned. Then that time is wrong, and blocks are rolled back, or the node contradicts itself.
func (ix *Indexer) checkTipTime(ctx context.Context, n node, next chain.Header) error {
	tip := ix.tracker.Tip()
	if !next.Time.Before(tip.Time) || tip.Number == ix.tracker.Final().Number { // what is final stays
		return nil
	}
	headers, err := n.headers(ctx, tip.Number)
	switch {
	case err != nil:
		return err
	case headers[0].Hash != tip.Hash:
		return n.wrap(errReplaced)
	case headers[0].SameBlock(tip):
		return n.checkTimes(headers[0], next)
	}
	err = ix.rereadTimes(ctx, n, tip, headers[0].Header)
	if errors.As(err, new(*NoQuorumError)) {
		return nil // which ends no reading
	}
	return cmp.Or(err, ledger.ErrCursorMoved) // the next sync continues where the rollback ended
}

// verifyTip compares the newest indexed block with other nodes if it is at or below height and not confirmed. If one
// node invented it, no block will follow it.
func (ix *Indexer) verifyTip(ctx context.Context, n node, height uint64) (ok bool, err error) {
	tip, final := ix.tracker.Tip(), ix.tracker.Final()
	if tip.Number > height || tip.Number <= final.Number {
		return true, nil
	}
	return ix.verifyRead(ctx, n, tip)
}

// verifyRead is verifyHeader for a block that was read and is not final. If it was recorded with another time, other
// blocks may be as well, so that all blocks that are not final are rolled back, and the result is false.
func (ix *Indexer) verifyRead(ctx context.Context, n node, at invoice.Header) (ok bool, err error) {
	err = ix.verifyHeader(ctx, n, at, ix.tracker.Final())
	if errors.Is(err, errOtherTime) {
		return false, ix.rollbackAll(ctx, n, at)
	}
	return err == nil, err
}

// rereadTimes rolls back all blocks that are not final, because the node has one of them with another time than it was
// recorded with, and other nodes do not contradict it.
func (ix *Indexer) rereadTimes(ctx context.Context, n node, was, now invoice.Header) error {
	if err := ix.verifyBlock(ctx, n, now, ix.tracker.Final()); err != nil {
		return err
	}
	return ix.rollbackAll(ctx, n, was)
}

// rollbackAll orphans all blocks that are not final, because one of them was recorded with a wrong time. If the node itself
// had returned that time, it is quarantined, since it may do so again each time it is read.
func (ix *Indexer) rollbackAll(ctx context.Context, n node, wrong invoice.Header) error {
	ix.cfg.Logger.Error("block was recorded with another time than the node has, will reindex all blocks that are not final",
		"chain", ix.cfg.Chain.Key, "node", n.String(), "block", wrong.Number)
	if err := ix.rollback(ctx, ix.tracker.Final()); err != nil || ix.readFrom[idOf(wrong)] != n {
		return err
	}
	return n.contradicts("returned block %d, %s, with two times", wrong.Number, wrong.Hash)
}

// nextHeader reads the blocks up to the head together if the pace asks for that. Otherwise it
// returns the header of the next block to read, or nil at the head.
func (ix *Indexer) nextHeader(ctx context.Context, n node, head chain.Header) (*chain.Header, error) {
	if done, err := ix.readTogether(ctx, n, head); done || err != nil {
		return nil, err
	}
	return ix.follow(ctx, n, head)
}

// maxReadFrom bounds Indexer.readFrom.
const maxReadFrom = 1 << 14

// observe records blocks on top of the newest indexed one. n is the node that returned them, or zero.
func (ix *Indexer) observe(ctx context.Context, n node, blocks []ledger.Block) error {
	if err := ix.cfg.Ledger.Observe(ctx, ix.cfg.Chain.Key, blocks); err != nil {
		return err
	}
	if len(ix.readFrom) > maxReadFrom {
		clear(ix.readFrom)
		clear(ix.observed)
	}
	for _, b := range blocks {
		ix.tracker.Append(b.Header)
		ix.readFrom[idOf(b.Header)], ix.observed[idOf(b.Header)] = n, hashOf(b.Transfers)
	}
	return nil
}

// hashSeed is the seed of hashOf.
var hashSeed = maphash.MakeSeed()

// hashOf returns a hash of transfers, whatever their order.
func hashOf(transfers []invoice.Transfer) (sum uint64) {
	for _, t := range transfers {
		sum += maphash.Comparable(hashSeed, t)
	}
	return sum
}

// catchUp reads blocks that are already final, up to maxBlocks below the line, and confirms the ones that are
// confirmable. Their transfers come from receipts in blocks that were canonical after they had become final.
func (ix *Indexer) catchUp(ctx context.Context, n node, t heads, line uint64) error {
	last, unfinal := line-maxBlocks, t.above(line)
	if settled, err := ix.confirm(ctx, n, t, ix.confirmable(unfinal), unfinal); !settled || err != nil {
		return err
	}
	// Blocks read from here on are verified by the way they are read.
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return err
	}
	tip := ix.tracker.Tip()
	if ok, err := ix.verifyTip(ctx, n, line); !ok || err != nil {
		return err
	}
	ix.catchup.begin(tip.Number+1, last)
	return ix.stream(ctx, blockRange{first: tip.Number + 1, last: last, rangedUpTo: last}, tip, tip, func(ctx context.Context, blocks []ledger.Block) error {
		if err := ix.observe(ctx, node{}, blocks); err != nil {
			return err
		}
		if err := ix.confirmBelow(ctx, n, t, tip.Number, unfinal); err != nil {
			return err
		}
		if ix.tracker.Final().Number >= tip.Number {
			if err := ix.confirmRead(ctx, n, cursor.Revision, unfinal); err != nil {
				return err
			}
		}
		ix.catchup.reached(ix.tracker.Tip().Number + 1)
		ix.updateStatus(func(s *Status) { s.at(ix.tracker); s.Succeeded = ix.cfg.Now() })
		ix.advanced(loopHead)
		return nil
	})
}

// confirmBelow verifies blocks that were read before, and confirms the confirmable ones up to a height.
func (ix *Indexer) confirmBelow(ctx context.Context, n node, t heads, height, unfinal uint64) error {
	if ix.tracker.Final().Number >= height {
		return nil
	}
	read := ix.tracker.Tip()
	if _, err := ix.confirm(ctx, n, t, min(ix.confirmable(unfinal), height), unfinal); err != nil {
		return err
	}
	if ix.tracker.Tip() != read {
		return ledger.ErrCursorMoved // the next sync continues where the rollback ended
	}
	return nil
}

// confirmRead confirms the confirmable blocks among those that were final when they were read.
func (ix *Indexer) confirmRead(ctx context.Context, n node, revision int64, unfinal uint64) error {
	through, ok := ix.tracker.At(ix.confirmable(unfinal))
	if !ok || through.Number <= ix.tracker.Final().Number {
		return nil
	}
	if ix.cfg.Chain.Quorum < 2 { // otherwise two nodes have read it
		if ok, err := ix.recheckOrphaned(ctx, n, through); err != nil {
			return err
		} else if !ok {
			return ledger.ErrCursorMoved // the next sync continues where the rollback ended
		}
	}
	more, err := ix.cfg.Ledger.Confirm(ctx, ix.cfg.Chain.Key, through, revision, unfinal)
	if err != nil {
		return err
	}
	ix.expiring = more
	ix.tracker.Finalize(through)
	return nil
}

// load sets the tracker to the ledger's cursor. Another replica, or a write with a lost result, may have moved the
// cursor. load starts the chain if it was never read.
func (ix *Indexer) load(ctx context.Context, n node, t heads, line uint64, agreed bool) error {
	if err := ix.learnRegistries(ctx); err != nil {
		return err
	}
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return err
	}
	if !cursor.Started {
		if !agreed {
			return &NoQuorumError{fmt.Sprintf("the quorum is two nodes, and no other one calls any block of chain %s final", ix.cfg.Chain.Key)}
		}
		if err := ix.start(ctx, n, t, line); err != nil {
			return err
		}
		if cursor, err = ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key); err != nil {
			return err
		}
	}
	if cursor.Gap != nil {
		select {
		case ix.gapSeen <- struct{}{}:
		default:
		}
	}
	return ix.adopt(ctx, cursor)
}

// follow compares the node's chain, which contains h, with the indexed blocks. It rolls
// back replaced blocks, and returns the next block to read, or nil.
func (ix *Indexer) follow(ctx context.Context, n node, h chain.Header) (next *chain.Header, err error) {
	ask := func(number uint64) error {
		headers, err := n.headers(ctx, number)
		if err == nil {
			h = headers[0]
		}
		return err
	}
	for {
		step := ix.tracker.Classify(h.Header)
		switch step.Verdict {
		case Known:
			return nil, nil
		case Extends:
			return &h, nil
		case Ask:
			err = ask(step.Ask)
		case Reorg:
			if err = ix.rollback(ctx, step.Ancestor); err == nil {
				err = ask(step.Ancestor.Number + 1)
			}
		case Violation:
			return nil, ix.handleViolation(ctx, n, h)
		}
		if err != nil {
			return nil, err
		}
	}
}

// rollback orphans the indexed blocks above a block.
func (ix *Indexer) rollback(ctx context.Context, to invoice.Header) error {
	ix.cfg.Logger.Info("reorg, blocks rolled back",
		"chain", ix.cfg.Chain.Key, "above", to.Number, "through", ix.tracker.Tip().Number)
	if err := ix.cfg.Ledger.Rollback(ctx, ix.cfg.Chain.Key, to); err != nil {
		return err
	}
	ix.tracker.Rewind(to)
	return nil
}
