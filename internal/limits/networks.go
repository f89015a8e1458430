package limits

import (
	"context"
	"net/netip"
	"time"
)

// NetworkBuckets limit what client networks do. The networks of an IPv6 site may do SiteWeight times as much
// together. Each key is a weight of a claim of Networks.
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
	networks := Networks(ctx)
	for i, n := range networks {
		err := b[n.Weight].Take(n.Client.Network).Err()
		if err == nil {
			continue
		}
		for _, taken := range networks[:i] {
			b[taken.Weight].Return(taken.Client.Network)
		}
		return err
	}
	return nil
}
