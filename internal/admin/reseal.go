package admin

import (
	"context"

	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// Reseal seals the webhook secrets in a service's database under the keyring's
// newest key, and returns how many were under another. A running service that
// has both keys goes on with it.
func Reseal(ctx context.Context, database string, v *keyring.Keyring) (n int, err error) {
	err = opened(ctx, database, func(db *store.Store) error {
		n, err = endpoint.Reseal(ctx, db, v)
		return err
	})
	return n, err
}
