package ledger

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// insertRegistry records a registry of the chain, unless it is known already. It reports whether it was new.
func insertRegistry(ctx context.Context, tx *db.Tx, chainKey string, registry invoice.Address, at time.Time) (bool, error) {
	n, err := tx.Exec(ctx, "INSERT INTO registries (chain_key, address, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		chainKey, registry.String(), invoice.UnixSeconds(at))
	return n > 0, err
}

// Registries returns all registries that the service has ever used on a chain.
func Registries(ctx context.Context, q db.Querier, chainKey string) ([]invoice.Address, error) {
	return db.QueryAll(ctx, q, db.One(db.Address), "SELECT address FROM registries WHERE chain_key = $1 ORDER BY address", chainKey)
}
