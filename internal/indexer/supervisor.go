package indexer

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
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
