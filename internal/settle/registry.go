package settle

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// adoptBatch is how many invoices one transaction of AdoptRegistries examines.
const adoptBatch = 500

// Registries returns the registries of a chain whose events count: all that were
// ever configured, because payers can still pay through them.
func (s *Service) Registries(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return s.store.Registries(ctx, chainKey)
}

// RecordRegistries records the configured registries. It must be called before
// invoices are created and blocks are read.
func (s *Service) RecordRegistries(ctx context.Context) error {
	ctx = access.WithOrigin(ctx, access.Origin{Actor: access.ActorConfig})
	return s.store.Update(ctx, func(tx *store.Tx) error {
		var entries []access.Entry
		for _, c := range s.chains {
			if c.Registry.IsZero() {
				continue
			}
			added, err := tx.InsertRegistry(ctx, c.Key, c.Registry, s.now())
			if err != nil {
				return err
			}
			if added {
				entries = append(entries, access.NewEntry(ctx, s.now(), access.Change{
					Action: access.ActionRegistryAdd, Object: c.Key, After: auditedRegistry{chain.Checksum(c.Registry)},
				}))
			}
		}
		return tx.AppendAudit(ctx, entries...)
	})
}

// auditedRegistry is a registry in the audit log.
type auditedRegistry struct {
	Registry string `json:"registry"` // address
}

// AdoptRegistries sets the registry of invoices that an older version created:
// the configured one or none, whichever gives the invoice's commitment id. If
// neither does, it stays unknown and no intent is enqueued for the invoice. It
// begins after an id and returns the last one that it examined.
func (s *Service) AdoptRegistries(ctx context.Context, after string) (last string, err error) {
	for {
		page, err := s.store.InvoicesWithoutRegistry(ctx, after, adoptBatch)
		if err != nil || len(page) == 0 {
			return after, err
		}
		var known []invoice.Invoice
		for _, inv := range page {
			c, ok := s.byKey[inv.ChainKey]
			if !ok {
				continue
			}
			for _, registry := range []invoice.Address{c.Registry, {}} {
				if inv.Registry = registry; c.Commits(inv) {
					known = append(known, inv)
					break
				}
			}
		}
		if err := s.store.Update(ctx, func(tx *store.Tx) error { return tx.SetRegistries(ctx, known) }); err != nil {
			return after, err
		}
		after = page[len(page)-1].ID
	}
}
