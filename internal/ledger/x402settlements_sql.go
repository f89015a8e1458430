package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AuthorizationKey identifies an authorization: a token accepts each nonce of an account once.
type AuthorizationKey struct {
	ChainKey          string
	Token, Authorizer invoice.Address
	Nonce             invoice.Hash
}

// String returns the parts of the key, separated by slashes.
func (k AuthorizationKey) String() string {
	return k.ChainKey + "/" + k.Token.String() + "/" + k.Authorizer.String() + "/" + k.Nonce.String()
}

// X402Settlement is a payment of a merchant's own resource by x402.
type X402Settlement struct {
	AuthorizationKey
	InvoiceID  string
	MerchantID string
	Resource   string // the paid resource
	// ClientSecret is a digest of the secret that the merchant's server gave to the client; empty without
	// such a secret.
	ClientSecret string
	Answers      int // how often it was answered with success
	// AnsweredKey is the idempotency key of the last request that was answered with success; empty without one.
	AnsweredKey string
	CreatedAt   time.Time
}

// X402Settlement returns the settlement of an authorization, or ErrNotFound.
func (q Reader) X402Settlement(ctx context.Context, key AuthorizationKey) (X402Settlement, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (s X402Settlement, err error) {
		s.AuthorizationKey = key
		err = row.Scan(&s.InvoiceID, &s.MerchantID, &s.Resource, db.Text(&s.ClientSecret), &s.Answers, db.Text(&s.AnsweredKey), db.Milliseconds(&s.CreatedAt))
		return s, err
	}, `SELECT invoice_id, merchant_id, resource, client_secret, answers, answered_key, created_ms FROM x402_settlements
		WHERE chain_key = $1 AND token = $2 AND authorizer = $3 AND nonce = $4`, key.args()...)
}

// InsertX402Settlement inserts a settlement. It returns ErrConflict if its authorization has one.
func InsertX402Settlement(ctx context.Context, tx *db.Tx, row X402Settlement) error {
	n, err := tx.Exec(ctx, `INSERT INTO x402_settlements (chain_key, token, authorizer, nonce, invoice_id, merchant_id, resource, client_secret, created_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		append(row.args(), row.InvoiceID, row.MerchantID, row.Resource, db.OrNull(row.ClientSecret), row.CreatedAt.UnixMilli())...)
	if err == nil && n != 1 {
		err = fmt.Errorf("authorization %s has a settlement: %w", row.AuthorizationKey, db.ErrConflict)
	}
	return err
}

// CountX402Answer adds one to the answers of a settlement if there are fewer than most, and reports whether it did. The
// answer to a request with the idempotency key of the last one counts already.
func (s Tables) CountX402Answer(ctx context.Context, key AuthorizationKey, most int, request string) (counted bool, err error) {
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE x402_settlements SET answers = CASE WHEN answered_key = $6 THEN answers ELSE answers + 1 END, answered_key = $6
			WHERE chain_key = $1 AND token = $2 AND authorizer = $3 AND nonce = $4 AND (answers < $5 OR answered_key = $6)`,
			append(key.args(), most, db.OrNull(request))...)
		counted = n == 1
		return err
	})
	return counted, err
}

func (k AuthorizationKey) args() []any {
	return []any{k.ChainKey, k.Token.String(), k.Authorizer.String(), k.Nonce.String()}
}

// SentTx returns the hash of the last sent attempt of a transaction, or ErrNotFound.
func (q Reader) SentTx(ctx context.Context, txID string) (invoice.Hash, error) {
	return db.QueryRow(ctx, q, db.One(db.Hash), "SELECT tx_hash FROM chain_tx_attempts WHERE tx_id = $1 ORDER BY number DESC LIMIT 1", txID)
}

// IsHeldByOther reports whether another merchant holds an address.
func (q Reader) IsHeldByOther(ctx context.Context, a invoice.Address, merchantID string) (bool, error) {
	const wanted = " h WHERE h.address = $1"
	return db.QueryRow(ctx, q, func(row db.Scanner) (held bool, err error) {
		var n int64
		err = row.Scan(&n)
		return n == 1, err
	}, `SELECT CASE WHEN EXISTS (SELECT 1 FROM held_addresses`+wanted+`)
		AND NOT EXISTS (SELECT 1 FROM held_addresses`+wanted+` AND h.sole_holder = $2)
		AND NOT EXISTS (SELECT 1 FROM address_grants`+wanted+` AND h.merchant_id = $2) THEN 1 ELSE 0 END`, a.String(), merchantID)
}
