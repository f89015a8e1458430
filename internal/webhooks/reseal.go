package webhooks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// ResealBatch is how many secrets one transaction of Reseal reads.
const ResealBatch = 100

// auditedReseal is the audit log's entry for a batch of resealed secrets.
type auditedReseal struct {
	Secrets int      `json:"secrets"`
	KeyIDs  []string `json:"keyIds"` // ids of the master keys
}

// Reseal reseals the secrets and headers of endpoints that are sealed under older keys. It uses the keyring's newest
// key, and returns their number. Services that have both keys may be running.
func Reseal(ctx context.Context, store *db.DB, k *access.Keyring, now func() time.Time) (n int, err error) {
	for more := true; more; {
		var resealed int
		err := store.Update(ctx, func(tx *db.Tx) (err error) {
			resealed, more, err = resealBatch(ctx, tx, k, now())
			return err
		})
		if err != nil {
			return n, err
		}
		n += resealed
	}
	return n, nil
}

// resealBatch reseals up to ResealBatch secrets, with an audit entry. more is false if it found no more secrets.
func resealBatch(ctx context.Context, tx *db.Tx, k *access.Keyring, now time.Time) (n int, more bool, err error) {
	rows, err := secretsNotUnder(ctx, tx, k.KeyID(), ResealBatch)
	if err != nil || len(rows) == 0 {
		return 0, false, err
	}
	var from []string
	for _, r := range rows {
		secret, err := open(k, r)
		if err != nil {
			return 0, false, err
		}
		old, sealed := r, k.Seal(r.MerchantID, r.Version, secret)
		r.KeyID, r.Sealed = sealed.KeyID, sealed.Data
		switch err := replaceSealed(ctx, tx, r, old); {
		case errors.Is(err, db.ErrConflict): // dropped or resealed concurrently
			continue
		case err != nil:
			return 0, false, err
		}
		n++
		if !slices.Contains(from, old.KeyID) {
			from = append(from, old.KeyID)
		}
	}
	if n == 0 {
		return 0, true, nil
	}
	return n, true, access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{
		Action: access.ActionSecretsReseal, Object: k.KeyID(),
		Before: auditedReseal{n, from}, After: auditedReseal{n, []string{k.KeyID()}},
	}))
}
