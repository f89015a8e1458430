package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Registries returns all registries of a chain that were ever configured: payers can still pay through them.
func (s *Service) Registries(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return Registries(ctx, s.conf.Store, chainKey)
}

// RecordRegistries records the configured registries. It must be called before
// invoices are created and blocks are read.
func (s *Service) RecordRegistries(ctx context.Context) error {
	ctx = access.WithOrigin(ctx, access.Origin{Actor: access.ActorConfig})
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		var entries []access.Entry
		for _, c := range s.conf.Chains {
			if c.Registry.IsZero() {
				continue
			}
			added, err := insertRegistry(ctx, tx, c.Key, c.Registry, s.conf.Now())
			if err != nil {
				return err
			}
			if added {
				entries = append(entries, access.NewEntry(ctx, s.conf.Now(), access.Change{
					Action: access.ActionRegistryAdd, Object: c.Key, After: auditedRegistry{chain.Checksum(c.Registry)},
				}))
			}
		}
		return access.AppendAudit(ctx, tx, entries...)
	})
}

// auditedRegistry is a registry in the audit log.
type auditedRegistry struct {
	Registry string `json:"registry"` // address
}
