package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// IdempotencyWindow is how long a key makes a create safe to repeat, in
// seconds.
const IdempotencyWindow = 24 * 60 * 60

// IdempotencyKey is a caller's name for one create. Scope keeps the keys of
// two callers apart.
type IdempotencyKey struct {
	Scope, Key  string
	RequestHash invoice.Hash // of what was asked for
	InvoiceID   string       // the answer
}

// IdempotencyKey returns the key's first use within the window, or
// ErrNotFound.
func (q *queries) IdempotencyKey(ctx context.Context, scope, key string, now int64) (IdempotencyKey, error) {
	return queryRow(ctx, q, func(row scanner) (IdempotencyKey, error) {
		k := IdempotencyKey{Scope: scope, Key: key}
		err := row.Scan(hashCol(&k.RequestHash), &k.InvoiceID)
		return k, err
	}, "SELECT request_hash, invoice_id FROM idempotency_keys WHERE scope = $1 AND idem_key = $2 AND created_at > $3",
		scope, key, now-IdempotencyWindow)
}

// InsertIdempotencyKey records the first use of a key. It reports false when
// the key was used within the window; the first use of one older than that is
// forgotten. The invoice may be inserted later in the same transaction only
// where the database defers the check, so insert it first.
func (tx *Tx) InsertIdempotencyKey(ctx context.Context, k IdempotencyKey, now int64) (bool, error) {
	n, err := tx.exec(ctx, `INSERT INTO idempotency_keys (scope, idem_key, request_hash, invoice_id, created_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (scope, idem_key) DO UPDATE SET request_hash = excluded.request_hash,
			invoice_id = excluded.invoice_id, created_at = excluded.created_at
		WHERE idempotency_keys.created_at <= $6`,
		k.Scope, k.Key, k.RequestHash.String(), k.InvoiceID, now, now-IdempotencyWindow)
	return n == 1, err
}

// DeleteIdempotencyKeys forgets up to limit keys older than the window and
// returns how many.
func (tx *Tx) DeleteIdempotencyKeys(ctx context.Context, now int64, limit int) (int64, error) {
	return tx.exec(ctx, `DELETE FROM idempotency_keys WHERE (scope, idem_key) IN
		(SELECT scope, idem_key FROM idempotency_keys WHERE created_at <= $1 LIMIT $2)`, now-IdempotencyWindow, limit)
}
