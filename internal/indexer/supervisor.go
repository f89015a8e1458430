package indexer

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of a Supervisor.
const (
	// replaceGrace and stopGrace are how long the supervisor waits for a stopped indexer: before it starts another one,
	// and before it returns.
	replaceGrace = time.Second
	stopGrace    = 10 * time.Second
	// maxAbandoned is how many stopped indexers may still run; at that number no other one is started.
	maxAbandoned = 16
)

// Supervisor runs a chain's Indexer. It replaces an indexer that makes no progress, whether it stops or not. Another
// node goes before one that is too slow, and a node of which a request does not end is quarantined. It is safe for
// concurrent use.
//
// An indexer that does not stop does no harm: the ledger's cursor prevents two of them from recording one block, as it
// does with two replicas.
type Supervisor struct {
	conf Config

	mu        sync.Mutex
	current   *Indexer
	abandoned int // stopped indexers that still run
}

// NewSupervisor returns a supervisor that does not run yet.
func NewSupervisor(c Config) *Supervisor {
	if c.Watchdog == nil {
		c.Watchdog = clock.New(0)
	}
	return &Supervisor{conf: c, current: New(c)}
}

func (s *Supervisor) indexer() *Indexer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Wake makes the indexer sync now.
func (s *Supervisor) Wake() { s.indexer().Wake() }

// Status returns the indexer's status.
func (s *Supervisor) Status() Status { return s.indexer().Status() }

// Run runs the indexer until ctx ends; see Indexer.Run.
func (s *Supervisor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		w := s.indexer()
		run, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = w.Run(run) // always nil
		}()
		s.await(ctx, w)
		stop()
		grace := replaceGrace
		if ctx.Err() != nil {
			grace = stopGrace
		}
		s.awaitEnd(w, ended, grace)
		if ctx.Err() == nil {
			s.replace(w)
		}
	}
	return nil
}

// await returns when ctx ends or the indexer must be replaced.
func (s *Supervisor) await(ctx context.Context, w *Indexer) {
	ticker := time.NewTicker(max(s.conf.Watchdog.Limit()/20, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		reason, slow := w.stalled()
		if reason == "" || s.exhausted() {
			continue
		}
		s.conf.Logger.Error("indexing makes no progress, restarting it", "chain", s.conf.Chain.Key, "reason", reason)
		w.updateStatus(func(st *Status) { st.Error = reason })
		if slow != nil {
			slow.ReportSlow(reason)
		}
		for _, p := range s.conf.Pool.Nodes() {
			if waiting := p.OldestRequest(); waiting >= s.conf.Watchdog.Limit()/2 {
				p.Quarantine("a request has not ended for " + waiting.Round(time.Second).String())
			}
		}
		return
	}
}

// exhausted reports whether too many indexers do not stop. The last one is not replaced then.
func (s *Supervisor) exhausted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abandoned >= maxAbandoned
}

// awaitEnd waits up to grace for a stopped indexer, and then abandons it.
func (s *Supervisor) awaitEnd(w *Indexer, ended <-chan struct{}, grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	s.mu.Lock()
	s.abandoned++
	s.mu.Unlock()
	w.abandon()
	s.conf.Logger.Error("indexer did not stop in time", "chain", s.conf.Chain.Key)
	go func() {
		<-ended
		s.mu.Lock()
		s.abandoned--
		s.mu.Unlock()
	}()
}

// replace replaces the indexer by a new one that begins with its status.
func (s *Supervisor) replace(w *Indexer) {
	next := New(s.conf)
	next.status = w.Status()
	next.status.CatchUp, next.status.Backfill = nil, nil
	next.status.Restarts++
	w.mu.Lock()
	maps.Copy(next.failingSince, w.failingSince)
	w.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = next
}

// Limits of following notices of transfers.
const (
	// noticeGrace is how long a notice waits for the payment that it announces.
	noticeGrace = 5 * time.Minute
	// noticeMaxAge is the greatest age of a notice that is followed after a start.
	noticeMaxAge = time.Hour
	// noticeWindow is how long before the notice the transfer may have been mined.
	noticeWindow = 30 * time.Minute
	// maxNoticeBlocks bounds the blocks that are compared because of notices.
	maxNoticeBlocks = 2000
)

// followNotices compares the blocks around a notice if its transfer is not recorded noticeGrace after the notice was
// received. It uses the logs of two nodes, or reads the only node's logs again. A notice names no transaction, so it
// compares all blocks that can hold the transfer. If it finds a transfer that is not recorded, the transfer's block is
// read again.
func (ix *Indexer) followNotices(ctx context.Context) error {
	before := ix.cfg.Now().Add(-noticeGrace)
	from := ix.noticesSeen
	if oldest := before.Add(-noticeMaxAge); from.Before(oldest) {
		from = oldest
	}
	at, err := ix.cfg.Ledger.UnlinkedNotices(ctx, ix.cfg.Chain.Key, from, before)
	if err != nil || len(at) == 0 {
		return err
	}
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil || !cursor.Started || cursor.Halted != "" {
		return err
	}
	last := cursor.Indexed.Number
	nodes := ix.cfg.Pool.Having(last)
	if len(nodes) == 0 {
		return errNoHealthyNode
	}
	// Use the chain's time: only the rate of this machine's clock is trusted.
	age := ix.cfg.Now().Sub(at[0]) + noticeWindow
	older, err := blockBefore(ctx, node{nodes[0]}, last, cursor.Indexed.Time.Add(-age))
	if err != nil {
		return err
	}
	first := max(older.Number+1, last+1-min(last, maxNoticeBlocks))
	for ; first <= last; first += auditRange {
		if _, err := ix.auditByNodes(ctx, nodes[:min(len(nodes), 2)], first, min(last, first+auditRange-1)); err != nil {
			return err
		}
	}
	ix.noticesSeen = before
	return nil
}

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
