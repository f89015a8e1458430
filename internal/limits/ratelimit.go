package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
)

// Limit is a policy: Quota uses in a burst, which refill evenly over Window.
type Limit struct {
	Name   string // in the RateLimit header
	Quota  int
	Window time.Duration // whole seconds
}

// PerSecond returns a limit of rate uses a second, with a burst of the uses of a window.
func PerSecond(name string, rate int, window time.Duration) Limit {
	return Limit{name, rate * int(window/time.Second), window}
}

// interval is how long a used token takes to come back.
func (l Limit) interval() time.Duration { return l.Window / time.Duration(l.Quota) }

// Policy returns the value of RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11).
func (l Limit) Policy() string {
	return fmt.Sprintf("%q;q=%d;w=%d", l.Name, l.Quota, int(l.Window/time.Second))
}

// Result is the state of a bucket after a use.
type Result struct {
	OK        bool
	Remaining int // size of a burst
	limit     Limit
	wait      time.Duration // until the next use is allowed
}

// Header returns the value of RateLimit (draft-ietf-httpapi-ratelimit-headers-11). Its
// window is how long the remaining uses last at the limit's rate, at least until the next
// one is allowed.
func (r Result) Header() string {
	return fmt.Sprintf("%q;r=%d;t=%d", r.limit.Name, r.Remaining, r.seconds())
}

func (r Result) seconds() int {
	window := r.wait
	if r.Remaining > 0 {
		window = time.Duration(r.Remaining) * r.limit.interval()
	}
	return max(1, int(math.Ceil(window.Seconds())))
}

// Err returns nil if the use is allowed, and else an *ExceededError.
func (r Result) Err() error {
	if r.OK {
		return nil
	}
	return &ExceededError{Limit: r.limit.Name, RetryAfter: strconv.Itoa(r.seconds())}
}

// ExceededError is the error of a use beyond a limit.
type ExceededError struct {
	Limit      string
	RetryAfter string // value of the header: seconds
}

// Error names the limit.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("limit %s exceeded, retry after %s s", e.Limit, e.RetryAfter)
}

// ErrBusy is the error of a request beyond the number that is served at a time.
var ErrBusy = errors.New("too many requests in flight")

// Buckets holds a bucket for each key. It is safe for concurrent use.
//
// Invariant: full has the time when a key's bucket is full again; a missing key's bucket is full.
type Buckets[K comparable] struct {
	limit Limit
	now   func() time.Time

	mu   sync.Mutex
	full recent[K]
}

// NewBuckets returns buckets of at most maxKeys keys. The key that was used least recently loses its
// bucket first, so its next bucket is full.
func NewBuckets[K comparable](limit Limit, maxKeys int, now func() time.Time) *Buckets[K] {
	return &Buckets[K]{limit: limit, now: now, full: newRecent[K](maxKeys)}
}

// Limit returns the policy of the buckets.
func (b *Buckets[K]) Limit() Limit { return b.limit }

// Take uses a token of the key's bucket, if there is one.
func (b *Buckets[K]) Take(key K) Result { return b.TakeIn(key, b.limit.Window) }

// TakeIn is Take of a bucket that refills in another window than others. A key has always the same window.
func (b *Buckets[K]) TakeIn(key K, window time.Duration) Result {
	now, limit := b.now(), b.in(window)
	interval := limit.interval()
	b.mu.Lock()
	defer b.mu.Unlock()
	debt := b.debt(key, now, window)
	if debt > window-interval {
		return Result{limit: limit, wait: debt - (window - interval)}
	}
	debt += interval
	b.full.set(key, now.Add(debt))
	return Result{OK: true, Remaining: int((window - debt) / interval), limit: limit, wait: interval}
}

// Return returns a token that Take has used.
func (b *Buckets[K]) Return(key K) { b.ReturnIn(key, b.limit.Window) }

// ReturnIn returns a token that TakeIn has used.
func (b *Buckets[K]) ReturnIn(key K, window time.Duration) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if debt := b.debt(key, now, window); debt > 0 {
		b.full.set(key, now.Add(debt-b.in(window).interval()))
	}
}

// in returns the limit with another window.
func (b *Buckets[K]) in(window time.Duration) Limit {
	limit := b.limit
	limit.Window = window
	return limit
}

// debt returns how long it takes until the key's bucket is full. The caller holds mu.
func (b *Buckets[K]) debt(key K, now time.Time, window time.Duration) time.Duration {
	full, _ := b.full.get(key)
	return min(max(full.Sub(now), 0), window) // a clock that was set back must not lock clients out
}
