package indexer

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
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
