package indexer

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/watchdog"
)

// The loops of a watcher, as the watchdog names them.
const (
	loopHead         = "reading the head"
	loopGap          = "filling the gap"
	loopRefreshHeads = "surveying the nodes"
)

// loop is a step of one of the watcher's loops that is under way.
type loop struct {
	task     *watchdog.Task
	advanced time.Time // when it began, or last recorded anything
}

// step does one step of a loop under the watchdog. A request to a node that
// ends is progress.
func (w *Indexer) step(ctx context.Context, name string, do func(context.Context)) {
	task := w.Watchdog.Begin(name + " of " + w.Chain.Key)
	defer task.End()
	w.mu.Lock()
	w.loops[name] = &loop{task, time.Now()}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.loops, name)
		w.mu.Unlock()
	}()
	do(chain.OnRequestDone(ctx, task.Progress))
}

// advanced notes that a step of a loop has recorded something.
func (w *Indexer) advanced(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.loops[name]; l != nil {
		l.advanced = time.Now()
	}
}

// stalled says which of the watcher's loops makes no progress: nothing that it
// does has ended for the limit of the watchdog, or reading the head has
// recorded nothing for as long while another node could be asked. slow is the
// node that it asks in the latter case. The reason is empty when all is well.
func (w *Indexer) stalled() (reason string, slow *chain.Node) {
	limit := w.Watchdog.Limit()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, l := range w.loops {
		if l.task.Idle() >= limit {
			return fmt.Sprintf("%s made no progress for %s", name, limit), nil
		}
	}
	if head := w.loops[loopHead]; head != nil && time.Since(head.advanced) >= limit {
		if slow := w.lastNode; slow != nil && w.Pool.HasHealthyOther(slow) {
			return fmt.Sprintf("%s asked %s for %s and recorded nothing", loopHead, slow, limit), slow
		}
	}
	return "", nil
}

// abandon tells the watchdog that another watcher does the work now, whether
// this one ever returns or not.
func (w *Indexer) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.loops {
		l.task.Replace()
	}
}
