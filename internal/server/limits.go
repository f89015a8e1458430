package server

import (
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clientip"
	"github.com/quittance/quittance/internal/ratelimit"
)

// Limits of requests. docs/operations.md has them as a table.
const (
	// keyWindow and addressWindow are for how long the quotas of a key and of a client
	// address last at their rates.
	keyWindow, addressWindow = 2 * time.Second, 10 * time.Second
	// maxGuesses is how often wrong keys may come from a client address at once, and
	// guessWindow how long that quota takes to come back.
	maxGuesses, guessWindow = 20, 20 * time.Second
	// maxBuckets is how many clients of each kind are remembered.
	maxBuckets = 50_000
)

// limits are the limits of requests.
type limits struct {
	keys      *ratelimit.Buckets[string]       // by key id; nil if they are not limited
	addresses *ratelimit.Buckets[netip.Prefix] // of clients at the public door; likewise
	guesses   *ratelimit.Buckets[netip.Prefix] // of clients with wrong keys
	inFlight  map[Door]*atomic.Int64
	// proxied is set if proxies report the clients' addresses. Otherwise the clients of
	// a loopback or private address may be many, and are not limited by it.
	proxied bool
	metrics *metrics
}

func newLimits(cfg Config, m *metrics) *limits {
	l := &limits{
		guesses:  ratelimit.NewBuckets[netip.Prefix](ratelimit.Limit{Name: "authentication", Quota: maxGuesses, Window: guessWindow}, maxBuckets, cfg.Now),
		inFlight: make(map[Door]*atomic.Int64), proxied: len(cfg.Proxies.Trusted) > 0, metrics: m,
	}
	if cfg.PerKey > 0 {
		l.keys = ratelimit.NewBuckets[string](ratelimit.PerSecond("key", cfg.PerKey, keyWindow), maxBuckets, cfg.Now)
	}
	if cfg.PerAddress > 0 {
		l.addresses = ratelimit.NewBuckets[netip.Prefix](ratelimit.PerSecond("address", cfg.PerAddress, addressWindow), maxBuckets, cfg.Now)
	}
	for _, door := range Doors {
		l.inFlight[door] = new(atomic.Int64)
	}
	return l
}

// perKey returns a handler that limits the requests of the principal's key. Requests
// without a key, which development services accept, are not limited.
func (l *limits) perKey(writeError errorWriter, next http.Handler) http.Handler {
	if l.keys == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := access.FromContext(r.Context()).KeyID; id != "" {
			result := l.keys.Take(id)
			if !l.allow(w, r, writeError, l.keys.Limit(), result) {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// perAddress returns a handler that limits the requests of a client address.
func (l *limits) perAddress(writeError errorWriter, next http.Handler) http.Handler {
	if l.addresses == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := clientip.FromContext(r.Context()); l.proxied || !clientip.IsShared(client) {
			result := l.addresses.Take(clientip.Network(client))
			if !l.allow(w, r, writeError, l.addresses.Limit(), result) {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// allow sets the headers of a limit, and answers a request beyond it. It reports whether
// the request is within the limit.
func (l *limits) allow(w http.ResponseWriter, r *http.Request, writeError errorWriter, limit ratelimit.Limit, result ratelimit.Result) bool {
	w.Header().Set("RateLimit-Policy", limit.Policy())
	w.Header().Set("RateLimit", result.Header())
	err := result.Err()
	if err != nil {
		l.metrics.refused.WithLabelValues(limit.Name).Inc()
		writeError(w, r, err)
	}
	return err == nil
}
