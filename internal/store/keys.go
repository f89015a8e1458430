package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
)

// keyUseInterval is how old the stored last use of a key must be to be replaced, in
// seconds.
const keyUseInterval = 60

const keyColumns = "id, name, hint, hash, merchant_id, scopes, created_at, expires_at, revoked_at, last_used_at, replaced_by, api_version"

func scanKey(row scanner) (r access.Record, err error) {
	err = row.Scan(&r.ID, &r.Name, &r.Hint, keyHashCol(&r.Hash), nullText(&r.MerchantID), scopesCol(&r.Scopes), seconds{&r.CreatedAt},
		seconds{&r.ExpiresAt}, seconds{&r.RevokedAt}, seconds{&r.LastUsedAt}, nullText(&r.ReplacedBy), &r.Version)
	return r, err
}

func keyHashCol(dst *[access.HashSize]byte) parsedColumn[[access.HashSize]byte] {
	return parsedColumn[[access.HashSize]byte]{dst, func(text string) (hash [access.HashSize]byte, err error) {
		n, err := hex.Decode(hash[:], []byte(text[:min(len(text), 2*access.HashSize)]))
		if err == nil && n != access.HashSize {
			err = fmt.Errorf("has %d bytes", n)
		}
		return hash, err
	}}
}

func scopesCol(dst *access.Scopes) parsedColumn[access.Scopes] {
	return parsedColumn[access.Scopes]{dst, func(text string) (access.Scopes, error) { return access.ParseScopes(strings.Fields(text)) }}
}

// Key returns a key, or ErrNotFound.
func (q *queries) Key(ctx context.Context, id string) (access.Record, error) {
	return queryRow(ctx, q, scanKey, "SELECT "+keyColumns+" FROM api_keys WHERE id = $1", id)
}

// KeyByHash returns the key with a hash, or ErrNotFound.
func (q *queries) KeyByHash(ctx context.Context, hash [access.HashSize]byte) (access.Record, error) {
	return queryRow(ctx, q, scanKey, "SELECT "+keyColumns+" FROM api_keys WHERE hash = $1", hex.EncodeToString(hash[:]))
}

// KeyFilter selects keys. Empty fields match all.
type KeyFilter struct {
	MerchantID string
	Before     string // a key's id; those listed were created before it
	Limit      int
}

// Keys lists keys, newest first.
func (q *queries) Keys(ctx context.Context, f KeyFilter) ([]access.Record, error) {
	w := where{}
	w.equal("merchant_id", f.MerchantID)
	w.below("id", f.Before)
	return queryAll(ctx, q, scanKey, "SELECT "+keyColumns+" FROM api_keys"+w.text()+" ORDER BY id DESC LIMIT "+parameter(w.next()), append(w.args, f.Limit)...)
}

// CountActiveKeys returns how many active keys the merchant has or, if merchantID is
// empty, the operator.
func (q *queries) CountActiveKeys(ctx context.Context, merchantID string, now time.Time) (int, error) {
	return queryRow(ctx, q, scanCount,
		"SELECT count(*) FROM api_keys WHERE coalesce(merchant_id, '') = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)",
		merchantID, now.Unix())
}

// KeysVersion returns the number of changes of keys so far. A key that is read later has
// all these changes.
func (q *queries) KeysVersion(ctx context.Context) (int64, error) {
	return queryRow(ctx, q, scanSeq, "SELECT version FROM api_key_changes")
}

// LockKeys counts a change of keys, and keeps other transactions from changing keys until
// this one ends. InsertKey and UpdateKey need it first.
func (tx *Tx) LockKeys(ctx context.Context) error {
	_, err := tx.exec(ctx, "UPDATE api_key_changes SET version = version + 1")
	return err
}

// InsertKey stores a new key. LockKeys must have been called.
func (tx *Tx) InsertKey(ctx context.Context, r access.Record) error {
	return tx.insert(ctx, insertion{table: "api_keys", columns: strings.Split(keyColumns, ", ")}, [][]any{{
		r.ID, r.Name, r.Hint, hex.EncodeToString(r.Hash[:]), orNull(r.MerchantID), r.Scopes.String(), r.CreatedAt.Unix(),
		orNull(r.ExpiresAt), orNull(r.RevokedAt), orNull(r.LastUsedAt), orNull(r.ReplacedBy), string(cmp.Or(r.Version, access.NewestVersion())),
	}})
}

// UpdateKey stores when a key expires, when it was revoked, and what replaced it. LockKeys
// must have been called.
func (tx *Tx) UpdateKey(ctx context.Context, r access.Record) error {
	n, err := tx.exec(ctx, "UPDATE api_keys SET expires_at = $2, revoked_at = $3, replaced_by = $4 WHERE id = $1",
		r.ID, orNull(r.ExpiresAt), orNull(r.RevokedAt), orNull(r.ReplacedBy))
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// RecordKeyUses stores when keys were last used, by id, except where a use within the
// last minute is stored.
func (s *Store) RecordKeyUses(ctx context.Context, uses map[string]time.Time) error {
	ids := slices.Sorted(maps.Keys(uses)) // in one order, so that replicas do not deadlock
	return s.Update(ctx, func(tx *Tx) error {
		for _, id := range ids {
			err := tx.send(ctx, nil, "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)",
				id, uses[id].Unix(), uses[id].Unix()-keyUseInterval)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
