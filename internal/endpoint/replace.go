package endpoint

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// Replaced is an endpoint of which something could not be decrypted.
type Replaced struct {
	MerchantID, URL string
	Secret          string // the new one, which signs; empty if the active secret could be decrypted
	HeadersRemoved  bool
}

// auditedReplace is what was replaced, in the audit log.
type auditedReplace struct {
	KeyIDs         []string `json:"keyIds"` // of the master keys
	NewSecret      bool     `json:"newSecret"`
	HeadersRemoved bool     `json:"headersRemoved"`
}

// ReplaceLost replaces what is sealed under master keys that the keyring lacks. An endpoint with such an active
// secret gets a new one. Other such secrets, and headers, are deleted. It returns what it has replaced, also with an error.
func ReplaceLost(ctx context.Context, db *store.Store, k *keyring.Keyring, now func() time.Time, random io.Reader) (all []Replaced, err error) {
	keyIDs, err := db.MasterKeyIDs(ctx)
	if err != nil {
		return nil, err
	}
	lost := slices.DeleteFunc(keyIDs, k.Has)
	if len(lost) == 0 {
		return nil, nil
	}
	for {
		var batch []Replaced
		err := db.Update(ctx, func(tx *store.Tx) error {
			batch = batch[:0]
			merchants, err := tx.MerchantsSealedUnder(ctx, lost, ResealBatch)
			for _, id := range merchants {
				r, err := replaceLost(ctx, tx, k, id, lost, now(), random)
				if err != nil {
					return err
				}
				batch = append(batch, r)
			}
			return err
		})
		if err != nil || len(batch) == 0 {
			return all, err
		}
		all = append(all, batch...)
	}
}

// replaceLost replaces what a merchant has under the lost master keys, with an audit entry.
func replaceLost(ctx context.Context, tx *store.Tx, k *keyring.Keyring, merchantID string, lost []string, now time.Time, random io.Reader) (r Replaced, err error) {
	if err := tx.LockEndpoint(ctx, merchantID); err != nil {
		return r, err
	}
	rows, err := tx.Endpoints(ctx, []string{merchantID})
	if err != nil {
		return r, err
	}
	r = Replaced{MerchantID: merchantID, URL: rows[merchantID].URL, HeadersRemoved: slices.Contains(lost, rows[merchantID].Headers.KeyID)}
	secret, err := keyring.NewSecret(random)
	if err != nil {
		return r, err
	}
	replaced, err := tx.ReplaceLostSecrets(ctx, merchantID, lost, now, func(version int64) ([]byte, string, error) {
		s := k.Seal(merchantID, version, secret)
		return s.Data, s.KeyID, nil
	})
	if err != nil {
		return r, err
	}
	if replaced {
		r.Secret = secret
	}
	return r, tx.AppendAudit(ctx, access.NewEntry(ctx, now, access.Change{
		MerchantID: merchantID, Action: access.ActionSecretsReplace, Object: merchantID,
		Before: auditedReplace{KeyIDs: lost}, After: auditedReplace{[]string{k.KeyID()}, replaced, r.HeadersRemoved},
	}))
}
