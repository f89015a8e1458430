package indexer

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/internal/ledger"
)

// failingAfter is how long syncs may fail, and stuckAfter how long one may take, before another replica should read the
// chain instead.
const failingAfter, stuckAfter = 5 * time.Second, 30 * time.Second

// errUnread means that no replica has begun to read the chain.
var errUnread = errors.New("no replica has begun to read the chain yet")

// Failing reports whether another replica should read the chain instead.
func (s *Supervisor) Failing() bool { return s.indexer().failing() }

func (ix *Indexer) failing() bool {
	now := ix.cfg.Now()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, since := range ix.failingSince {
		if now.Sub(since) > failingAfter {
			return true
		}
	}
	head := ix.loops[loopHead]
	return ix.reads() && head != nil && time.Since(head.advanced) > stuckAfter
}

// noteFailure records when a loop began to fail, for a reason that another replica may not have. The caller holds mu.
func (ix *Indexer) noteFailure(loop string, err error) {
	var noQuorum *NoQuorumError
	var halted *HaltedError
	switch since := ix.failingSince[loop]; {
	case err == nil, errors.Is(err, errUnread), errors.As(err, &noQuorum), errors.As(err, &halted):
		delete(ix.failingSince, loop)
	case since.IsZero():
		ix.failingSince[loop] = ix.cfg.Now()
	}
}

// reads reports whether this replica should read the chain.
func (ix *Indexer) reads() bool { return ix.cfg.Reads == nil || ix.cfg.Reads() }

// follows takes over what another replica has read, unless this replica should read the chain.
func (ix *Indexer) follows(ctx context.Context, n node, t heads) (followed bool, err error) {
	if ix.reads() {
		return false, nil
	}
	unread, err := ix.standBy(ctx, n, t)
	return !unread, err
}

// noteOwnProgress records that the indexed blocks are not another replica's progress.
func (ix *Indexer) noteOwnProgress() {
	if ix.reads() {
		ix.others = othersProgress{}
		return
	}
	ix.others.at = ix.tracker.Tip().Hash
}

// standBy takes over how far another replica has read the chain. unread reports that the other replica has read no
// block for maxBehind. Then this replica should read the chain, without the lease.
func (ix *Indexer) standBy(ctx context.Context, n node, t heads) (unread bool, err error) {
	ix.lastSynced, ix.expiring = heads{}, true // the first sync finds the work that the other replica left
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return false, err
	}
	if cursor.Started {
		if err := ix.adopt(ctx, cursor); err != nil {
			return false, err
		}
	}
	if t.head.Number < cursor.Indexed.Number {
		return false, &nodeError{node: n.Node, err: errNodeBehind, reported: true}
	}
	if next := cursor.Indexed.Number + 1; cursor.Started && t.head.Number >= next+2*maxBlocks {
		ix.catchup.follow(next, t.head.Number-maxBlocks)
	} else {
		ix.catchup.end()
	}
	now, read := ix.cfg.Now(), cursor.Indexed.Hash
	idle := now.Sub(ix.others.since)
	if ix.others.since.IsZero() || read != ix.others.at || cursor.Indexed.Number == t.head.Number && idle <= maxBehind {
		ix.others, idle = othersProgress{read, now}, 0
	}
	if idle <= maxBehind && !cursor.Started {
		return false, errUnread
	}
	return idle > maxBehind, nil
}

// adopt sets the tracker to the ledger's cursor.
func (ix *Indexer) adopt(ctx context.Context, cursor ledger.Progress) error {
	if cursor.Halted != "" {
		return &HaltedError{ChainKey: ix.cfg.Chain.Key, Reason: cursor.Halted}
	}
	if ix.tracker != nil && ix.revision == cursor.Revision && ix.tracker.Tip().Hash == cursor.Indexed.Hash && ix.tracker.Final().Hash == cursor.Confirmed.Hash {
		return nil
	}
	stored, err := ix.cfg.Ledger.Headers(ctx, ix.cfg.Chain.Key, cursor.Confirmed.Number, cursor.Indexed.Number)
	if err != nil {
		return err
	}
	if !ix.reads() || ix.tracker == nil || ix.tracker.Tip().Hash != cursor.Indexed.Hash {
		clear(ix.observed) // another replica has recorded blocks
	}
	ix.tracker, ix.revision = NewTracker(cursor, stored), cursor.Revision
	return nil
}
