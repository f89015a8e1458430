package indexer

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
)

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
