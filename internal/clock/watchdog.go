package clock

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Limit is how long work may go without progress.
const Limit = time.Minute

// Watchdog watches tasks. It is safe for concurrent use.
//
// Invariant: tasks holds the tasks that have begun and not ended.
type Watchdog struct {
	limit time.Duration

	mu    sync.Mutex
	tasks map[*Task]struct{}
}

// New returns a watchdog with the limit; 0 means Limit.
func New(limit time.Duration) *Watchdog {
	return &Watchdog{limit: cmp.Or(limit, Limit), tasks: make(map[*Task]struct{})}
}

// Limit returns how long work may go without progress.
func (w *Watchdog) Limit() time.Duration { return w.limit }

// Task is a piece of work that is watched.
type Task struct {
	watchdog *Watchdog
	name     string

	// The fields below are guarded by watchdog.mu.
	since    time.Time // of its last progress
	logged   bool      // its current stall was logged
	replaced bool      // another task does the work
}

// Begin starts to watch a piece of work. The set of names must be bounded, because
// they are metric labels.
func (w *Watchdog) Begin(name string) *Task {
	t := &Task{watchdog: w, name: name, since: time.Now()}
	w.mu.Lock()
	w.tasks[t] = struct{}{}
	w.mu.Unlock()
	return t
}

// Progress records progress of the work.
func (t *Task) Progress() {
	t.watchdog.mu.Lock()
	t.since = time.Now()
	t.watchdog.mu.Unlock()
}

// Replace records that another task does the work now. The replaced task is reported
// as stalled until it ends.
func (t *Task) Replace() {
	t.watchdog.mu.Lock()
	t.replaced = true
	t.watchdog.mu.Unlock()
}

// Idle returns the time since the last progress.
func (t *Task) Idle() time.Duration {
	t.watchdog.mu.Lock()
	defer t.watchdog.mu.Unlock()
	return time.Since(t.since)
}

// End stops watching the work.
func (t *Task) End() {
	t.watchdog.mu.Lock()
	delete(t.watchdog.tasks, t)
	t.watchdog.mu.Unlock()
}

// Stall describes a task without progress.
type Stall struct {
	Name     string
	For      time.Duration // since its last progress
	Replaced bool          // another task does the work
}

// Stalled returns the stalls, the longest first.
func (w *Watchdog) Stalled() []Stall {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Stall
	for t := range w.tasks {
		if d := time.Since(t.since); d >= w.limit {
			all = append(all, Stall{t.name, d, t.replaced})
		}
	}
	slices.SortFunc(all, func(a, b Stall) int { return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Name, b.Name)) })
	return all
}

// Run logs each stall once, until ctx ends.
func (w *Watchdog) Run(ctx context.Context, logger *slog.Logger) {
	for {
		for _, s := range w.newStalls() {
			logger.ErrorContext(ctx, "work makes no progress", "work", s.Name, "for", s.For.Round(time.Second))
		}
		if !Sleep(ctx, max(w.limit/10, time.Millisecond), nil) {
			return
		}
	}
}

// newStalls returns the stalls that began since the last call.
func (w *Watchdog) newStalls() (all []Stall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.tasks {
		d := time.Since(t.since)
		if d >= w.limit && !t.logged {
			all = append(all, Stall{t.name, d, t.replaced})
		}
		t.logged = d >= w.limit
	}
	return all
}
