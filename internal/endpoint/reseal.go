package endpoint

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// ResealBatch is how many secrets Reseal reads at a time.
const ResealBatch = 100

// ResealStore is the store of Reseal. *store.Store implements it.
type ResealStore interface {
	SecretsNotUnder(ctx context.Context, keyID string, limit int) ([]store.SecretRow, error)
	ReplaceSealed(ctx context.Context, r store.SecretRow, oldKeyID string) error
}

// Reseal reseals secrets that are sealed under older keys under the keyring's newest
// key, and returns their number. Services that have both keys may be running.
func Reseal(ctx context.Context, db ResealStore, k *keyring.Keyring) (n int, err error) {
	for {
		rows, err := db.SecretsNotUnder(ctx, k.KeyID(), ResealBatch)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for _, r := range rows {
			secret, err := open(k, r)
			if err != nil {
				return n, err
			}
			old, sealed := r.KeyID, k.Seal(r.MerchantID, r.Version, secret)
			r.KeyID, r.Sealed = sealed.KeyID, sealed.Data
			switch err := db.ReplaceSealed(ctx, r, old); {
			case errors.Is(err, store.ErrConflict): // dropped or resealed concurrently
			case err != nil:
				return n, err
			default:
				n++
			}
		}
	}
}
