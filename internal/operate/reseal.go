package operate

import (
	"context"

	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/vault"
)

// Reseal seals the webhook secrets in a service's database under the vault's
// newest key, and returns how many were under another. A running service that
// has both keys goes on with it.
func Reseal(ctx context.Context, database string, v *vault.Vault) (n int, err error) {
	err = opened(ctx, database, func(db *store.Store) error {
		n, err = endpoint.Reseal(ctx, db, v)
		return err
	})
	return n, err
}
