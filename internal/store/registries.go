package store

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// InsertRegistry records a registry of the chain, unless it is known already. It reports
// whether it was new.
func (tx *Tx) InsertRegistry(ctx context.Context, chainKey string, registry invoice.Address, at time.Time) (bool, error) {
	n, err := tx.exec(ctx, "INSERT INTO registries (chain_key, address, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		chainKey, registry.String(), invoice.UnixSeconds(at))
	return n > 0, err
}

// Registries returns all registries that the service ever used on a chain.
func (q *queries) Registries(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return queryAll(ctx, q, func(row scanner) (a invoice.Address, err error) {
		err = row.Scan(addressCol(&a))
		return a, err
	}, "SELECT address FROM registries WHERE chain_key = $1 ORDER BY address", chainKey)
}
