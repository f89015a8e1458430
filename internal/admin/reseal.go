package admin

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// Reseal seals the webhook secrets in a service's database under the keyring's
// newest key and returns how many it resealed. It is safe while a service runs
// that has both keys. The checkpoints of the audit log are signed again, too.
func Reseal(ctx context.Context, database string, v *keyring.Keyring) (n int, err error) {
	err = withStore(ctx, database, func(db *store.Store) error {
		if n, err = endpoint.Reseal(ctx, db, v, time.Now); err != nil {
			return err
		}
		return SignCheckpoints(ctx, db, v)
	})
	return n, err
}
