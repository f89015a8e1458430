package access

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of the log.
const (
	// Interval is how often requests are written.
	Interval = 2 * time.Second
	// MaxBatch bounds the requests that are written at a time.
	MaxBatch = 500
	// MaxPending bounds the requests of an owner of keys that wait to be written. The oldest are dropped,
	// successful ones first.
	MaxPending = 100
	// MaxOwners bounds the owners of keys with requests that wait to be written.
	MaxOwners = 1000
	// MaxWaiting bounds the requests of all owners of keys that wait to be written.
	MaxWaiting = 10_000
	// MaxKept is how many requests of an owner of keys are kept. Up to MaxUncounted more are kept until
	// they are counted again.
	MaxKept      = 1000
	MaxUncounted = 200
	// Lifetime is how long requests are kept.
	Lifetime = 7 * 24 * time.Hour
	// writeTimeout bounds a write of a batch.
	writeTimeout = 5 * time.Second
	// cleanBatch bounds the requests that one transaction deletes, and cleanBatches the transactions of a call.
	cleanBatch, cleanBatches = 500, 200
)

// Limits of an entry's texts, in characters.
const (
	maxPath   = 200
	maxDetail = 500
)

// Prefix begins the ids of entries.
const Prefix = "log_"

// LoggedRequest is a request that ended. It has no part of the query, the headers and the bodies.
type LoggedRequest struct {
	ID         string
	MerchantID string // owner of the key; empty for the operator
	KeyID      string // empty without a key, at a development service
	At         time.Time
	Method     string
	Route      string // path with names of variables
	Path       string
	Status     int
	Code       string // of the problem; empty without one
	Detail     string
	Duration   time.Duration
	Client     string // address
	RequestID  string
	// Idempotent is whether there was an Idempotency-Key. It is nil for requests that take no such key.
	Idempotent *bool
}

// RequestLogStore stores requests. Tables implement it.
type RequestLogStore interface {
	InsertRequests(ctx context.Context, entries []LoggedRequest) error
	// TrimRequests deletes requests of an owner of keys, up to limit, and keeps the newest.
	TrimRequests(ctx context.Context, merchantID string, keep, limit int) error
	// CleanRequests deletes up to limit requests with lower ids, and returns their number.
	CleanRequests(ctx context.Context, below string, limit int) (int64, error)
}

// RequestLogConfig is the configuration of a Log. All fields but Dropped are required.
type RequestLogConfig struct {
	Store   RequestLogStore
	IDs     *invoice.IDs
	Now     func() time.Time
	Dropped func(n int) // called with the number of dropped requests
	Logger  *slog.Logger
}

// Log is the log of one process. It is safe for concurrent use.
type Log struct {
	cfg       RequestLogConfig
	uncounted map[string]int // requests written since an owner's were counted; only for the worker

	mu      sync.Mutex
	pending map[string][]LoggedRequest // by owner, oldest first: at most MaxOwners of at most MaxPending
	waiting int                        // number of entries in pending: at most MaxWaiting
}

// NewRequestLog returns a Log. It panics if a required field is missing.
func NewRequestLog(c RequestLogConfig) *Log {
	if c.Store == nil || c.IDs == nil || c.Now == nil || c.Logger == nil {
		panic("access: Store, IDs, Now and Logger are required")
	}
	if c.Dropped == nil {
		c.Dropped = func(int) {}
	}
	return &Log{cfg: c, pending: make(map[string][]LoggedRequest), uncounted: make(map[string]int)}
}

// Add adds a request that has just ended, and gives it an ID. It waits only for other calls of Add.
func (l *Log) Add(e LoggedRequest) {
	e.ID = l.cfg.IDs.New(Prefix)
	e.Path, e.Detail = clean(e.Path, maxPath), clean(e.Detail, maxDetail)
	l.mu.Lock()
	defer l.mu.Unlock()
	own, known := l.pending[e.MerchantID]
	switch {
	case len(own) == MaxPending:
		oldest := max(0, slices.IndexFunc(own, func(e LoggedRequest) bool { return e.Status < http.StatusBadRequest }))
		own = slices.Delete(own, oldest, oldest+1)
		l.waiting--
		l.cfg.Dropped(1)
	case !known && len(l.pending) == MaxOwners, l.waiting == MaxWaiting:
		l.cfg.Dropped(1)
		return
	}
	l.pending[e.MerchantID] = append(own, e)
	l.waiting++
}

// clean returns a text that every database takes, without keys, cut to a number of characters.
func clean(text string, most int) string {
	text = Redact(strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�"))
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}

// take removes the requests of a batch, owner by owner. The order of owners is random, so that no owner waits forever.
func (l *Log) take() []LoggedRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	var batch []LoggedRequest
	for owner, own := range l.pending {
		n := min(len(own), MaxBatch-len(batch))
		batch = append(batch, own[:n]...)
		if n == len(own) {
			delete(l.pending, owner)
		} else {
			l.pending[owner] = slices.Delete(own, 0, n)
		}
		if len(batch) == MaxBatch {
			break
		}
	}
	l.waiting -= len(batch)
	return batch
}

// Run writes requests until ctx ends, and then the waiting ones, unless a write fails. It finishes a write in progress.
func (l *Log) Run(ctx context.Context) {
	unstopped := context.WithoutCancel(ctx)
	for clock.Sleep(ctx, Interval, nil) {
		l.Flush(unstopped)
	}
	last, cancel := context.WithTimeout(unstopped, writeTimeout)
	defer cancel()
	for range MaxWaiting / MaxBatch {
		if !l.Flush(last) {
			return
		}
	}
}

// Flush writes a batch of the waiting requests, and reports whether it was full, so that more may
// wait. Requests that cannot be written are dropped. It must not be called concurrently.
func (l *Log) Flush(ctx context.Context) (full bool) {
	batch := l.take()
	if len(batch) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := l.cfg.Store.InsertRequests(ctx, batch); err != nil {
		l.cfg.Dropped(len(batch))
		l.cfg.Logger.WarnContext(ctx, "write of the log of requests failed", "err", err)
		return false
	}
	for _, e := range batch {
		l.uncounted[e.MerchantID]++
	}
	for owner, n := range l.uncounted {
		if n < MaxUncounted && len(l.uncounted) <= MaxOwners {
			continue
		}
		if err := l.cfg.Store.TrimRequests(ctx, owner, MaxKept, n+MaxUncounted); err != nil {
			l.cfg.Logger.WarnContext(ctx, "delete of old requests failed, will retry", "err", err)
			break
		}
		delete(l.uncounted, owner)
	}
	return len(batch) == MaxBatch
}

// Clean deletes requests that are older than Lifetime at a time, which must not jump forward.
func (l *Log) Clean(ctx context.Context, now time.Time) error {
	below := invoice.FirstID(Prefix, now.Add(-Lifetime))
	for range cleanBatches {
		n, err := l.cfg.Store.CleanRequests(ctx, below, cleanBatch)
		if err != nil || n < cleanBatch {
			return err
		}
	}
	return nil
}
