package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AuthorizationStatus is the state of a stored authorization.
type AuthorizationStatus string

// The states of an authorization. A reorg can orphan the payment of an authorization that is accepted or sent.
const (
	AuthorizationAccepted AuthorizationStatus = "accepted" // to be sent
	AuthorizationSent     AuthorizationStatus = "sent"     // a transaction carries it
	AuthorizationPaid     AuthorizationStatus = "paid"     // its payment is final
	AuthorizationRefused  AuthorizationStatus = "refused"  // it was not carried out and never will be
)

// Authorization is a signed transfer that was accepted for an invoice.
type Authorization struct {
	invoice.Authorization
	ID         string
	ChainKey   string
	Token      invoice.Address
	InvoiceID  string
	MerchantID string
	Gas        uint64 // that the transfer used in a simulation
	Status     AuthorizationStatus
	Reason     invoice.Refusal // with AuthorizationRefused
	TxID       string          // newest transaction that carries or carried it, or empty
	CreatedAt  time.Time
	Scheduled  time.Time // CreatedAt by the schedule's clock
	EndedAt    time.Time // when it was paid or refused; zero before
	// Payment is its transfer, or nil before it is observed. Inserts ignore it.
	Payment *AuthorizedPayment
}

// AuthorizedPayment is the payment that an authorization made.
type AuthorizedPayment struct {
	ID     string
	TxHash invoice.Hash
	Status invoice.PaymentStatus
}

// Paid reports whether a payment of the authorization was observed that no reorg has orphaned.
func (a Authorization) Paid() bool { return a.Payment != nil && a.Payment.Status != invoice.Orphaned }

var authorizationTable = db.NewTable("authorizations", func(a *Authorization) []db.Column {
	p := cmp.Or(a.Payment, new(AuthorizedPayment))
	a.Payment = p
	return []db.Column{
		db.Col("id", db.Text(&a.ID)),
		db.Col("chain_key", db.Text(&a.ChainKey)),
		db.Col("token", db.Address(&a.Token)),
		db.Col("authorizer", db.Address(&a.From)),
		db.Col("nonce", db.Hash(&a.Nonce)),
		db.Col("invoice_id", db.Text(&a.InvoiceID)),
		db.Col("merchant_id", db.Text(&a.MerchantID)),
		db.Col("recipient", db.Address(&a.To)),
		db.Col("value", db.Amount(&a.Value)),
		db.Col("valid_after", db.Seconds(&a.ValidAfter)),
		db.Col("valid_before", db.Seconds(&a.ValidBefore)),
		db.Col("signature", db.CodeOf(&a.Signature, hexutil.Decode, hexutil.Encode)),
		db.Col("gas", db.Int(&a.Gas)),
		db.Col("status", db.Text(&a.Status)),
		db.Col("reason", db.Null(db.Text(&a.Reason))),
		db.Col("tx_id", db.Null(db.Text(&a.TxID))),
		db.Col("created_ms", db.Milliseconds(&a.CreatedAt)),
		db.Col("created_scheduled_ms", db.Null(db.Milliseconds(&a.Scheduled))),
		db.Col("ended_ms", db.Null(db.Milliseconds(&a.EndedAt))),
		db.Expr("p.id", db.Text(&p.ID)),
		db.Expr("p.tx_hash", db.Hash(&p.TxHash)),
		db.Expr("p.status", db.Text(&p.Status)),
	}
}).Finished(func(a *Authorization) {
	if a.Payment.ID == "" {
		a.Payment = nil
	}
})

var selectAuthorizations = "SELECT " + authorizationTable.Of("a") + AuthorizationTables

// AuthorizationTables joins each authorization with its payment.
const AuthorizationTables = " FROM authorizations a LEFT JOIN payments p ON p.id = a.payment_id"

// IsUnpaid holds for authorizations without a payment, or with an orphaned one.
const IsUnpaid = "(a.payment_id IS NULL OR p.status = 'orphaned')"

// isPendingAuthorization holds for unpaid authorizations with an open outcome. It names the states of
// the index authorizations_open.
const isPendingAuthorization = "a.status IN ('accepted', 'sent') AND " + IsUnpaid

// isDueAuthorization holds for authorizations that still have to be sent.
const isDueAuthorization = "a.status = 'accepted' AND " + isPendingAuthorization

// InsertAuthorization inserts an accepted authorization. It returns ErrConflict if the nonce of the payer is bound.
func InsertAuthorization(ctx context.Context, tx *db.Tx, a Authorization) error {
	a.Status = AuthorizationAccepted
	accepted := authorizationTable.Without("reason", "tx_id", "ended_ms")
	err := tx.InsertNew(ctx, accepted.Insertion("ON CONFLICT (chain_key, token, authorizer, nonce) DO NOTHING"), accepted.Values(a))
	if errors.Is(err, db.ErrConflict) {
		err = fmt.Errorf("nonce %s of %s is bound: %w", a.Nonce, a.From, err)
	}
	return err
}

// Authorization returns the authorization with the id, or ErrNotFound.
func (q Reader) Authorization(ctx context.Context, id string) (Authorization, error) {
	return db.QueryRow(ctx, q, authorizationTable.Scan, selectAuthorizations+" WHERE a.id = $1", id)
}

// AuthorizationByNonce returns the authorization that a nonce of a payer is bound to, or ErrNotFound.
func (q Reader) AuthorizationByNonce(ctx context.Context, chainKey string, token, authorizer invoice.Address, nonce invoice.Hash) (Authorization, error) {
	return db.QueryRow(ctx, q, authorizationTable.Scan, selectAuthorizations+
		" WHERE a.chain_key = $1 AND a.token = $2 AND a.authorizer = $3 AND a.nonce = $4",
		chainKey, token.String(), authorizer.String(), nonce.String())
}

// paymentByNonce returns the payment that an authorization with the nonce of the payer made, whether
// the service accepted it or not, or ErrNotFound. Orphaned payments do not count.
func paymentByNonce(ctx context.Context, q db.Querier, chainKey string, token, authorizer invoice.Address, nonce invoice.Hash) (PaymentRow, error) {
	return db.QueryRow(ctx, q, paymentTable.Scan, paymentTable.Select()+`
		WHERE authorization_id = $1 AND from_address = $2 AND token = $3 AND chain_key = $4 AND status <> 'orphaned' LIMIT 1`,
		nonce.String(), authorizer.String(), token.String(), chainKey)
}

// AuthorizationsOfInvoice returns up to limit authorizations of an invoice, newest first.
func (q Reader) AuthorizationsOfInvoice(ctx context.Context, invoiceID string, limit int) ([]Authorization, error) {
	return db.QueryAll(ctx, q, authorizationTable.Scan, selectAuthorizations+
		" WHERE a.invoice_id = $1 ORDER BY a.id DESC LIMIT $2", invoiceID, limit)
}

// BoundAuthorization is the invoice that a nonce is bound to, and what was signed with it.
type BoundAuthorization struct {
	ID        string
	InvoiceID string
	To        invoice.Address
	Value     invoice.Amount
	PaymentID string // empty before its transfer was observed
}

// IsMadeBy reports whether a transfer with the nonce carries out this authorization. A payer can sign
// several authorizations with one nonce, and have any of them carried out.
func (a BoundAuthorization) IsMadeBy(t invoice.Transfer) bool {
	return a.To == t.To && a.Value == t.Amount
}

// BoundAuthorizations returns the invoices to which the transfers' nonces are bound, by the index of
// the transfer. It leaves out transfers without a bound nonce.
func BoundAuthorizations(ctx context.Context, q db.Querier, transfers []invoice.Transfer) (map[int]BoundAuthorization, error) {
	bound := make(map[int]BoundAuthorization)
	var rows [][]any
	for i, t := range transfers {
		if nonce := t.Evidence.Authorization; !nonce.IsZero() {
			rows = append(rows, []any{int64(i), t.ChainKey, t.Token.String(), t.From.String(), nonce.String()})
		}
	}
	err := q.LookUpWanted([]string{"n BIGINT", "chain", "contract", "payer", "wanted_nonce"}, rows, func(with string, args []any) error {
		return db.ForEach(ctx, q, func(row db.Scanner) error {
			var n int
			var a BoundAuthorization
			err := row.Scan(&n, &a.ID, &a.InvoiceID, db.Address(&a.To), db.Amount(&a.Value), db.Text(&a.PaymentID))
			bound[n] = a
			return err
		}, with+`SELECT n, id, invoice_id, recipient, value, payment_id FROM wanted CROSS JOIN authorizations
			WHERE chain_key = chain AND token = contract AND authorizer = payer AND nonce = wanted_nonce`, args...)
	})
	return bound, err
}

// SetAuthorizationPayments records which payments authorizations made, by authorization; an empty id
// means that it made no payment. An authorization that was refused before it was sent, and that
// another account has submitted, is open again: a reorg can drop its payment.
func SetAuthorizationPayments(ctx context.Context, tx *db.Tx, made map[string]string) error {
	rows := make([][]any, 0, len(made))
	for id, paymentID := range made {
		rows = append(rows, []any{id, paymentID})
	}
	err := tx.SendFrom(ctx, []string{"authorization_id", "made"}, rows, `UPDATE authorizations SET payment_id = NULLIF(made, ''), reason = NULL,
			status = CASE status WHEN 'refused' THEN 'accepted' ELSE status END, ended_ms = CASE status WHEN 'refused' THEN NULL ELSE ended_ms END
		FROM wanted WHERE id = authorization_id`)
	return err
}

// EndAuthorizations ends the authorizations of a chain with an outcome that is certain at a final block of that time:
// paid ones with a confirmed or held payment, and refused ones if the chain has passed their window without a payment.
func EndAuthorizations(ctx context.Context, tx *db.Tx, chainKey string, final time.Time, reason invoice.Refusal, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE authorizations SET status = 'paid', ended_ms = $2 WHERE chain_key = $1 AND status IN ('accepted', 'sent')
		AND payment_id IN (SELECT id FROM payments WHERE status IN ('confirmed', 'held') AND payments.id = authorizations.payment_id)`, chainKey, now.UnixMilli())
	if err != nil {
		return err
	}
	return tx.Do(ctx, `UPDATE authorizations SET status = 'refused', reason = $3, ended_ms = $4
		WHERE chain_key = $1 AND status IN ('accepted', 'sent') AND valid_before <= $2
		AND (payment_id IS NULL OR EXISTS (SELECT 1 FROM payments WHERE payments.id = authorizations.payment_id AND payments.status = 'orphaned'))`,
		chainKey, final.Unix(), string(reason), now.UnixMilli())
}

// CountAuthorizations returns how many authorizations of a chain were accepted in a window: in all, for
// the merchant and from the payer. An authorization that was refused and never sent counts only for the
// payer, because it costs a row but no gas.
func CountAuthorizations(ctx context.Context, q db.Querier, chainKey, merchantID string, authorizer invoice.Address, w Window) (all, merchant, payer int64, err error) {
	const accepted = "SELECT count(*) FROM authorizations WHERE chain_key = $1 AND created_ms > $2 AND COALESCE(created_scheduled_ms, created_ms) > $5"
	const sendable = accepted + " AND (status <> 'refused' OR tx_id IS NOT NULL)"
	n, err := db.QueryRow(ctx, q, func(row db.Scanner) (n [3]int64, err error) {
		err = row.Scan(&n[0], &n[1], &n[2])
		return n, err
	}, "SELECT ("+sendable+"), ("+sendable+" AND merchant_id = $3), ("+accepted+" AND authorizer = $4)",
		chainKey, w.Oldest.UnixMilli(), merchantID, authorizer.String(), w.Since.UnixMilli())
	return n[0], n[1], n[2], err
}

// PendingAuthorization returns an authorization of the invoice with an open outcome and without a
// payment, or ErrNotFound.
func (q Reader) PendingAuthorization(ctx context.Context, invoiceID string) (Authorization, error) {
	return db.QueryRow(ctx, q, authorizationTable.Scan, selectAuthorizations+
		" WHERE a.invoice_id = $1 AND "+isPendingAuthorization+" LIMIT 1", invoiceID)
}

// DueAuthorizations returns accepted authorizations of the chain without a payment, ordered by when
// they lapse, from those that lapse at a time and have an id above the given one. It leaves out those that a
// transaction carried and that lapsed by the time of a block.
func DueAuthorizations(ctx context.Context, q db.Querier, chainKey string, block, lapse time.Time, id string, limit int) ([]Authorization, error) {
	return db.QueryAll(ctx, q, authorizationTable.Scan, selectAuthorizations+
		" WHERE a.chain_key = $1 AND "+isDueAuthorization+` AND (a.valid_before, a.id) > ($2, $3) AND (a.tx_id IS NULL OR a.valid_before > $5)
		ORDER BY a.valid_before, a.id LIMIT $4`, chainKey, lapse.Unix(), id, limit, block.Unix())
}

// RefuseAuthorization refuses an authorization that no transaction ever carried and that made no
// payment. On other authorizations it has no effect. It returns ErrConflict if the lease was lost.
func RefuseAuthorization(ctx context.Context, s *db.DB, l db.WorkLease, id string, reason invoice.Refusal, at time.Time) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		return tx.Do(ctx, `UPDATE authorizations SET status = 'refused', reason = $2, ended_ms = $3
			WHERE id = $1 AND status = 'accepted' AND tx_id IS NULL AND payment_id IS NULL`, id, string(reason), at.UnixMilli())
	})
}

// CountDueAuthorizations returns how many accepted authorizations of the chain have no payment.
func CountDueAuthorizations(ctx context.Context, q db.Querier, chainKey string) (int64, error) {
	return db.QueryRow(ctx, q, db.ScanSeq, "SELECT count(*)"+AuthorizationTables+
		" WHERE a.chain_key = $1 AND "+isDueAuthorization, chainKey)
}

// ReleaseAuthorizations makes the open authorizations of a transaction due again. It returns
// ErrConflict if the lease was lost.
func ReleaseAuthorizations(ctx context.Context, s *db.DB, l db.WorkLease, txID string) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error { return ReleaseTxAuthorizations(ctx, tx, txID) })
}

// AssignAuthorizations assigns accepted authorizations to a transaction, and returns how many it assigned.
func AssignAuthorizations(ctx context.Context, tx *db.Tx, txID string, ids []string) (assigned int64, err error) {
	for _, id := range ids {
		n, err := tx.Exec(ctx, "UPDATE authorizations SET status = 'sent', tx_id = $2 WHERE id = $1 AND status = 'accepted'", id, txID)
		if err != nil {
			return assigned, err
		}
		assigned += n
	}
	return assigned, nil
}

// ReleaseTxAuthorizations makes the authorizations of a transaction due again.
func ReleaseTxAuthorizations(ctx context.Context, tx *db.Tx, txID string) error {
	return tx.Do(ctx, "UPDATE authorizations SET status = 'accepted' WHERE tx_id = $1 AND status = 'sent'", txID)
}

// maxClockError is how much a machine's clock may have been behind when it wrote a time. Such a row
// still counts for as long as it should.
const maxClockError = 24 * time.Hour

// Window is the span of time in which spending counts against a budget. The schedule's clock judges it,
// because the machine's clock may jump.
type Window struct {
	Since time.Time // by the schedule's clock
	// Oldest is a time by the machine's clock. Older rows are not read, since the indexes have that clock's times.
	Oldest time.Time
}

// WindowBefore returns the window of a length that ends now, at a time by the machine's clock and one
// by the schedule's.
func WindowBefore(now, scheduled time.Time, length time.Duration) Window {
	return Window{Since: scheduled.Add(-length), Oldest: clock.Earlier(now, scheduled).Add(-length - maxClockError)}
}

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
