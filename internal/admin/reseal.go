package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
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

// LostSecrets returns the secrets that ReplaceSecrets would replace, and how many checkpoints of the
// audit log it would sign without being able to verify them. It only reads.
func LostSecrets(ctx context.Context, database string, k *keyring.Keyring) (all []endpoint.Lost, unverified int, err error) {
	err = withStore(ctx, database, func(db *store.Store) error {
		if all, err = endpoint.FindLost(ctx, db, k); err != nil {
			return err
		}
		checkpoints, err := db.AuditCheckpoints(ctx)
		for _, c := range checkpoints {
			if errors.Is(c.Verify(k), keyring.ErrNoKey) {
				unverified++
			}
		}
		return err
	})
	return all, unverified, err
}

// ReplaceSecrets replaces the webhook secrets in a service's database that the keyring cannot open, and
// signs the checkpoints of the audit log. It passes each batch to keep before it is committed. It returns what it has
// replaced, also with an error, and how many checkpoints it signed without being able to verify them. It fails with
// ErrReplicaRuns if the service runs.
func ReplaceSecrets(ctx context.Context, database string, k *keyring.Keyring, keep func([]endpoint.Replaced) error) (all []endpoint.Replaced, unverified int, err error) {
	err = withStopped(ctx, database, func(db *store.Store) error {
		if err := CheckAlone(ctx, db, time.Now, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		if all, err = endpoint.ReplaceLost(ctx, db, k, time.Now, rand.Reader, keep); err != nil {
			return err
		}
		unverified, err = SignCheckpoints(ctx, db, k, true)
		return err
	})
	return all, unverified, err
}
