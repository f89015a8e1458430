package chain

import (
	"testing"
	"time"
)

// TestTakesBatch asks whether a node accepts three calls in one request: not beyond its settings, and not for a minute
// after three or fewer were refused.
func TestTakesBatch(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	clock := func() time.Time { return now }
	client := func(s NodeSettings) *Client {
		return &Client{limits: nodeLimits{settings: s, now: clock, all: map[Kind]*Limit{}}}
	}
	for _, test := range []struct {
		settings NodeSettings
		want     bool
	}{
		{NodeSettings{}, true}, {NodeSettings{MaxBatch: 3}, true}, {NodeSettings{MaxBatch: 2}, false}, {NodeSettings{MaxBatch: 1}, false},
		{NodeSettings{CallsPerSecond: 1}, true},
	} {
		c := client(test.settings)
		if got := c.TakesBatch(KindHeads, 3); got != test.want {
			t.Errorf("%+v: %t", test.settings, got)
		}
		now = now.Add(batchRetry)
		if got := c.TakesBatch(KindHeads, 3); got != test.want {
			t.Errorf("%+v, later: %t", test.settings, got)
		}
	}
	c := client(NodeSettings{})
	for _, size := range []uint64{3, 2} {
		c.Limit(KindHeads).Refused(size)
		c.Limit(KindHeads).Answered(1)
		now = now.Add(batchRetry - 1)
		if c.TakesBatch(KindHeads, 3) {
			t.Errorf("less than a minute after %d calls were refused, 3 are sent", size)
		}
		now = now.Add(1)
		if !c.TakesBatch(KindHeads, 3) || c.Limit(KindHeads).Next() != 3 {
			t.Errorf("a minute after %d calls were refused, 3 are not tried again", size)
		}
	}
}
