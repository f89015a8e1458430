package access

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// keyUseInterval is the age in seconds from which a stored last use of a key is replaced.
const keyUseInterval = 60

const keyColumns = "id, name, hint, hash, merchant_id, scopes, created_at, expires_at, revoked_at, last_used_at, replaced_by, api_version"

func scanKey(row db.Scanner) (r Record, err error) {
	err = row.Scan(&r.ID, &r.Name, &r.Hint, keyHashCol(&r.Hash), db.NullText(&r.MerchantID), scopesCol(&r.Scopes), db.Seconds(&r.CreatedAt),
		db.Seconds(&r.ExpiresAt), db.Seconds(&r.RevokedAt), db.Seconds(&r.LastUsedAt), db.NullText(&r.ReplacedBy), &r.Version)
	return r, err
}

func keyHashCol(dst *[HashSize]byte) sql.Scanner {
	return db.Parsed(dst, func(text string) (hash [HashSize]byte, err error) {
		n, err := hex.Decode(hash[:], []byte(text[:min(len(text), 2*HashSize)]))
		if err == nil && n != HashSize {
			err = fmt.Errorf("has %d bytes", n)
		}
		return hash, err
	})
}

func scopesCol(dst *Scopes) sql.Scanner {
	return db.Parsed(dst, func(text string) (Scopes, error) { return ParseScopes(strings.Fields(text)) })
}

// Key returns a key, or ErrNotFound.
func (q Reader) Key(ctx context.Context, id string) (Record, error) {
	return db.QueryRow(ctx, q, scanKey, "SELECT "+keyColumns+" FROM api_keys WHERE id = $1", id)
}

// KeyByHash returns the key with a hash, or ErrNotFound.
func (q Reader) KeyByHash(ctx context.Context, hash [HashSize]byte) (Record, error) {
	return db.QueryRow(ctx, q, scanKey, "SELECT "+keyColumns+" FROM api_keys WHERE hash = $1", hex.EncodeToString(hash[:]))
}

// KeyFilter selects keys. Empty fields match all.
type KeyFilter struct {
	MerchantID string
	Before     string // a key's id; those listed were created before it
	Limit      int
}

// Keys lists keys, newest first.
func (q Reader) Keys(ctx context.Context, f KeyFilter) ([]Record, error) {
	w := db.Where{}
	w.Equal("merchant_id", f.MerchantID)
	w.Below("id", f.Before)
	return db.QueryAll(ctx, q, scanKey, "SELECT "+keyColumns+" FROM api_keys"+w.Text()+" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}

// countActiveKeys returns how many active keys the merchant has or, if merchantID is
// empty, the operator.
func countActiveKeys(ctx context.Context, q db.Querier, merchantID string, now time.Time) (int, error) {
	return db.QueryRow(ctx, q, db.ScanCount,
		"SELECT count(*) FROM api_keys WHERE coalesce(merchant_id, '') = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)",
		merchantID, now.Unix())
}

// KeysVersion returns how many changes of keys there were. A key that is read later reflects all these
// changes.
func (q Reader) KeysVersion(ctx context.Context) (int64, error) {
	return db.QueryRow(ctx, q, db.ScanSeq, "SELECT version FROM api_key_changes")
}

// LockKeys counts a change of keys, and keeps other transactions from changing keys until this one
// ends. Call it before InsertKey and UpdateKey.
func LockKeys(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, "UPDATE api_key_changes SET version = version + 1")
	return err
}

// InsertKey stores a new key. LockKeys must have been called.
func InsertKey(ctx context.Context, tx *db.Tx, r Record) error {
	return tx.Insert(ctx, db.Insertion{Table: "api_keys", Columns: strings.Split(keyColumns, ", ")}, [][]any{{
		r.ID, r.Name, r.Hint, hex.EncodeToString(r.Hash[:]), db.OrNull(r.MerchantID), r.Scopes.String(), r.CreatedAt.Unix(),
		db.OrNull(r.ExpiresAt), db.OrNull(r.RevokedAt), db.OrNull(r.LastUsedAt), db.OrNull(r.ReplacedBy), string(cmp.Or(r.Version, NewestVersion())),
	}})
}

// UpdateKey stores a key's expiry, revocation and replacement. LockKeys must have been called.
func UpdateKey(ctx context.Context, tx *db.Tx, r Record) error {
	n, err := tx.Exec(ctx, "UPDATE api_keys SET expires_at = $2, revoked_at = $3, replaced_by = $4 WHERE id = $1",
		r.ID, db.OrNull(r.ExpiresAt), db.OrNull(r.RevokedAt), db.OrNull(r.ReplacedBy))
	if err == nil && n == 0 {
		err = db.ErrNotFound
	}
	return err
}

// RecordKeyUses stores when keys were last used, by id. It skips a key with a stored use within the
// last minute.
func (s Tables) RecordKeyUses(ctx context.Context, uses map[string]time.Time) error {
	ids := slices.Sorted(maps.Keys(uses)) // in one order, so that replicas do not deadlock
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		for _, id := range ids {
			err := tx.Send(ctx, nil, "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)",
				id, uses[id].Unix(), uses[id].Unix()-keyUseInterval)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
