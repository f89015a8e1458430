package admin

import (
	"context"
	"crypto/rand"
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
		_, err := SignCheckpoints(ctx, db, v, false)
		return err
	})
	return n, err
}

// ReplaceSecrets replaces the webhook secrets in a service's database that the keyring cannot open, and
// signs the checkpoints of the audit log. It returns what it has replaced, also with an error, and how many
// checkpoints it signed without being able to verify them. No service may run.
func ReplaceSecrets(ctx context.Context, database string, k *keyring.Keyring) (all []endpoint.Replaced, unverified int, err error) {
	err = withStore(ctx, database, func(db *store.Store) error {
		if all, err = endpoint.ReplaceLost(ctx, db, k, time.Now, rand.Reader); err != nil {
			return err
		}
		unverified, err = SignCheckpoints(ctx, db, k, true)
		return err
	})
	return all, unverified, err
}
