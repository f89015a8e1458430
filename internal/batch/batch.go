// Package batch lets calls that are made at the same time share one
// transaction: a group commit. A batch never waits to fill.
package batch

import (
	"context"
	"slices"
	"sync"
)

// Call is a submitted value whose submitter waits for the result.
type Call[V, R any] struct {
	Value  V
	result chan R // has room for the result
}

// Finish passes the result to the submitter. Flush calls it once for each call.
func (c *Call[V, R]) Finish(result R) { c.result <- result }

// Config configures a Batcher. All fields are required.
type Config[V, R any] struct {
	// Lanes is how many batches are flushed at the same time.
	Lanes int
	// Take splits the waiting calls, at least one, into the next batch, which is
	// not empty, and the calls that go on waiting.
	Take func(waiting []*Call[V, R]) (next, rest []*Call[V, R])
	// Flush carries out the calls of a batch and finishes each of them. Its
	// context is that of the submission that started the lane.
	Flush func(ctx context.Context, batch []*Call[V, R])
}

// Batcher gathers calls and flushes them in batches. It is safe for concurrent
// use.
type Batcher[V, R any] struct {
	cfg Config[V, R]

	// mu guards the fields below. While calls wait, at least one lane is running.
	mu      sync.Mutex
	waiting []*Call[V, R]
	running int           // lanes that are in use
	idle    chan struct{} // closed when no lane is in use any more; nil if nobody asks
}

// New returns a Batcher.
func New[V, R any](cfg Config[V, R]) *Batcher[V, R] {
	return &Batcher[V, R]{cfg: cfg}
}

// Submit adds a call, and starts a lane if one is free. The channel receives the
// result of the call; nobody has to wait for it.
func (b *Batcher[V, R]) Submit(ctx context.Context, value V) <-chan R {
	call := &Call[V, R]{Value: value, result: make(chan R, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, call)
	if b.running < b.cfg.Lanes {
		b.running++
		go b.run(ctx)
	}
	return call.result
}

// Withdraw removes a call that still waits, by the channel that Submit returned. If it reports
// true, the call is never flushed; otherwise it was taken, and its result is to come.
func (b *Batcher[V, R]) Withdraw(result <-chan R) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.waiting, func(c *Call[V, R]) bool { return c.result == result })
	if i < 0 {
		return false
	}
	b.waiting = slices.Concat(b.waiting[:i], b.waiting[i+1:]) // Take may have returned a part of the array
	return true
}

// Idle returns a channel that is closed when no call waits or is flushed, which may be at once.
func (b *Batcher[V, R]) Idle() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.idle == nil {
		idle := make(chan struct{})
		if b.running == 0 {
			close(idle)
			return idle
		}
		b.idle = idle
	}
	return b.idle
}

// run flushes batch after batch until no call waits.
func (b *Batcher[V, R]) run(ctx context.Context) {
	for next := b.take(); len(next) > 0; next = b.take() {
		b.cfg.Flush(ctx, next)
	}
}

// take removes the next batch. Where no call waits it frees the lane.
func (b *Batcher[V, R]) take() (next []*Call[V, R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		if b.running--; b.running == 0 && b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
		return nil
	}
	next, b.waiting = b.cfg.Take(b.waiting)
	return next
}

// First returns a Take that takes the oldest calls, at most limit of them.
func First[V, R any](limit int) func(waiting []*Call[V, R]) (next, rest []*Call[V, R]) {
	return func(waiting []*Call[V, R]) (next, rest []*Call[V, R]) {
		n := min(limit, len(waiting))
		return waiting[:n:n], waiting[n:]
	}
}
