package db

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Call is a submitted value. Its submitter waits for the result.
type Call[V, R any] struct {
	Value  V
	result chan R // has room for the result
}

// Finish passes the result to the submitter. Flush calls it once for each call.
func (c *Call[V, R]) Finish(result R) { c.result <- result }

// Abandon is Finish for a call that may have its result already.
func (c *Call[V, R]) Abandon(result R) {
	select {
	case c.result <- result:
	default:
	}
}

// BatchConfig configures a Batcher. With one lane, Full and Patience are not used; all other fields are required.
type BatchConfig[V, R any] struct {
	// Lanes is the largest number of batches that are flushed at the same time.
	Lanes int
	// Full is how many calls must wait before another lane is used, since few large batches cost less than
	// many small ones.
	Full int
	// Patience is how long the current batch may take before another lane is used for fewer calls.
	Patience time.Duration
	// Take splits the waiting calls, of which there is at least one, into the next batch, which is not
	// empty, and the calls that keep waiting.
	Take func(waiting []*Call[V, R]) (next, rest []*Call[V, R])
	// Flush carries out the calls of a batch and finishes each of them. Its context is the context of the
	// submission that started the lane.
	Flush func(ctx context.Context, batch []*Call[V, R])
}

// Batcher collects calls and flushes them in batches. It is safe for concurrent use.
type Batcher[V, R any] struct {
	cfg BatchConfig[V, R]

	// mu guards the fields below. While calls wait, at least one lane is running.
	mu      sync.Mutex
	waiting []*Call[V, R]
	lanes   []*lane       // that are in use
	timed   bool          // a timer runs that may start another lane
	idle    chan struct{} // closed when no lane is in use any more; nil while no call of Idle waits
}

// lane flushes batches one after another.
type lane struct{ began time.Time } // when it took its current batch

// NewBatcher returns a Batcher.
func NewBatcher[V, R any](cfg BatchConfig[V, R]) *Batcher[V, R] {
	return &Batcher[V, R]{cfg: cfg}
}

// Submit adds a call, and starts a lane if no lane runs, or if one is free and needed. The channel
// receives the result of the call; the caller need not wait for it.
func (b *Batcher[V, R]) Submit(ctx context.Context, value V) <-chan R {
	call := &Call[V, R]{Value: value, result: make(chan R, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, call)
	b.start(ctx)
	return call.result
}

// start starts a lane if calls wait and a lane is free and needed. If it will be needed later, it
// starts a timer. Callers hold mu.
func (b *Batcher[V, R]) start(ctx context.Context) {
	switch {
	case len(b.waiting) == 0 || len(b.lanes) >= b.cfg.Lanes:
	case b.needed(nil):
		l := &lane{time.Now()}
		b.lanes = append(b.lanes, l)
		go b.run(ctx, l)
	case !b.timed:
		b.timed = true
		oldest := slices.MinFunc(b.lanes, func(l, o *lane) int { return l.began.Compare(o.began) })
		time.AfterFunc(b.cfg.Patience-time.Since(oldest.began), func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.timed = false
			b.start(ctx)
		})
	}
}

// Withdraw removes a call that still waits, identified by the channel that Submit returned. If it
// reports true, the call is never flushed; otherwise it was taken, and its result will come.
func (b *Batcher[V, R]) Withdraw(result <-chan R) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.waiting, func(c *Call[V, R]) bool { return c.result == result })
	if i < 0 {
		return false
	}
	b.waiting = slices.Concat(b.waiting[:i], b.waiting[i+1:]) // Take may have returned part of the array
	return true
}

// Waiting returns the number of waiting calls.
func (b *Batcher[V, R]) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Idle returns a channel that is closed when no call waits or is flushed, possibly immediately.
func (b *Batcher[V, R]) Idle() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.idle == nil {
		idle := make(chan struct{})
		if len(b.lanes) == 0 {
			close(idle)
			return idle
		}
		b.idle = idle
	}
	return b.idle
}

// needed reports whether the waiting calls need a lane in addition to the busy ones. Callers hold mu.
func (b *Batcher[V, R]) needed(this *lane) bool {
	others := 0
	for _, l := range b.lanes {
		if l == this {
			continue
		}
		if others++; time.Since(l.began) >= b.cfg.Patience {
			return true
		}
	}
	return others == 0 || len(b.waiting) >= b.cfg.Full
}

// run flushes batch after batch until the lane is not needed.
func (b *Batcher[V, R]) run(ctx context.Context, l *lane) {
	for next := b.take(ctx, l); len(next) > 0; next = b.take(ctx, l) {
		b.cfg.Flush(ctx, next)
	}
}

// take removes the next batch, or frees the lane. Calls that are left to another lane may need it later.
func (b *Batcher[V, R]) take(ctx context.Context, l *lane) (next []*Call[V, R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 || !b.needed(l) {
		b.lanes = slices.DeleteFunc(b.lanes, func(other *lane) bool { return other == l })
		b.start(ctx)
		if len(b.lanes) == 0 && b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
		return nil
	}
	l.began = time.Now()
	next, b.waiting = b.cfg.Take(b.waiting)
	return next
}

// First returns a Take that takes the oldest calls, up to limit.
func First[V, R any](limit int) func(waiting []*Call[V, R]) (next, rest []*Call[V, R]) {
	return func(waiting []*Call[V, R]) (next, rest []*Call[V, R]) {
		n := min(limit, len(waiting))
		return waiting[:n:n], waiting[n:]
	}
}
