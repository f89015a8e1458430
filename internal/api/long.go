package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/ratelimit"
)

// Limits of long requests: those that may take longer than RequestTimeout.
const (
	// MaxWaiting bounds the event streams and the requests with wait that are served at a
	// time.
	MaxWaiting = 500
	// MaxOwnWaiting bounds those of one owner of keys.
	MaxOwnWaiting = 100
	// keyCheckInterval is how often the key of a stream or an export is checked.
	keyCheckInterval = 500 * time.Millisecond
)

// IsLong reports whether a request may take longer than RequestTimeout. The API bounds
// how many such requests it serves, so they do not count as requests in flight.
func (r Route) IsLong(request *http.Request) bool { return r.long != nil && r.long(request) }

// slots bounds how many requests of a kind are served at a time.
//
// Invariant: used has the number of requests of each owner with at least one, and their
// sum is total.
type slots struct {
	name             string
	mostOwn, mostAll int
	refused          func(limit string) // called with name, or "all_" and name

	mu    sync.Mutex
	used  map[string]int
	total int
}

func newSlots(name string, mostOwn, mostAll int, refused func(limit string)) *slots {
	return &slots{name: name, mostOwn: mostOwn, mostAll: mostAll, refused: refused, used: make(map[string]int)}
}

// enter takes a slot for the owner of the context's key, and returns a function that
// frees it. Errors are *ratelimit.ExceededError and ratelimit.ErrBusy.
func (s *slots) enter(ctx context.Context) (leave func(), err error) {
	return s.enterAs(access.FromContext(ctx).MerchantID)
}

// enterAs is enter for an owner.
func (s *slots) enterAs(owner string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.used[owner] >= s.mostOwn:
		s.refused(s.name)
		return nil, &ratelimit.ExceededError{Limit: s.name, RetryAfter: strconv.Itoa(retryLong)}
	case s.total >= s.mostAll:
		s.refused("all_" + s.name)
		return nil, ratelimit.ErrBusy
	}
	s.used[owner]++
	s.total++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.used[owner]--; s.used[owner] == 0 {
			delete(s.used, owner)
		}
		s.total--
	}, nil
}

// retryLong is the Retry-After of an owner beyond its slots, in seconds.
const retryLong = 5
