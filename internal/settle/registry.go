package settle

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// adoptBatch is how many invoices one transaction of AdoptRegistries examines.
const adoptBatch = 500

// Registries returns the registries of a chain whose events count: all that the
// service ever ran with. Payers can pay through each of them, whichever is
// configured now.
func (s *Service) Registries(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return s.Store.Registries(ctx, chainKey)
}

// RecordRegistries records the configured registries. It comes before anything
// that is done with them.
func (s *Service) RecordRegistries(ctx context.Context) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		for _, c := range s.Chains {
			if c.Registry.IsZero() {
				continue
			}
			if err := tx.InsertRegistry(ctx, c.Key, c.Registry, s.Now().Unix()); err != nil {
				return err
			}
		}
		return nil
	})
}

// AdoptRegistries finds out which registry the commitments of invoices name
// that an older version made: the configured one or none, whichever gives their
// commitment ids. Of one that neither gives, it stays unknown, and nothing is
// done with its commitment. It begins after an id and returns the last one that
// it examined.
func (s *Service) AdoptRegistries(ctx context.Context, after string) (last string, err error) {
	for {
		page, err := s.Store.InvoicesWithoutRegistry(ctx, after, adoptBatch)
		if err != nil || len(page) == 0 {
			return after, err
		}
		var known []invoice.Invoice
		for _, inv := range page {
			c, ok := s.chains[inv.ChainKey]
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
		if err := s.Store.Update(ctx, func(tx *store.Tx) error { return tx.SetRegistries(ctx, known) }); err != nil {
			return after, err
		}
		after = page[len(page)-1].ID
	}
}

// enqueueIntent adds an intent to the outbox, when the invoice's commitment names a
// registry. It is for that one alone: the writer leaves it while another one is
// configured.
func (s *Service) enqueueIntent(out *outbox, kind invoice.IntentKind, inv invoice.Invoice) {
	if inv.Registry.IsZero() || !s.chains[inv.ChainKey].Commits(inv) {
		return
	}
	out.intents = append(out.intents, store.Intent{
		ID: s.ids.New(invoice.PrefixIntent), ChainKey: inv.ChainKey, InvoiceID: inv.ID,
		CommitmentID: inv.CommitmentID, Registry: inv.Registry, Kind: kind, CreatedAt: s.Now().Unix(),
	})
}
