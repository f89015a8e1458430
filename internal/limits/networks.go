package limits

import (
	"context"
	"net/netip"
	"time"
)

// NetworkBuckets limit what client networks do. The networks of an IPv6 site may do SiteWeight times as much
// together. The keys are these weights.
type NetworkBuckets map[int64]*Buckets[netip.Prefix]

// NewNetworkBuckets returns buckets of up to maxNetworks networks, and of as many sites.
func NewNetworkBuckets(limit Limit, maxNetworks int, now func() time.Time) NetworkBuckets {
	b := make(NetworkBuckets)
	for _, weight := range []int64{1, SiteWeight} {
		weighted := limit
		weighted.Quota *= int(weight)
		b[weight] = NewBuckets[netip.Prefix](weighted, maxNetworks, now)
	}
	return b
}

// Take counts an act of the context's client, unless many may share its address. If it returns an
// *ExceededError, it does not count the act.
func (b NetworkBuckets) Take(ctx context.Context) error {
	if IsSharedIn(ctx) {
		return nil
	}
	return b.TakeOf(FromContext(ctx)).Err()
}

// TakeOf counts an act of a client, and returns the result for its network, or for the site if that has no token. Then
// it does not count the act.
func (b NetworkBuckets) TakeOf(client netip.Addr) Result {
	result := b[1].Take(Network(client))
	if !result.OK || !client.Is6() {
		return result
	}
	if site := b[SiteWeight].Take(Site(client)); !site.OK {
		b[1].Return(Network(client))
		return site
	}
	return result
}

// Return undoes TakeOf.
func (b NetworkBuckets) Return(client netip.Addr) {
	b[1].Return(Network(client))
	if client.Is6() {
		b[SiteWeight].Return(Site(client))
	}
}
