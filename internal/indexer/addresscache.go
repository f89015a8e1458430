package indexer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
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

// recordable returns which movements are to be recorded whatever else is known: those to an address of ours. With
// refunds, it adds those that may be refunds. From the deposit address of a lost invoice, no movement is recorded.
func (ix *Indexer) recordable(ctx context.Context, c *addressCache, moved []movement, refunds bool) ([]bool, error) {
	var accounts, senders []invoice.Address
	for _, m := range moved {
		accounts = append(accounts, m.to, m.from)
	}
	watched, err := c.watched(ctx, accounts)
	if err != nil {
		return nil, err
	}
	var outgoing []ledger.Pair
	for _, m := range moved {
		if watched[m.from] {
			senders = append(senders, m.from)
			outgoing = append(outgoing, ledger.Pair{Payer: m.to, Receiver: m.from})
		}
	}
	lost, err := ix.cfg.Ledger.LostDeposits(ctx, ix.cfg.Chain.Key, senders)
	var back map[ledger.Pair]bool
	if refunds && err == nil {
		back, err = ix.cfg.Ledger.MayBeRefunds(ctx, ix.cfg.Chain.Key, outgoing)
	}
	are := make([]bool, len(moved))
	for i, m := range moved {
		are[i] = (watched[m.to] || back[ledger.Pair{Payer: m.to, Receiver: m.from}]) && !lost[m.from]
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

// registries are the contracts with events that count: the configured one and all that the ledger knows. Addresses are
// only added. It is safe for concurrent use.
type registries struct {
	all atomic.Pointer[[]common.Address]
}

func newRegistries(configured invoice.Address) *registries {
	r := &registries{}
	r.all.Store(&[]common.Address{})
	r.add([]invoice.Address{configured})
	return r
}

func (r *registries) addresses() []common.Address { return *r.all.Load() }

func (r *registries) has(a common.Address) bool { return slices.Contains(r.addresses(), a) }

// add adds the addresses that are registries. Only one goroutine calls it.
func (r *registries) add(addresses []invoice.Address) {
	all := slices.Clone(r.addresses())
	for _, a := range addresses {
		if !a.IsZero() && !slices.Contains(all, common.Address(a)) {
			all = append(all, common.Address(a))
		}
	}
	r.all.Store(&all)
}

// learnRegistries adds the registries that the ledger knows, such as the ones in another replica's configuration.
func (ix *Indexer) learnRegistries(ctx context.Context) error {
	known, err := ix.cfg.Ledger.Registries(ctx, ix.cfg.Chain.Key)
	if err == nil {
		ix.decoder.registries.add(known)
	}
	return err
}
