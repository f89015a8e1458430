package certs

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// ACMEEntry is an entry of the ACME cache, encrypted.
type ACMEEntry struct {
	Sealed []byte
	KeyID  string // of the master key
}

// findACMEEntry returns the entry with a name, or ErrNotFound.
func findACMEEntry(ctx context.Context, q db.Querier, name string) (ACMEEntry, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (e ACMEEntry, err error) {
		var sealed string
		if err = row.Scan(&sealed, &e.KeyID); err != nil {
			return e, err
		}
		e.Sealed, err = base64.StdEncoding.DecodeString(sealed)
		return e, err
	}, "SELECT sealed, key_id FROM acme_cache WHERE name = $1", name)
}

// putACMEEntry stores an entry, and replaces an earlier one with the same name.
func putACMEEntry(ctx context.Context, s *db.DB, name string, e ACMEEntry, now time.Time) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO acme_cache (name, sealed, key_id, updated_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id, updated_at = excluded.updated_at`,
			name, base64.StdEncoding.EncodeToString(e.Sealed), e.KeyID, now.Unix())
		return err
	})
}

// deleteACMEEntry deletes the entry with a name, if there is one.
func deleteACMEEntry(ctx context.Context, s *db.DB, name string) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM acme_cache WHERE name = $1", name)
		return err
	})
}

// claimACMEOrder gives an owner the right to order the certificate with a name, unless another owner
// claimed it after staleBefore. It reports whether the owner has the right. ReleaseACMEOrder gives the
// right up.
func claimACMEOrder(ctx context.Context, s *db.DB, name, owner string, now, staleBefore time.Time) (mine bool, err error) {
	err = s.Update(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `INSERT INTO acme_cache (name, sealed, key_id, updated_at) VALUES ($1, $2, 'none', $3)
			ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at
			WHERE acme_cache.sealed = excluded.sealed OR acme_cache.updated_at <= $4`,
			acmeOrder(name), base64.StdEncoding.EncodeToString([]byte(owner)), now.Unix(), staleBefore.Unix())
		mine = n > 0
		return err
	})
	return mine, err
}

// releaseACMEOrder gives up the right to order a certificate.
func releaseACMEOrder(ctx context.Context, s *db.DB, name string) error {
	return deleteACMEEntry(ctx, s, acmeOrder(name))
}

// acmeOrder is the name of the entry that records which replica orders a certificate.
func acmeOrder(name string) string { return "order/" + name }
