package webhooks

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// Replaced is an endpoint with secrets or headers that could not be decrypted.
type Replaced struct {
	MerchantID, URL string
	Secret          string // the new secret, which signs; empty if the active secret could be decrypted
	HeadersRemoved  bool
}

// auditedReplace is the audit log's entry for a replacement.
type auditedReplace struct {
	KeyIDs         []string `json:"keyIds"` // ids of the master keys
	NewSecret      bool     `json:"newSecret"`
	HeadersRemoved bool     `json:"headersRemoved"`
}

// Lost lists an endpoint's data under master keys that the keyring lacks.
type Lost struct {
	MerchantID, URL string
	KeyIDs          []string // ids of these master keys
	ActiveSecret    bool     // the secret that signs
	OtherSecrets    int      // number of staged and retired secrets
	Headers         bool
}

// FindLost returns the endpoints with data that ReplaceLost would replace, ordered by merchant id.
func FindLost(ctx context.Context, store *db.DB, k *access.Keyring) (all []Lost, err error) {
	lost, err := lostKeys(ctx, store, k)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	for after := ""; ; after = all[len(all)-1].MerchantID {
		ids, err := merchantsSealedUnder(ctx, store, after, lost, ResealBatch)
		if err != nil || len(ids) == 0 {
			return all, err
		}
		rows, err := endpoints(ctx, store, ids)
		if err != nil {
			return nil, err
		}
		secrets, err := Secrets(ctx, store, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all = append(all, lostOf(rows[id], secrets[id], lost))
		}
	}
}

// lostOf returns an endpoint's data under the lost master keys.
func lostOf(row EndpointRow, secrets []SecretRow, lost []string) Lost {
	l := Lost{MerchantID: row.MerchantID, URL: row.URL, Headers: slices.Contains(lost, row.Headers.KeyID)}
	if l.Headers {
		l.KeyIDs = append(l.KeyIDs, row.Headers.KeyID)
	}
	for _, s := range secrets {
		switch {
		case !slices.Contains(lost, s.KeyID):
			continue
		case s.State == SecretActive:
			l.ActiveSecret = true
		default:
			l.OtherSecrets++
		}
		l.KeyIDs = append(l.KeyIDs, s.KeyID)
	}
	slices.Sort(l.KeyIDs)
	l.KeyIDs = slices.Compact(l.KeyIDs)
	return l
}

// lostKeys returns the ids of the master keys that the keyring lacks and that have sealed stored data.
func lostKeys(ctx context.Context, store *db.DB, k *access.Keyring) ([]string, error) {
	keyIDs, err := masterKeyIDs(ctx, store)
	return slices.DeleteFunc(keyIDs, k.Has), err
}

// ReplaceLost replaces data sealed under master keys that the keyring lacks. An endpoint with such an active secret
// gets a new one. Other such secrets, and headers, are deleted. Each batch is passed to keep before it is committed,
// and not committed if keep fails. ReplaceLost returns what it has replaced, even with an error.
func ReplaceLost(
	ctx context.Context, store *db.DB, k *access.Keyring, now func() time.Time, random io.Reader, keep func([]Replaced) error,
) (all []Replaced, err error) {
	lost, err := lostKeys(ctx, store, k)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	for {
		var batch []Replaced
		err := store.Update(ctx, func(tx *db.Tx) error {
			batch = batch[:0]
			merchants, err := merchantsSealedUnder(ctx, tx, "", lost, ResealBatch)
			if err != nil {
				return err
			}
			for _, id := range merchants {
				r, err := replaceLost(ctx, tx, k, id, lost, now(), random)
				if err != nil {
					return err
				}
				batch = append(batch, r)
			}
			if len(batch) == 0 {
				return nil
			}
			return keep(batch)
		})
		if err != nil || len(batch) == 0 {
			return all, err
		}
		all = append(all, batch...)
	}
}

// replaceLost replaces a merchant's data under the lost master keys, with an audit entry.
func replaceLost(ctx context.Context, tx *db.Tx, k *access.Keyring, merchantID string, lost []string, now time.Time, random io.Reader) (r Replaced, err error) {
	if err := lockEndpoint(ctx, tx, merchantID); err != nil {
		return r, err
	}
	rows, err := endpoints(ctx, tx, []string{merchantID})
	if err != nil {
		return r, err
	}
	r = Replaced{MerchantID: merchantID, URL: rows[merchantID].URL, HeadersRemoved: slices.Contains(lost, rows[merchantID].Headers.KeyID)}
	secret, err := access.NewSecret(random)
	if err != nil {
		return r, err
	}
	replaced, err := replaceLostSecrets(ctx, tx, merchantID, lost, now, func(version int64) ([]byte, string, error) {
		s := k.Seal(merchantID, version, secret)
		return s.Data, s.KeyID, nil
	})
	if err != nil {
		return r, err
	}
	if replaced {
		r.Secret = secret
	}
	return r, access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{
		MerchantID: merchantID, Action: access.ActionSecretsReplace, Object: merchantID,
		Before: auditedReplace{KeyIDs: lost}, After: auditedReplace{[]string{k.KeyID()}, replaced, r.HeadersRemoved},
	}))
}

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
