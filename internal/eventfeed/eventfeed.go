// Package eventfeed hands new events to requests that wait for them. However many wait,
// one reader per process reads the log of events, and only while a request waits.
package eventfeed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wait"
	"github.com/quittance/quittance/internal/watchdog"
)

// Limits of a feed.
const (
	// MaxEvents bounds the newest events that a feed keeps.
	MaxEvents = 4096
	// MaxBytes bounds the size of their bodies.
	MaxBytes = 8 << 20
	// pollInterval is how often the log is read for events of other processes.
	pollInterval = 500 * time.Millisecond
	// batchDelay is how long the reader waits after a read, so that a burst of commits
	// takes one read.
	batchDelay = 20 * time.Millisecond
	// readBatch bounds the events of one read.
	readBatch = 256
)

// ErrBehind means that a position is older than the events that the feed keeps.
var ErrBehind = errors.New("the position is behind the feed")

// Log is the log of events in the order of their sequence numbers. *store.Store
// implements it.
type Log interface {
	// Events returns the matching events, in the filter's order.
	Events(ctx context.Context, f store.EventFilter) ([]store.EventRow, error)
	// LastSeq returns the sequence number of the newest event, or 0.
	LastSeq(ctx context.Context) (int64, error)
}

// Config is the configuration of a Feed. All fields are required.
type Config struct {
	Log      Log
	Watchdog *watchdog.Watchdog
	Logger   *slog.Logger
}

// Feed keeps the newest events in memory. It is safe for concurrent use.
//
// Invariant: recent holds all events with a number above base and up to head, in order.
type Feed struct {
	cfg  Config
	wake chan struct{}

	mu         sync.Mutex
	waiting    int       // calls of Next and Head
	missed     bool      // Wake was called while none waited
	polled     time.Time // when the last read began
	known      bool      // base and head were read
	base, head int64
	recent     []store.EventRow
	bytes      int           // of the bodies of recent
	changed    chan struct{} // closed and replaced when the events change
}

// New returns a feed. It panics if a field is missing.
func New(cfg Config) *Feed {
	if cfg.Log == nil || cfg.Watchdog == nil || cfg.Logger == nil {
		panic("eventfeed: all fields of Config are required")
	}
	return &Feed{cfg: cfg, wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Wake makes the feed read the log soon, if a request waits.
func (f *Feed) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missed = f.waiting == 0; !f.missed {
		wait.Wake(f.wake)
	}
}

// Run reads the log until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	task := f.cfg.Watchdog.Begin("event feed")
	defer task.End()
	for wait.Sleep(ctx, pollInterval, f.wake) {
		task.Progress()
		if !f.begin() {
			continue
		}
		if err := f.read(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Logger.Error("read of new events failed, will retry", "err", err)
		}
		wait.Sleep(ctx, batchDelay, nil)
	}
}

// begin reports whether a request waits, and notes that a read begins.
func (f *Feed) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 {
		return false
	}
	f.missed, f.polled = false, time.Now()
	return true
}

// read adds the events that were recorded since the last read.
func (f *Feed) read(ctx context.Context) error {
	last, err := f.cfg.Log.LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("find the newest event: %w", err)
	}
	f.mu.Lock()
	known, head := f.known, f.head
	f.mu.Unlock()
	if !known || last < head || last-head > MaxEvents {
		f.reset(last)
		return nil
	}
	for head < last {
		rows, err := f.cfg.Log.Events(ctx, store.EventFilter{After: &head, Limit: readBatch})
		if err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		if len(rows) == 0 { // they were removed
			f.reset(last)
			return nil
		}
		head = rows[len(rows)-1].Seq
		f.add(rows, head)
	}
	return nil
}

// reset drops all events, and continues behind a number.
func (f *Feed) reset(head int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.base, f.head, f.recent, f.bytes = true, head, head, nil, 0
	f.notify()
}

// add adds the events up to a number, and drops the oldest beyond the limits.
func (f *Feed) add(rows []store.EventRow, head int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range rows {
		f.bytes += len(e.Body)
	}
	all := append(f.recent, rows...) //nolint:gocritic // recent is replaced below
	for len(all) > MaxEvents || f.bytes > MaxBytes && len(all) > 0 {
		f.base, f.bytes = all[0].Seq, f.bytes-len(all[0].Body)
		all[0] = store.EventRow{}
		all = all[1:]
	}
	f.recent, f.head = all, head
	f.notify()
}

// notify wakes the calls that wait. mu must be held.
func (f *Feed) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Head returns a position: every event that commits after the call is behind it.
func (f *Feed) Head(ctx context.Context) (int64, error) {
	var head int64
	err := f.await(ctx, func() bool {
		head = f.head
		return true
	})
	return head, err
}

// Next waits for events behind a position, and returns those up to through, in order. If
// the feed does not keep the events behind the position, it returns ErrBehind, and the
// log has all events up to through.
func (f *Feed) Next(ctx context.Context, after int64) (events []store.EventRow, through int64, err error) {
	behind := false
	err = f.await(ctx, func() bool {
		through, behind = f.head, after < f.base
		if behind || f.head <= after {
			return behind
		}
		first := sort.Search(len(f.recent), func(i int) bool { return f.recent[i].Seq > after })
		events = append(events, f.recent[first:]...)
		return true
	})
	if err == nil && behind {
		err = ErrBehind
	}
	return events, through, err
}

// await calls ready with mu held, at once and after each change, until it returns true.
// It returns the error of ctx if that ends first.
func (f *Feed) await(ctx context.Context, ready func() bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	defer func() { f.waiting-- }()
	if f.missed || time.Since(f.polled) > pollInterval {
		wait.Wake(f.wake)
	}
	for !f.known || !ready() {
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
