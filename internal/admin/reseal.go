package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/certs"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/webhooks"
)

// Reseal seals the webhook secrets in a service's database under the keyring's
// newest key and returns how many it resealed. It is safe while a service runs
// that has both keys. Certificates of ACME are resealed, and the checkpoints of the audit log signed again, too.
func Reseal(ctx context.Context, database string, v *access.Keyring) (n int, err error) {
	err = WithStore(ctx, database, func(store *db.DB) error {
		if n, err = webhooks.Reseal(ctx, store, v, time.Now); err != nil {
			return err
		}
		if err := (&certs.Cache{Store: store, Keyring: v}).Reseal(ctx); err != nil {
			return fmt.Errorf("reseal the certificates: %w", err)
		}
		_, err := SignCheckpoints(ctx, store, v, false)
		return err
	})
	return n, err
}

// LostSecrets returns the secrets that ReplaceSecrets would replace, and how many checkpoints of the
// audit log it would sign without being able to verify them. It only reads.
func LostSecrets(ctx context.Context, database string, k *access.Keyring) (all []webhooks.Lost, unverified int, err error) {
	err = WithStore(ctx, database, func(store *db.DB) error {
		if all, err = webhooks.FindLost(ctx, store, k); err != nil {
			return err
		}
		checkpoints, err := access.AuditCheckpoints(ctx, store)
		for _, c := range checkpoints {
			if errors.Is(c.Verify(k), access.ErrNoKey) {
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
func ReplaceSecrets(ctx context.Context, database string, k *access.Keyring, keep func([]webhooks.Replaced) error) (all []webhooks.Replaced, unverified int, err error) {
	err = WithStopped(ctx, database, func(store *db.DB) error {
		if err := CheckAlone(ctx, store, time.Now, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		if all, err = webhooks.ReplaceLost(ctx, store, k, time.Now, rand.Reader, keep); err != nil {
			return err
		}
		unverified, err = SignCheckpoints(ctx, store, k, true)
		return err
	})
	return all, unverified, err
}
