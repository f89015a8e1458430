package indexer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/quittance/quittance/internal/invoice"
)

// Limits of an addressCache.
const (
	// maxLookup is how many accounts one query of the ledger looks up.
	maxLookup = 1000
	// MaxCached is how many accounts a cache holds.
	MaxCached = 1 << 18
)

// addressCache remembers which accounts are settlement addresses, so that the ledger is asked only once about each. Use
// a cache only for blocks that are older than the cache: an account that becomes a settlement address later is paid in
// later blocks. It is safe for concurrent use.
type addressCache struct {
	lookup func(ctx context.Context, accounts []invoice.Address) (map[invoice.Address]bool, error)

	mu    sync.Mutex
	known map[invoice.Address]bool
}

func (ix *Indexer) newAddressCache() *addressCache {
	return &addressCache{
		lookup: func(ctx context.Context, accounts []invoice.Address) (map[invoice.Address]bool, error) {
			return ix.cfg.Ledger.Watched(ctx, ix.cfg.Chain.Key, accounts)
		},
		known: map[invoice.Address]bool{},
	}
}

// lostDeposits returns which of the accounts are deposit addresses of lost invoices.
func (ix *Indexer) lostDeposits(ctx context.Context, accounts []invoice.Address) (map[invoice.Address]bool, error) {
	lost := map[invoice.Address]bool{}
	for some := range slices.Chunk(accounts, maxLookup) {
		found, err := ix.cfg.Ledger.LostDeposits(ctx, ix.cfg.Chain.Key, some)
		if err != nil {
			return nil, err
		}
		maps.Copy(lost, found)
	}
	return lost, nil
}

// recordable returns which movements are to be recorded whatever else is known: those to an address of ours, unless they
// come from the deposit address of a lost invoice, of which nothing is recorded.
func (ix *Indexer) recordable(ctx context.Context, c *addressCache, moved []movement) ([]bool, error) {
	receivers := make([]invoice.Address, len(moved))
	for i, m := range moved {
		receivers[i] = m.to
	}
	watched, err := c.watched(ctx, receivers)
	if err != nil {
		return nil, err
	}
	var senders []invoice.Address
	for _, m := range moved {
		if watched[m.to] {
			senders = append(senders, m.from)
		}
	}
	lost, err := ix.lostDeposits(ctx, senders)
	are := make([]bool, len(moved))
	for i, m := range moved {
		are[i] = watched[m.to] && !lost[m.from]
	}
	return are, err
}

// watched returns the accounts that are settlement addresses.
func (c *addressCache) watched(ctx context.Context, accounts []invoice.Address) (map[invoice.Address]bool, error) {
	watched := map[invoice.Address]bool{}
	var unknown []invoice.Address
	c.mu.Lock()
	for _, a := range accounts {
		if yes, ok := c.known[a]; !ok {
			unknown = append(unknown, a)
		} else if yes {
			watched[a] = true
		}
	}
	c.mu.Unlock()
	for some := range slices.Chunk(unknown, maxLookup) {
		found, err := c.lookup(ctx, some)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if len(c.known)+len(some) > MaxCached {
			clear(c.known)
		}
		for _, a := range some {
			c.known[a] = found[a]
			if found[a] {
				watched[a] = true
			}
		}
		c.mu.Unlock()
	}
	return watched, nil
}
