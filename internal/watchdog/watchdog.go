// Package watchdog notices work that makes no progress, whatever the cause: a
// call that ignores its context, a lock that nobody releases, a peer that
// never answers.
package watchdog

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

// Watchdog knows what work is under way. It is safe for concurrent use. The
// invariant of its lock: under holds exactly the tasks that have begun and not
// ended.
type Watchdog struct {
	limit time.Duration

	mu    sync.Mutex
	under map[*Task]struct{}
}

// New returns a watchdog with the limit. 0 is Limit.
func New(limit time.Duration) *Watchdog {
	return &Watchdog{limit: cmp.Or(limit, Limit), under: make(map[*Task]struct{})}
}

// Limit returns how long work may go without progress.
func (w *Watchdog) Limit() time.Duration { return w.limit }

// Task is a piece of work under way.
type Task struct {
	dog   *Watchdog
	name  string
	since time.Time // of its last progress; guarded by dog.mu
	told  bool      // that it is stalled, to the log; guarded by dog.mu
	// replaced is set when something else does the work; guarded by dog.mu.
	replaced bool
}

// Begin begins to watch a piece of work. Its name is a constant of the program,
// or a chain's key beside one.
func (w *Watchdog) Begin(name string) *Task {
	t := &Task{dog: w, name: name, since: time.Now()}
	w.mu.Lock()
	w.under[t] = struct{}{}
	w.mu.Unlock()
	return t
}

// Progress notes that the work goes on.
func (t *Task) Progress() {
	t.dog.mu.Lock()
	t.since = time.Now()
	t.dog.mu.Unlock()
}

// Replace notes that something else does the work now, so that nothing waits
// for the task. It is still shown until it ends.
func (t *Task) Replace() {
	t.dog.mu.Lock()
	t.replaced = true
	t.dog.mu.Unlock()
}

// Idle returns for how long the work has made no progress.
func (t *Task) Idle() time.Duration {
	t.dog.mu.Lock()
	defer t.dog.mu.Unlock()
	return time.Since(t.since)
}

// End notes that the work is over.
func (t *Task) End() {
	t.dog.mu.Lock()
	delete(t.dog.under, t)
	t.dog.mu.Unlock()
}

// Stall is a piece of work that makes no progress.
type Stall struct {
	Name string
	For  time.Duration // since its last progress
	// Replaced is set when something else does the work, as Replace says.
	Replaced bool
}

// Stalled returns what makes no progress, the longest first.
func (w *Watchdog) Stalled() []Stall {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Stall
	for t := range w.under {
		if d := time.Since(t.since); d >= w.limit {
			all = append(all, Stall{t.name, d, t.replaced})
		}
	}
	slices.SortFunc(all, func(a, b Stall) int { return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Name, b.Name)) })
	return all
}

// Run logs what makes no progress, each once until it does again, until the
// context ends.
func (w *Watchdog) Run(ctx context.Context, logger *slog.Logger) {
	ticker := time.NewTicker(max(w.limit/10, time.Millisecond))
	defer ticker.Stop()
	for {
		for _, s := range w.news() {
			logger.ErrorContext(ctx, "work makes no progress", "work", s.Name, "for", s.For.Round(time.Second))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// news returns what stalled since it was called last.
func (w *Watchdog) news() (all []Stall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.under {
		d := time.Since(t.since)
		if d >= w.limit && !t.told {
			all = append(all, Stall{t.name, d, t.replaced})
		}
		t.told = d >= w.limit
	}
	return all
}
