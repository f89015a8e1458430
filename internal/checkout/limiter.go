package checkout

import (
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clientip"
)

// Limits of lookups at the nodes.
const (
	// LookupsOfInvoice bounds the lookups per minute for one invoice.
	LookupsOfInvoice = 15
	// LookupsOfClient bounds those of one client address.
	LookupsOfClient = 30
	// Lookups bounds those of all clients.
	Lookups = 300
	// MaxLookups bounds the lookups in flight.
	MaxLookups = 8
)

// window is the period of a limiter.
const window = time.Minute

// limiter counts uses by key in fixed windows. Invariant: used holds the counts of the
// window that began at since. A key that is part of every use bounds its size.
type limiter struct {
	mu    sync.Mutex
	since time.Time
	used  map[string]int
}

// use is a key with its limit per window.
type use struct {
	key   string
	limit int
}

// allow counts one use of each key and reports true, unless a key is at its limit.
func (l *limiter) allow(now time.Time, uses ...use) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age := now.Sub(l.since); l.used == nil || age >= window || age < 0 {
		l.since, l.used = now, make(map[string]int)
	}
	for _, u := range uses {
		if l.used[u.key] >= u.limit {
			return false
		}
	}
	for _, u := range uses {
		l.used[u.key]++
	}
	return true
}

// allClients is the key of all clients.
const allClients = "*"

// uses returns a use of all clients, with its limit, one of the request's client, unless many may
// share its address, and others.
func uses(r *http.Request, all, ofClient int, others ...use) []use {
	counted := append([]use{{allClients, all}}, others...)
	if key := client(r); key != "" {
		counted = append(counted, use{key, ofClient})
	}
	return counted
}

// client returns the key of a request's client: its IPv4 address, or its IPv6 network. It
// is empty for an address that many clients may share.
func client(r *http.Request) string {
	addr := clientip.FromContext(r.Context())
	if clientip.IsShared(addr) {
		return ""
	}
	return clientip.Network(addr).String()
}
