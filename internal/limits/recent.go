package limits

import (
	"sync"
	"time"
)

// recent holds a time for each key in bounded memory.
//
// Invariant: each map has at most half of the keys. When the younger one is full, the older one is
// dropped.
type recent[K comparable] struct {
	half           int
	younger, older map[K]time.Time
}

func newRecent[K comparable](maxKeys int) recent[K] {
	return recent[K]{half: max(1, maxKeys/2), younger: make(map[K]time.Time)}
}

// get returns the time of a key, and whether it has one.
func (r *recent[K]) get(key K) (time.Time, bool) {
	at, ok := r.younger[key]
	if !ok {
		at, ok = r.older[key]
	}
	return at, ok
}

// set stores the time of a key.
func (r *recent[K]) set(key K, at time.Time) {
	if _, ok := r.younger[key]; !ok && len(r.younger) >= r.half {
		r.older, r.younger = r.younger, make(map[K]time.Time)
	}
	r.younger[key] = at
}

// Greylist distinguishes clients that come back from clients that do not. It is safe for concurrent
// use.
type Greylist[K comparable] struct {
	pause time.Duration
	now   func() time.Time

	mu    sync.Mutex
	first recent[K] // when a key first came
}

// NewGreylist returns a greylist of at most maxKeys keys, which drops the oldest first.
func NewGreylist[K comparable](pause time.Duration, maxKeys int, now func() time.Time) *Greylist[K] {
	return &Greylist[K]{pause: pause, now: now, first: newRecent[K](maxKeys)}
}

// CameBack reports whether the key came before, at least the pause ago, and records that it came.
func (g *Greylist[K]) CameBack(key K) bool {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	first, ok := g.first.get(key)
	if !ok || now.Before(first) {
		g.first.set(key, now)
		return false
	}
	return now.Sub(first) >= g.pause
}
