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

// acmeEntriesNotUnder returns the entries by their names that are sealed under another key.
func acmeEntriesNotUnder(ctx context.Context, q db.Querier, keyID string) (map[string]ACMEEntry, error) {
	entries := make(map[string]ACMEEntry) // few: an account, and certificates of few hosts
	_, err := db.QueryAll(ctx, q, func(row db.Scanner) (_ struct{}, err error) {
		var name, sealed string
		var e ACMEEntry
		if err = row.Scan(&name, &sealed, &e.KeyID); err != nil {
			return struct{}{}, err
		}
		e.Sealed, err = base64.StdEncoding.DecodeString(sealed)
		entries[name] = e
		return struct{}{}, err
	}, "SELECT name, sealed, key_id FROM acme_cache WHERE key_id <> $1", keyID)
	return entries, err
}

// resealACMEEntry replaces an entry, unless it has changed.
func resealACMEEntry(ctx context.Context, tx *db.Tx, name string, was, is ACMEEntry) error {
	_, err := tx.Exec(ctx, "UPDATE acme_cache SET sealed = $2, key_id = $3 WHERE name = $1 AND sealed = $4",
		name, base64.StdEncoding.EncodeToString(is.Sealed), is.KeyID, base64.StdEncoding.EncodeToString(was.Sealed))
	return err
}

// deleteACMEEntry deletes the entry with a name, if there is one.
func deleteACMEEntry(ctx context.Context, s *db.DB, name string) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM acme_cache WHERE name = $1", name)
		return err
	})
}
