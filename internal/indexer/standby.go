package indexer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/settle"
)

// failingAfter is how long syncs fail, and stuckAfter how long one takes, before another replica
// should read the chain instead.
const failingAfter, stuckAfter = 5 * time.Second, 30 * time.Second

// unreadError means that this replica could read a chain, and the one that should does not.
type unreadError struct{ reason string }

func (e *unreadError) Error() string { return e.reason }

// Failing reports whether another replica should read the chain instead.
func (s *Supervisor) Failing() bool { return s.indexer().failing() }

func (ix *Indexer) failing() bool {
	now := ix.cfg.Now()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if since := ix.failingSince; !since.IsZero() {
		return now.Sub(since) > failingAfter
	}
	last := ix.status.Succeeded
	return ix.reads() && !last.IsZero() && ix.status.Error == "" && now.Sub(last) > stuckAfter
}

// noteFailure notes whether this replica fails to read the chain, or to follow it, and since
// when. The caller holds mu.
func (ix *Indexer) noteFailure(err error) {
	var unread *unreadError
	var halted *HaltedError
	switch {
	case err == nil, errors.As(err, &unread), errors.As(err, &halted):
		ix.failingSince = time.Time{}
	case ix.failingSince.IsZero():
		ix.failingSince = ix.cfg.Now()
	}
}

// reads reports whether this replica is to read the chain.
func (ix *Indexer) reads() bool { return ix.cfg.Reads == nil || ix.cfg.Reads() }

// standBy takes over how far another replica has read the chain. It is an error when that one
// reads nothing for maxBehind.
func (ix *Indexer) standBy(ctx context.Context, t heads) error {
	ix.lastSynced, ix.expiring = heads{}, true // what the other leaves is found at the first sync
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return err
	}
	if !cursor.Started {
		return &unreadError{fmt.Sprintf("no replica has begun to read chain %s yet", ix.cfg.Chain.Key)}
	}
	if err := ix.adopt(ctx, cursor); err != nil {
		return err
	}
	if next := cursor.Indexed.Number + 1; t.head.Number >= next+2*maxBlocks {
		ix.catchup.follow(next, t.head.Number-maxBlocks)
	} else {
		ix.catchup.end()
	}
	now := ix.cfg.Now()
	if read := cursor.Indexed.Hash; ix.others.since.IsZero() || read != ix.others.at || cursor.Indexed.Number >= t.head.Number {
		ix.others = othersProgress{read, now}
	}
	if idle := now.Sub(ix.others.since); idle > maxBehind {
		return &unreadError{fmt.Sprintf("the replica that reads chain %s has read nothing for %s, and is at block %d of %d",
			ix.cfg.Chain.Key, idle.Round(time.Second), cursor.Indexed.Number, t.head.Number)}
	}
	return nil
}

// adopt sets the tracker to the ledger's cursor.
func (ix *Indexer) adopt(ctx context.Context, cursor settle.Cursor) error {
	if cursor.Halted != "" {
		return &HaltedError{ChainKey: ix.cfg.Chain.Key, Reason: cursor.Halted}
	}
	if ix.tracker != nil && ix.tracker.Tip().Hash == cursor.Indexed.Hash && ix.tracker.Final().Hash == cursor.Confirmed.Hash {
		return nil
	}
	stored, err := ix.cfg.Ledger.Headers(ctx, ix.cfg.Chain.Key, cursor.Confirmed.Number, cursor.Indexed.Number)
	if err != nil {
		return err
	}
	ix.tracker = NewTracker(cursor, stored)
	return nil
}
