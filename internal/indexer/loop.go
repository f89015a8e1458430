package indexer

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/watchdog"
)

// The loops of an indexer, as the watchdog names them.
const (
	loopHead         = "reading the head"
	loopGap          = "filling the gap"
	loopRefreshHeads = "surveying the nodes"
)

// loop is a step of one of the indexer's loops that is under way.
type loop struct {
	task     *watchdog.Task
	advanced time.Time // when it began, or last recorded anything
}

// step does one step of a loop under the watchdog. A request to a node that
// ends is progress.
func (ix *Indexer) step(ctx context.Context, name string, do func(context.Context)) {
	task := ix.Watchdog.Begin(name + " of " + ix.Chain.Key)
	defer task.End()
	ix.mu.Lock()
	ix.loops[name] = &loop{task, time.Now()}
	ix.mu.Unlock()
	defer func() {
		ix.mu.Lock()
		delete(ix.loops, name)
		ix.mu.Unlock()
	}()
	do(chain.OnRequestDone(ctx, task.Progress))
}

// advanced notes that a step of a loop has recorded something.
func (ix *Indexer) advanced(name string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if l := ix.loops[name]; l != nil {
		l.advanced = time.Now()
	}
}

// stalled says which of the indexer's loops makes no progress: nothing that it
// does has ended for the limit of the watchdog, or reading the head has
// recorded nothing for as long while another node could be asked. slow is the
// node that it asks in the latter case. The reason is empty when all is well.
func (ix *Indexer) stalled() (reason string, slow *chain.Node) {
	limit := ix.Watchdog.Limit()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for name, l := range ix.loops {
		if l.task.Idle() >= limit {
			return fmt.Sprintf("%s made no progress for %s", name, limit), nil
		}
	}
	if head := ix.loops[loopHead]; head != nil && time.Since(head.advanced) >= limit {
		if slow := ix.lastNode; slow != nil && ix.Pool.HasHealthyOther(slow) {
			return fmt.Sprintf("%s asked %s for %s and recorded nothing", loopHead, slow, limit), slow
		}
	}
	return "", nil
}

// abandon tells the watchdog that another indexer does the work now, whether
// this one ever returns or not.
func (ix *Indexer) abandon() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, l := range ix.loops {
		l.task.Replace()
	}
}
