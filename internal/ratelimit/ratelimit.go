// Package ratelimit limits how often clients do something, by a token bucket for each.
package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
)

// Limit is a policy: Quota uses at once, which come back evenly over Window.
type Limit struct {
	Name   string // in the RateLimit header
	Quota  int
	Window time.Duration // whole seconds
}

// PerSecond returns a limit of rate uses a second, and of the uses of a window at once.
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
	Remaining int // uses that are allowed at once
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
// Invariant: full[key] and older[key] are when the key's bucket is full again; a key that
// is in neither has a full bucket. Each map has at most half of the keys. When the
// younger one is filled, the older one is forgotten.
type Buckets[K comparable] struct {
	limit Limit
	half  int
	now   func() time.Time

	mu          sync.Mutex
	full, older map[K]time.Time
}

// NewBuckets returns buckets of at most maxKeys keys. A key that was not used lately loses
// its bucket first, which gives it a full one.
func NewBuckets[K comparable](limit Limit, maxKeys int, now func() time.Time) *Buckets[K] {
	return &Buckets[K]{limit: limit, half: max(1, maxKeys/2), now: now, full: make(map[K]time.Time)}
}

// Limit returns the policy of the buckets.
func (b *Buckets[K]) Limit() Limit { return b.limit }

// Take uses a token of the key's bucket, if there is one.
func (b *Buckets[K]) Take(key K) Result { return b.use(key, true) }

// Peek returns what Take would, without a use.
func (b *Buckets[K]) Peek(key K) Result { return b.use(key, false) }

func (b *Buckets[K]) use(key K, take bool) Result {
	now, interval := b.now(), b.limit.interval()
	b.mu.Lock()
	defer b.mu.Unlock()
	debt := min(max(b.fullAt(key).Sub(now), 0), b.limit.Window) // a clock that was set back locks nobody out
	if debt > b.limit.Window-interval {
		return Result{limit: b.limit, wait: debt - (b.limit.Window - interval)}
	}
	if take {
		debt += interval
		b.set(key, now.Add(debt))
	}
	return Result{OK: true, Remaining: int((b.limit.Window - debt) / interval), limit: b.limit, wait: interval}
}

// fullAt returns when the key's bucket is full. The caller holds mu.
func (b *Buckets[K]) fullAt(key K) time.Time {
	if at, ok := b.full[key]; ok {
		return at
	}
	return b.older[key]
}

// set stores when the key's bucket is full. The caller holds mu.
func (b *Buckets[K]) set(key K, at time.Time) {
	if _, ok := b.full[key]; !ok && len(b.full) >= b.half {
		b.older, b.full = b.full, make(map[K]time.Time)
	}
	b.full[key] = at
}
