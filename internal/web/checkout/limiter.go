package checkout

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/limits"
)

// Limits of lookups at the nodes.
const (
	// LookupsOfInvoice bounds the lookups per minute for one invoice.
	LookupsOfInvoice = 15
	// LookupsOfClient bounds the lookups per minute of one client network.
	LookupsOfClient = 30
	// Lookups bounds the lookups per minute of all clients.
	Lookups = 300
	// MaxLookups bounds the lookups in flight. A merchant and a client network have a share.
	MaxLookups = 16
)

const (
	// window is the period of a limiter.
	window = time.Minute
)

// quota is how many uses a window permits.
type quota struct {
	all      int // by all clients
	ofObject int // to one object, divided among client networks; 0 is any number
	ofClient int // by one client network
}

// party is an account for counting uses: a merchant, an object, or a client network, either with all
// merchants or with one merchant or object. The zero value is all clients.
type party struct {
	merchant, object string
	network          netip.Prefix
}

// limiter counts uses by their parties in fixed windows.
//
// The rest of a quota is divided: a party is refused once its uses reach the rest times its weight. So
// one merchant, or one client network at a merchant, gets half of the quota, and two get a third each.
// A part always remains for one more.
//
// Invariant: used holds the counts of the window that began at since. The quota of all clients
// bounds its size.
type limiter struct {
	mu    sync.Mutex
	since time.Time
	used  map[party]int
}

// allow counts a use by a request's client of an object of a merchant and reports true, unless
// it is beyond a quota or a share of one. The object must exist.
func (l *limiter) allow(now time.Time, r *http.Request, q quota, merchant, object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(now)
	all, ofMerchant, ofObject := party{}, party{merchant: merchant}, party{merchant: merchant, object: object}
	if merchant == "" {
		ofMerchant.merchant = "-" // no merchant has this name, so the operator's invoices count as one merchant's
	}
	left := q.all - l.used[all]
	leftOfMerchant := q.all/2 - l.used[ofMerchant]
	if l.used[ofMerchant] >= left || leftOfMerchant < 1 || q.ofObject > 0 && l.used[ofObject] >= q.ofObject {
		return false
	}
	counted := []party{all, ofMerchant}
	if q.ofObject > 0 {
		counted = append(counted, ofObject)
	}
	for _, n := range networksOf(r) {
		alone, at, to := party{network: n.prefix}, ofMerchant, ofObject
		at.network, to.network = n.prefix, n.prefix
		if l.used[alone] >= q.ofClient*n.weight || l.used[at] >= leftOfMerchant*n.weight {
			return false
		}
		counted = append(counted, alone, at)
		if q.ofObject > 0 {
			if l.used[to] >= (q.ofObject-l.used[ofObject])*n.weight {
				return false
			}
			counted = append(counted, to)
		}
	}
	for _, p := range counted {
		l.used[p]++
	}
	return true
}

// begin begins another window if the last one is over. The caller holds mu.
func (l *limiter) begin(now time.Time) {
	if age := now.Sub(l.since); l.used == nil || age >= window || age < 0 {
		l.since, l.used = now, make(map[party]int)
	}
}

// network is a client network and its weight in quotas.
type network struct {
	prefix netip.Prefix
	weight int
}

// networksOf returns the networks of a request's client: its address or, over IPv6, its network and
// that network's site. An address that many clients may share has no networks.
func networksOf(r *http.Request) []network {
	if limits.IsSharedIn(r.Context()) {
		return nil
	}
	addr := limits.FromContext(r.Context())
	all := []network{{limits.Network(addr), 1}}
	if addr.Is6() {
		all = append(all, network{limits.Site(addr), limits.SiteWeight})
	}
	return all
}
