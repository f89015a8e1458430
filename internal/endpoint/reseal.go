package endpoint

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// ResealBatch is how many secrets are read at a time to be sealed anew.
const ResealBatch = 100

// Resealing is what Reseal needs of a store. *store.Store is one.
type Resealing interface {
	SecretsSealedOtherwise(ctx context.Context, keyID string, limit int) ([]store.SecretRow, error)
	ReplaceSealed(ctx context.Context, r store.SecretRow, oldKeyID string) error
}

// Reseal seals under the keyring's newest key what is sealed under an older one,
// and returns how many secrets that were. Services that have both keys may run
// meanwhile.
func Reseal(ctx context.Context, db Resealing, v *keyring.Keyring) (n int, err error) {
	for {
		rows, err := db.SecretsSealedOtherwise(ctx, v.KeyID(), ResealBatch)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for _, r := range rows {
			secret, err := open(v, r)
			if err != nil {
				return n, err
			}
			old, sealed := r.KeyID, v.Seal(r.MerchantID, r.Version, secret)
			r.KeyID, r.Sealed = sealed.KeyID, sealed.Data
			switch err := db.ReplaceSealed(ctx, r, old); {
			case errors.Is(err, store.ErrConflict): // it was dropped, or another did it
			case err != nil:
				return n, err
			default:
				n++
			}
		}
	}
}
