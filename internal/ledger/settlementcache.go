package ledger

import (
	"sync"

	"github.com/quittance/quittance/internal/access"
)

// MaxSettlements bounds the settlement addresses that a settlementCache holds.
const MaxSettlements = 100_000

// settlementCache holds merchants' settlement addresses that are in the
// database, so that a create need not insert them. Rows are never deleted, but a
// standby that took over may lack the newest. It is safe for concurrent use.
type settlementCache struct {
	mu     sync.Mutex
	stored map[access.SettlementAddress]bool
}

func newSettlementCache() *settlementCache {
	return &settlementCache{stored: make(map[access.SettlementAddress]bool)}
}

// missing returns the settlement addresses of invoices that are not in the cache,
// each once.
func (s *settlementCache) missing(calls []*createCall) []access.SettlementAddress {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []access.SettlementAddress
	seen := make(map[access.SettlementAddress]bool)
	for _, c := range calls {
		key := c.Value.settlement()
		if !s.stored[key] && !seen[key] {
			seen[key] = true
			missing = append(missing, key)
		}
	}
	return missing
}

// remember adds the settlement addresses of invoices after a transaction that
// inserted them, and removes them after one that failed.
func (s *settlementCache) remember(calls []*createCall, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.stored) > MaxSettlements {
		clear(s.stored)
	}
	for _, c := range calls {
		if stored {
			s.stored[c.Value.settlement()] = true
		} else {
			delete(s.stored, c.Value.settlement())
		}
	}
}

func (c *create) settlement() access.SettlementAddress {
	return access.SettlementAddress{ChainKey: c.inv.ChainKey, Address: c.inv.Merchant, MerchantID: c.inv.MerchantID}
}
