package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/indexer"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// DefaultPatience is how long a chain may make no progress in a recovery before the recovery ends with
	// an error.
	DefaultPatience = 10 * time.Minute
	// recoverPoll is the interval of checks of how far the chains are read.
	recoverPoll = 50 * time.Millisecond
	// recoverReportEvery is how often a recovery reports how far a chain is read.
	recoverReportEvery = 10 * time.Second
	// maxHeadAge is the greatest age of the newest block at which a chain counts as read. A node that is behind
	// answers with an older one, and without an error.
	maxHeadAge = 15 * time.Minute
	// minCatchUp is how much younger the newest block must be to count as progress. If a node stays behind, its newest
	// block's age varies by the chain's block time.
	minCatchUp = 30 * time.Second
)

// reading is how far a recovery has read a chain.
type reading struct {
	indexed, head uint64
	again         uint64        // the next block that is read again; 0 without one
	atHead        bool          // everything is read
	oldAt         time.Time     // time of the newest block, if it is too old and none follows; or else zero
	age           time.Duration // of that block when it last made progress
	moved, said   time.Time     // when it last made progress, and when that was reported
}

// readToHeads runs the indexers until each chain is read to its head. It reports what it waits for,
// and ends with an error once a chain has made no progress for Patience.
func (s *Server) readToHeads(ctx context.Context, o RecoverOptions) (err error) {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	for _, run := range s.chains {
		group.Go(func() error { return run.indexer.Run(ctx) })
	}
	group.Go(func() error { // so that others see that it runs
		for s.replica != "" && clock.Sleep(ctx, revisionInterval, nil) {
			s.isCurrent(ctx)
		}
		return nil
	})
	defer func() {
		stop()
		err = errors.Join(err, group.Wait())
	}()
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	readings := make([]reading, len(s.chains))
	for {
		behind := 0
		for i, run := range s.chains {
			if err := s.follow(ctx, run, &readings[i], o); err != nil {
				return err
			}
			if !readings[i].atHead {
				behind++
			}
		}
		if behind == 0 {
			return nil
		}
		if !clock.Sleep(ctx, recoverPoll, nil) {
			return context.Cause(ctx)
		}
	}
}

// follow updates how far a chain is read. It fails if the chain is halted, or made no progress for too long.
func (s *Server) follow(ctx context.Context, run *chainWorkers, r *reading, o RecoverOptions) error {
	st := run.indexer.Status()
	if st.Halted != "" {
		return fmt.Errorf("%s is halted: %s; see \"quittance chain resume\", then run this again", run.Key, st.Halted)
	}
	cur, err := s.settle.Cursor(ctx, run.Key)
	if err != nil {
		return err
	}
	now := s.cfg.Now()
	r.update(st, cur, o, now)
	if r.atHead {
		return nil
	}
	if now.Sub(r.moved) >= o.Patience {
		return fmt.Errorf("%s has made no progress for %s: it is read up to block %d, and the newest known one is %d; %s. Repair the nodes, or name others in chains[].rpc, "+
			"and run this again: it continues there. With --patience it waits longer", run.Key, o.Patience, r.indexed, r.head, troubles(*r, run.pool.Health(), st.Error))
	}
	if now.Sub(r.said) >= recoverReportEvery {
		r.said = now
		s.cfg.Logger.Info("the past of a chain is being read", "chain", run.Key, "block", r.indexed, "head", r.head, "again", r.again,
			"waits_for", troubles(*r, run.pool.Health(), st.Error))
	}
	return nil
}

// update records how far a chain is read now. While the newest block is too old, reading is progress only if it is
// faster than the chain grows.
func (r *reading) update(st indexer.Status, cur ledger.Progress, o RecoverOptions, now time.Time) {
	was, age := *r, now.Sub(st.IndexedTime)
	r.indexed, r.head, r.again, r.oldAt = max(cur.Indexed.Number, st.Indexed), st.Head, 0, time.Time{}
	if cur.Gap != nil {
		r.again = cur.Gap.Next
	}
	isOld := !o.OldHeads && age > maxHeadAge
	r.atHead = !isOld && isRead(st, cur)
	advances := r.indexed != was.indexed && (!isOld || age <= r.age-minCatchUp)
	if r.moved.IsZero() || r.atHead || advances || r.again != was.again {
		r.moved, r.age = now, age
	}
	if isOld && now.Sub(r.moved) >= min(o.Patience, recoverReportEvery) {
		r.oldAt = st.IndexedTime
	}
}

// isRead reports whether a chain is read to the head that its nodes report.
func isRead(st indexer.Status, cur ledger.Progress) bool {
	return !st.Succeeded.IsZero() && st.Error == "" && st.Head > 0 && st.Indexed >= st.Head && cur.Gap == nil
}

// troubles describes the problems of the nodes of a chain, and why the last reading failed.
func troubles(r reading, nodes []chain.Health, last string) string {
	var all []string
	if !r.oldAt.IsZero() {
		all = append(all, fmt.Sprintf("that block is of %s, so the nodes may be behind; if the chain itself has stopped, add --old-heads",
			clock.Format(r.oldAt, time.UTC, time.RFC3339)))
	}
	for _, n := range nodes {
		if n.Reason != "" {
			all = append(all, fmt.Sprintf("node %s is in state %s: %s", n.Node, n.State, n.Reason))
		}
	}
	if last != "" {
		all = append(all, "the last reading failed: "+last)
	}
	return cmp.Or(strings.Join(all, "; "), "no node reports an error")
}
