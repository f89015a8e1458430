package server

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/quittance/quittance/internal/limits"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of requests. docs/operations.md has them as a table.
const (
	// ownerWindow and addressWindow are how long the quotas of an owner of keys and of a client address
	// last at their rates.
	ownerWindow, addressWindow = 2 * time.Second, 10 * time.Second
	// maxBuckets is how many clients of each kind are tracked.
	maxBuckets = 50_000
)

// owner is the party with a common limit for its requests: a merchant with all its keys, or one key of the operator.
type owner struct{ merchantID, keyID string }

// ownerOf returns the owner of a principal's key.
func ownerOf(p access.Principal) owner {
	if p.MerchantID != "" {
		return owner{merchantID: p.MerchantID}
	}
	return owner{keyID: p.KeyID}
}

// sharer is a client that has a share at a door: an owner of keys, or a network of clients.
type sharer struct {
	owner   owner
	network netip.Prefix
}

// requestLimits are the limits of requests.
type requestLimits struct {
	owners    *limits.Buckets[owner] // nil if they are not limited
	addresses limits.NetworkBuckets  // of clients without a key; nil if they are not limited
	guesses   *guesses
	inFlight  map[webpage.Door]*limits.Shares[sharer] // requests
	bodies    map[webpage.Door]*limits.Shares[sharer] // bytes
	// proxied is set if proxies report the clients' addresses. Otherwise many clients may share a loopback or
	// private address, so it is not limited.
	proxied bool
	metrics *metrics
}

func newLimits(cfg Config, m *metrics) *requestLimits {
	proxied := len(cfg.Proxies.Trusted) > 0
	l := &requestLimits{
		guesses: newGuesses(proxied, cfg.Now), proxied: proxied, metrics: m,
		inFlight: make(map[webpage.Door]*limits.Shares[sharer]), bodies: make(map[webpage.Door]*limits.Shares[sharer]),
	}
	if cfg.PerOwner > 0 {
		l.owners = limits.NewBuckets[owner](limits.PerSecond("owner", cfg.PerOwner, ownerWindow), maxBuckets, cfg.Now)
	}
	if cfg.PerAddress > 0 {
		l.addresses = limits.NewNetworkBuckets(limits.PerSecond("address", cfg.PerAddress, addressWindow), maxBuckets, cfg.Now)
	}
	for _, door := range webpage.Doors {
		l.inFlight[door] = limits.NewShares[sharer]("in_flight", maxInFlight[door])
		l.bodies[door] = limits.NewShares[sharer]("bodies", maxBodyBytes[door])
	}
	return l
}

// perOwner returns a handler that limits the requests of the owner of the principal's key.
// Requests without a key, which development services accept, are not limited.
func (l *requestLimits) perOwner(writeError errorWriter, next http.Handler) http.Handler {
	if l.owners == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := access.FromContext(r.Context()); p.KeyID != "" {
			result := l.owners.Take(ownerOf(p))
			if !l.allow(w, r, writeError, l.owners.Limit(), result) {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isLimited reports whether a client address belongs to one client, or to few.
func (l *requestLimits) isLimited(client netip.Addr) bool { return !limits.IsShared(client, l.proxied) }

// networks returns the clients that a client address counts for at a door: the client's network, and its IPv6 site.
func (l *requestLimits) networks(client netip.Addr) []limits.Claim[sharer] {
	if !l.isLimited(client) {
		return nil
	}
	claims := []limits.Claim[sharer]{{Client: sharer{network: limits.Network(client)}, Weight: 1}}
	if client.Is6() {
		claims = append(claims, limits.Claim[sharer]{Client: sharer{network: limits.Site(client)}, Weight: limits.SiteWeight})
	}
	return claims
}

// perAddress returns a handler that limits the requests of a client address.
func (l *requestLimits) perAddress(writeError errorWriter, next http.Handler) http.Handler {
	if l.addresses == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := limits.FromContext(r.Context()); l.isLimited(client) {
			if !l.allow(w, r, writeError, l.addresses[1].Limit(), l.addresses.TakeOf(client)) {
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// unless returns a handler that limits the requests of a client address without a credential. next refuses them.
func (l *requestLimits) unless(presents func(*http.Request) bool, writeError errorWriter, next http.Handler) http.Handler {
	return choose(presents, next, l.perAddress(writeError, next))
}

// hasKey reports whether a request has a key, right or wrong.
func hasKey(r *http.Request) bool { return r.Header.Get("Authorization") != "" }

// choose returns a handler that passes each request on to yes or no.
func choose(is func(*http.Request) bool, yes, no http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is(r) {
			yes.ServeHTTP(w, r)
			return
		}
		no.ServeHTTP(w, r)
	})
}

// allow sets the headers of a limit, and answers a request beyond it. It reports whether
// the request is within the limit.
func (l *requestLimits) allow(w http.ResponseWriter, r *http.Request, writeError errorWriter, limit limits.Limit, result limits.Result) bool {
	w.Header().Set("RateLimit-Policy", limit.Policy())
	w.Header().Set("RateLimit", result.Header())
	err := result.Err()
	if err != nil {
		l.metrics.refused.WithLabelValues(limit.Name).Inc()
		writeError(w, r, err)
	}
	return err == nil
}

// newBudget divides the process's file descriptors among its parts.
func (s *Server) newBudget() (limits.Budget, error) {
	limit := s.cfg.OpenFiles
	if limit == 0 {
		var err error
		if limit, err = limits.DescriptorLimit(); err != nil {
			return limits.Budget{}, err
		}
	}
	nodes := 0
	for _, c := range s.cfg.Chains {
		nodes += len(c.RPC)
	}
	return limits.NewDescriptors(limit, nodes)
}
