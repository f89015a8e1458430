package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
)

// Limits of a feed.
const (
	// MaxEvents bounds the newest events that a feed keeps, and the newest entries of the audit log.
	MaxEvents = 4096
	// MaxBytes bounds the size of the events' bodies.
	MaxBytes = 8 << 20
	// MaxNext bounds the bodies that Next returns, unless one event is larger. So a reader that is slow to pass them on
	// does not keep more in memory.
	MaxNext = 64 << 10
	// pollInterval is how often the logs are read for records of other processes.
	pollInterval = 500 * time.Millisecond
	// batchDelay is how long the reader waits after a read, so that a burst of commits takes one read.
	batchDelay = 20 * time.Millisecond
	// readBatch bounds the rows of one read.
	readBatch = 256
	// changeSize is how much an entry of the audit log counts for MaxNext, because the reader may send an event for
	// each.
	changeSize = 1 << 10
)

// ErrBehind means that a position is older than everything the feed keeps.
var ErrBehind = errors.New("the position is behind the feed")

// FeedLog is the log of events and the audit log, each in the order of its numbers. Reader and access.Reader document
// the methods.
type FeedLog interface {
	Events(ctx context.Context, f EventFilter) ([]EventRow, error)
	LastSeq(ctx context.Context) (int64, error)
	Changes(ctx context.Context, after int64, limit int) ([]access.ChangeRow, error)
	AuditHead(ctx context.Context) (access.Head, error)
}

// Position is a place in both logs.
type Position struct {
	Event  int64 // number of an event
	Change int64 // number of an entry of the audit log
}

// News is what was recorded after a position and up to Through.
type News struct {
	Events  []EventRow
	Changes []access.ChangeRow
	Through Position
}

// IsAbout reports whether one of the events is about an invoice.
func (n News) IsAbout(invoiceID string) bool {
	return slices.ContainsFunc(n.Events, func(e EventRow) bool { return e.InvoiceID == invoiceID })
}

// FeedConfig is the configuration of a Feed. All fields are required.
type FeedConfig struct {
	Log      FeedLog
	Watchdog *clock.Watchdog
	Logger   *slog.Logger
}

// Feed keeps the newest rows of both logs in memory. It is safe for concurrent use.
type Feed struct {
	cfg  FeedConfig
	wake chan struct{}

	mu      sync.Mutex
	waiting int       // calls of Next and Head
	missed  bool      // Wake was called while no request waited
	polled  time.Time // start of the last read
	known   bool      // the tails were read
	events  tail[EventRow]
	changes tail[access.ChangeRow]
	changed chan struct{} // closed and replaced when the tails change
}

// NewFeed returns a feed. It panics if a field is missing.
func NewFeed(cfg FeedConfig) *Feed {
	if cfg.Log == nil || cfg.Watchdog == nil || cfg.Logger == nil {
		panic("webhooks: all fields of Config are required")
	}
	return &Feed{
		cfg: cfg, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		events: tail[EventRow]{
			number: func(e EventRow) int64 { return e.Seq }, size: func(e EventRow) int { return len(e.Body) },
		},
		changes: tail[access.ChangeRow]{
			number: func(c access.ChangeRow) int64 { return c.Seq }, size: func(access.ChangeRow) int { return changeSize },
		},
	}
}

// Wake makes the feed read the logs soon, if a request waits.
func (f *Feed) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missed = f.waiting == 0; !f.missed {
		clock.Wake(f.wake)
	}
}

// Run reads the logs until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	task := f.cfg.Watchdog.Begin("event feed")
	defer task.End()
	for clock.Sleep(ctx, pollInterval, f.wake) {
		task.Progress()
		if !f.begin() {
			continue
		}
		if err := f.read(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Logger.Error("read of new events failed, will retry", "err", err)
		}
		clock.Sleep(ctx, batchDelay, nil)
	}
}

// begin reports whether a request waits, and records that a read begins.
func (f *Feed) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 {
		return false
	}
	f.missed, f.polled = false, time.Now()
	return true
}

// read adds what was recorded since the last read.
func (f *Feed) read(ctx context.Context) error {
	event, err := f.cfg.Log.LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("find the newest event: %w", err)
	}
	change, err := f.cfg.Log.AuditHead(ctx)
	if err != nil {
		return fmt.Errorf("find the newest change: %w", err)
	}
	f.mu.Lock()
	known := f.known
	f.mu.Unlock()
	if !known {
		f.update(func() {
			f.known = true
			f.events.reset(event)
			f.changes.reset(change.Seq)
		})
		f.announce()
		return nil
	}
	if f.events.head == event && f.changes.head == change.Seq {
		return nil
	}
	defer f.announce() // once for everything that a transaction wrote to both logs
	return errors.Join(
		catchUp(f, &f.events, event, func(after int64) ([]EventRow, error) {
			return f.cfg.Log.Events(ctx, EventFilter{After: &after, Limit: readBatch})
		}),
		catchUp(f, &f.changes, change.Seq, func(after int64) ([]access.ChangeRow, error) {
			return f.cfg.Log.Changes(ctx, after, readBatch)
		}),
	)
}

// catchUp adds the rows of a log up to a number to its tail, which only Run changes. It announces all batches except
// the last.
func catchUp[T any](f *Feed, t *tail[T], last int64, list func(after int64) ([]T, error)) error {
	head := t.head
	if last < head || last-head > MaxEvents {
		f.update(func() { t.reset(last) })
		return nil
	}
	for head < last {
		rows, err := list(head)
		if err != nil {
			return fmt.Errorf("list new rows: %w", err)
		}
		if len(rows) == 0 { // they were removed
			f.update(func() { t.reset(last) })
			return nil
		}
		head = t.number(rows[len(rows)-1])
		f.update(func() { t.add(rows) })
		if head < last {
			f.announce()
		}
	}
	return nil
}

// update changes the tails.
func (f *Feed) update(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// announce wakes the calls that wait for a change of the tails.
func (f *Feed) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Head returns a position: everything that commits after the call is behind it.
func (f *Feed) Head(ctx context.Context) (Position, error) {
	var head Position
	err := f.await(ctx, func() bool {
		head = Position{f.events.head, f.changes.head}
		return true
	})
	return head, err
}

// Next waits for records after a position, and returns them up to news.Through, in order. If the feed no longer keeps
// them, it returns ErrBehind; the logs have everything up to Through.
func (f *Feed) Next(ctx context.Context, after Position) (news News, err error) {
	behind := false
	err = f.await(ctx, func() bool {
		var missing [2]bool
		news.Events, news.Through.Event, missing[0] = f.events.next(after.Event)
		news.Changes, news.Through.Change, missing[1] = f.changes.next(after.Change)
		behind = missing[0] || missing[1]
		return behind || news.Through != after
	})
	if err != nil || !behind {
		return news, err
	}
	return News{Through: news.Through}, ErrBehind
}

// NextMatching waits for matching news after a position, up to a time, and returns the position that it has reached. It
// returns immediately if the feed does not keep the position.
func (f *Feed) NextMatching(ctx context.Context, after Position, atMost time.Duration, match func(News) bool) (Position, error) {
	bounded, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		news, err := f.Next(bounded, after)
		switch {
		case bounded.Err() != nil:
			return after, ctx.Err()
		case errors.Is(err, ErrBehind):
			return news.Through, nil
		case err != nil:
			return after, err
		}
		after = news.Through
		if match(news) {
			return after, nil
		}
	}
}

// await calls ready with mu held, immediately and after each change, until it returns true. It returns the error of ctx
// if ctx ends first.
func (f *Feed) await(ctx context.Context, ready func() bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	defer func() { f.waiting-- }()
	if f.missed || time.Since(f.polled) > pollInterval {
		clock.Wake(f.wake)
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

// tail is the newest rows of a log.
//
// Invariant: rows holds all rows with a number above base and up to head, in order, and
// bytes is the sum of their sizes.
type tail[T any] struct {
	number func(T) int64
	size   func(T) int

	base, head int64
	rows       []T
	bytes      int
}

// reset drops all rows, and continues after a number.
func (t *tail[T]) reset(head int64) {
	t.base, t.head, t.rows, t.bytes = head, head, nil, 0
}

// add adds the rows after head, and drops the oldest beyond the limits.
func (t *tail[T]) add(rows []T) {
	for _, row := range rows {
		t.bytes += t.size(row)
	}
	all := append(t.rows, rows...) //nolint:gocritic // t.rows is replaced below
	for len(all) > MaxEvents || t.bytes > MaxBytes && len(all) > 0 {
		t.base, t.bytes = t.number(all[0]), t.bytes-t.size(all[0])
		var none T
		all[0] = none
		all = all[1:]
	}
	t.rows, t.head = all, t.number(rows[len(rows)-1])
}

// next returns the first rows after a position, up to MaxNext bytes or one row, and the position after them. behind is
// true if the tail does not hold all rows after the position; the log has them up to through.
func (t *tail[T]) next(after int64) (rows []T, through int64, behind bool) {
	if after < t.base {
		return nil, t.head, true
	}
	first := sort.Search(len(t.rows), func(i int) bool { return t.number(t.rows[i]) > after })
	rest := t.rows[first:]
	if n := FirstUpTo(MaxNext, rest, t.size); n < len(rest) {
		return append(rows, rest[:n]...), t.number(rest[n-1]), false
	}
	return append(rows, rest...), max(after, t.head), false
}

// FirstUpTo returns how many of the first rows have a number of bytes together, or 1 if the first row has more.
func FirstUpTo[T any](bytes int, rows []T, size func(T) int) int {
	for i, row := range rows {
		if bytes -= size(row); bytes < 0 && i > 0 {
			return i
		}
	}
	return len(rows)
}
