package access

import (
	"cmp"
	"context"
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

var keyTable = db.NewTable("api_keys", func(r *Record) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&r.ID)),
		db.Col("name", db.Text(&r.Name)),
		db.Col("hint", db.Text(&r.Hint)),
		db.Col("hash", db.Code(&r.Hash, parseKeyHash, keyHashText)),
		db.Col("merchant_id", db.Null(db.Text(&r.MerchantID))),
		db.Col("scopes", db.Code(&r.Scopes, parseScopes, Scopes.String)),
		db.Col("created_at", db.Seconds(&r.CreatedAt)),
		db.Col("expires_at", db.Null(db.Seconds(&r.ExpiresAt))),
		db.Col("revoked_at", db.Null(db.Seconds(&r.RevokedAt))),
		db.Col("last_used_at", db.Null(db.Seconds(&r.LastUsedAt))),
		db.Col("replaced_by", db.Null(db.Text(&r.ReplacedBy))),
		db.Col("person_id", db.Null(db.Text(&r.PersonID))),
		db.Col("api_version", db.Text(&r.Version)),
	}
})

func keyHashText(hash [HashSize]byte) string { return hex.EncodeToString(hash[:]) }

func parseKeyHash(text string) (hash [HashSize]byte, err error) {
	n, err := hex.Decode(hash[:], []byte(text[:min(len(text), 2*HashSize)]))
	if err == nil && n != HashSize {
		err = fmt.Errorf("has %d bytes", n)
	}
	return hash, err
}

func parseScopes(text string) (Scopes, error) { return ParseScopes(strings.Fields(text)) }

// Key returns a key, or ErrNotFound.
func (q Reader) Key(ctx context.Context, id string) (Record, error) {
	return db.QueryRow(ctx, q, keyTable.Scan, keyTable.Select()+" WHERE id = $1", id)
}

// KeyByHash returns the key with a hash, or ErrNotFound.
func (q Reader) KeyByHash(ctx context.Context, hash [HashSize]byte) (Record, error) {
	return db.QueryRow(ctx, q, keyTable.Scan, keyTable.Select()+" WHERE hash = $1", keyHashText(hash))
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
	return db.QueryAll(ctx, q, keyTable.Scan, keyTable.Select()+w.Text()+" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}

// activeAt is a condition on a key that is active at the time in a parameter.
func activeAt(parameter string) string {
	return "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > " + parameter + ")"
}

// countActiveKeys returns how many active keys the merchant has or, if merchantID is empty, the operator.
func countActiveKeys(ctx context.Context, q db.Querier, merchantID string, now time.Time) (int, error) {
	return db.QueryRow(ctx, q, db.ScanCount,
		"SELECT count(*) FROM api_keys WHERE coalesce(merchant_id, '') = $1 AND "+activeAt("$2"),
		merchantID, now.Unix())
}

// KeysVersion returns how many changes of keys there were. A key that is read later reflects all these changes.
func (q Reader) KeysVersion(ctx context.Context) (int64, error) {
	return db.QueryRow(ctx, q, db.ScanSeq, "SELECT version FROM api_key_changes")
}

// LockKeys counts a change of keys, and keeps other transactions from changing keys until this one
// ends. Call it before InsertKey and UpdateKey.
func LockKeys(ctx context.Context, tx *db.Tx) error {
	return tx.Do(ctx, "UPDATE api_key_changes SET version = version + 1")
}

// InsertKey stores a new key. LockKeys must have been called.
func InsertKey(ctx context.Context, tx *db.Tx, r Record) error {
	r.Version = cmp.Or(r.Version, NewestVersion())
	return keyTable.Insert(ctx, tx, "", r)
}

// UpdateKey stores a key's expiry, revocation and replacement. LockKeys must have been called.
func UpdateKey(ctx context.Context, tx *db.Tx, r Record) error {
	n, err := keyTable.Only("expires_at", "revoked_at", "replaced_by").Update(ctx, tx, r, "id = $1", r.ID)
	if err == nil && n == 0 {
		err = db.ErrNotFound
	}
	return err
}

// RecordKeyUses stores when keys were last used, by id. It skips a key with a stored use within the last minute.
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
