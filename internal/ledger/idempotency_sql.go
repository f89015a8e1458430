package ledger

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// IdempotencyWindow is how long an idempotency key is kept.
const IdempotencyWindow = 24 * time.Hour

// IdempotencyKey is a caller's name for one create request.
type IdempotencyKey struct {
	Scope, Key  string       // the same key in two scopes is two keys
	RequestHash invoice.Hash // of the request's fields
	InvoiceID   string       // the invoice that the request created, which may be a draft that was deleted
}

// FindIdempotencyKey returns the first use of a key within the window, or ErrNotFound.
func FindIdempotencyKey(ctx context.Context, q db.Querier, scope, key string, now time.Time) (IdempotencyKey, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (IdempotencyKey, error) {
		k := IdempotencyKey{Scope: scope, Key: key}
		err := row.Scan(db.Hash(&k.RequestHash), &k.InvoiceID)
		return k, err
	}, "SELECT request_hash, invoice_id FROM idempotency_keys WHERE scope = $1 AND idem_key = $2 AND created_at > $3",
		scope, key, invoice.UnixSeconds(now.Add(-IdempotencyWindow)))
}

// sendUsedKeys asks which of the keys were used within the window before a time. After the next Flush,
// used has the invoices that the requests with these keys created.
func sendUsedKeys(ctx context.Context, tx *db.Tx, keys []IdempotencyKey, now time.Time) (used map[string]bool, err error) {
	used = make(map[string]bool)
	rows := db.Each(keys, func(k IdempotencyKey) []any { return []any{k.InvoiceID, k.Scope, k.Key} })
	err = tx.LookUpWanted([]string{"requested", "wanted_scope", "wanted_key"}, rows, func(with string, args []any) error {
		match := "idempotency_keys WHERE scope = wanted_scope AND idem_key = wanted_key AND created_at > " + db.Parameter(len(args)+1)
		return tx.Send(ctx, func(row db.Scanner) error {
			var id string
			err := row.Scan(&id)
			used[id] = true
			return err
		}, with+"SELECT requested"+db.FromExisting(match), append(args, invoice.UnixSeconds(now.Add(-IdempotencyWindow)))...)
	})
	return used, err
}

// keyColumns are the columns of the Idempotency-Key with which a payment link, a refund or a submission was made.
var keyColumns = []string{"idem_scope", "idem_key", "request_hash"}

// keyValues returns the values of keyColumns. They are NULL if key is empty.
func keyValues(scope, key string, hash invoice.Hash) []any {
	if key == "" {
		return []any{nil, nil, nil}
	}
	return []any{scope, key, hash.String()}
}

// keyInsertion replaces keys that are older than the window. For a younger one, created_at becomes NULL, which the table
// refuses.
var keyInsertion = db.Insertion{
	Table:   "idempotency_keys",
	Columns: []string{"invoice_id", "scope", "idem_key", "request_hash", "created_at BIGINT"},
	Conflict: `ON CONFLICT (scope, idem_key) DO UPDATE SET request_hash = excluded.request_hash, invoice_id = excluded.invoice_id,
		created_at = CASE WHEN idempotency_keys.created_at <= excluded.created_at - ` + strconv.Itoa(int(IdempotencyWindow/time.Second)) +
		` THEN excluded.created_at END`,
}

// InsertIdempotencyKeys records the first uses of keys, each given once. If a key was used within the window, the
// transaction fails with an error for which db.Taken holds. The invoices must have been inserted. Keys are inserted in
// sorted order, so that transactions that insert the same ones do not deadlock.
func InsertIdempotencyKeys(ctx context.Context, tx *db.Tx, keys []IdempotencyKey, now time.Time) error {
	keys = slices.SortedFunc(slices.Values(keys), func(a, b IdempotencyKey) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
	})
	rows := db.Each(keys, func(k IdempotencyKey) []any {
		return []any{k.InvoiceID, k.Scope, k.Key, k.RequestHash.String(), invoice.UnixSeconds(now)}
	})
	return tx.Insert(ctx, keyInsertion, rows)
}

// DeleteIdempotencyKeys deletes up to limit keys that are older than the window. It returns how many it deleted.
func DeleteIdempotencyKeys(ctx context.Context, tx *db.Tx, now time.Time, limit int) (int64, error) {
	return tx.Exec(ctx, `DELETE FROM idempotency_keys WHERE (scope, idem_key) IN (
		SELECT scope, idem_key FROM idempotency_keys WHERE created_at <= $1 LIMIT $2)`, invoice.UnixSeconds(now.Add(-IdempotencyWindow)), limit)
}
