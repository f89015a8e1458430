package checkout

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits of what payers may ask the nodes and leave behind, in a minute.
const (
	// LookupsOfInvoice is how often transactions may be looked up for one invoice.
	LookupsOfInvoice = 15
	// LookupsOfClient is how often one client address may look transactions up.
	LookupsOfClient = 30
	// Lookups is how many lookups all clients together may make.
	Lookups = 300
	// MaxLookups is how many lookups may be under way.
	MaxLookups = 8
)

// window is how long a limiter counts before it begins again.
const window = time.Minute

// limiter counts uses by key in windows of time. The counts in used belong to
// the window that began at since. A key that is part of every use bounds them.
type limiter struct {
	mu    sync.Mutex
	since time.Time
	used  map[string]int
}

// use is a key and how often it may be used in a window.
type use struct {
	key   string
	limit int
}

// allow counts one use of each key, and reports whether all are within their
// limits. When one is not, nothing is counted.
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

// everybody is the key of what all clients use together.
const everybody = "*"

// client returns the key of a request's client: its address, of IPv6 the
// network, since one client has many addresses there. It is empty where the
// address is of this machine or a private network: then a proxy stands for all
// clients.
func client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() {
		return ""
	}
	bits := a.BitLen()
	if a.Is6() {
		bits /= 2
	}
	return netip.PrefixFrom(a, bits).Masked().String()
}
