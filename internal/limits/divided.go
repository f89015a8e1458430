package limits

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"
)

// Quota is how many uses of payers a window permits.
type Quota struct {
	Name     string // in errors
	All      int    // by all clients
	OfObject int    // of one object, such as an invoice
	OfClient int    // by one client network
}

// QuotaWindow is the period of a Quota.
const QuotaWindow = time.Minute

// Divided counts the uses of a quota by their parties in fixed windows. It is safe for concurrent use.
//
// The rest of a quota is divided: a party is refused once its uses reach the rest times its weight. So
// one merchant, or one client network at a merchant or an object, gets half of the quota, and two get a third each.
// A part always remains for one more.
//
// Invariant: used holds the counts of the window that began at since. The quota of all clients
// bounds its size.
type Divided struct {
	quota Quota
	now   func() time.Time

	mu    sync.Mutex
	since time.Time
	used  map[Party]int
}

// NewDivided returns a quota without uses.
func NewDivided(quota Quota, now func() time.Time) *Divided { return &Divided{quota: quota, now: now} }

// Take counts a use by the context's client of an object of a merchant. If it is beyond a quota or a share of one, it
// returns an *ExceededError and does not count it. The object must exist.
func (d *Divided) Take(ctx context.Context, merchantID, object string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if age := now.Sub(d.since); d.used == nil || age >= QuotaWindow || age < 0 {
		d.since, d.used = now, make(map[Party]int)
	}
	ofMerchant := PartyOf(merchantID)
	ofObject := Party{Merchant: ofMerchant.Merchant, Object: object}
	left, leftOfMerchant, leftOfObject := d.quota.All-d.used[Party{}], d.quota.All/2-d.used[ofMerchant], d.quota.OfObject-d.used[ofObject]
	ok := d.used[ofMerchant] < left && leftOfMerchant > 0 && leftOfObject > 0
	counted := []Party{{}, ofMerchant, ofObject}
	for _, n := range Networks(ctx) {
		at, to, weight := ofMerchant, ofObject, int(n.Weight)
		at.Network, to.Network = n.Client.Network, n.Client.Network
		ok = ok && d.used[n.Client] < d.quota.OfClient*weight && d.used[at] < leftOfMerchant*weight && d.used[to] < leftOfObject*weight
		counted = append(counted, n.Client, at, to)
	}
	if !ok {
		wait := math.Ceil((QuotaWindow - now.Sub(d.since)).Seconds())
		return &ExceededError{Limit: d.quota.Name, RetryAfter: strconv.Itoa(int(wait))}
	}
	for _, p := range counted {
		d.used[p]++
	}
	return nil
}
