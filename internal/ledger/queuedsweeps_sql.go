package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// QueuedSweep is a queued sweep of a token from a deposit address.
type QueuedSweep struct {
	ID           string
	ChainKey     string
	InvoiceID    string
	MerchantID   string
	CommitmentID invoice.Hash
	Factory      invoice.Address // that the address is derived from
	Address      invoice.Address // the deposit address
	Merchant     invoice.Address // settlement address
	Token        invoice.Address // zero for the network's coin
	Amount       invoice.Amount  // zero if no payment of the token is recorded
	ByPolicy     bool            // the token is the invoice's; others are swept only on command
	QueuedAt     time.Time
	RequestedAt  time.Time // zero unless a command asked for it
	Failures     int       // transactions that did not sweep it
	RetryAt      time.Time // it is not sent before; zero if it may be sent
	TxID         string    // transaction that carries it, or empty
}

// isDueSweep and isRequestedSweep select sweeps without a transaction, with the same words as the indexes.
const (
	isDueSweep       = "by_policy = 1 AND tx_id IS NULL AND retry_at IS NULL"
	isRequestedSweep = "requested_at IS NOT NULL AND tx_id IS NULL AND retry_at IS NULL"
)

// queuedSweeps reads the rows that a query of queued_sweeps selects. order is an ORDER BY
// clause, or empty for no order.
func queuedSweeps(ctx context.Context, q db.Querier, rows, order string, args ...any) ([]QueuedSweep, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (s QueuedSweep, err error) {
		var byPolicy int64
		err = row.Scan(&s.ID, &s.ChainKey, &s.InvoiceID, &s.MerchantID, db.Hash(&s.CommitmentID), db.Address(&s.Factory), db.Address(&s.Address),
			db.Address(&s.Merchant), db.Address(&s.Token), db.Amount(&s.Amount), &byPolicy, db.Seconds(&s.QueuedAt), db.Seconds(&s.RequestedAt),
			&s.Failures, db.Seconds(&s.RetryAt), db.Text(&s.TxID))
		s.ByPolicy = byPolicy == 1
		return s, err
	}, `SELECT queued.id, queued.chain_key, invoices.id, queued.merchant_id, invoices.commitment_id, invoices.deposit_factory, queued.address,
			invoices.merchant_address, queued.token, queued.amount, queued.by_policy, queued.queued_at, queued.requested_at,
			queued.failures, queued.retry_at, queued.tx_id
		FROM (SELECT * FROM queued_sweeps `+rows+`) AS queued
		JOIN deposits ON deposits.chain_key = queued.chain_key AND deposits.address = queued.address
		JOIN invoices ON invoices.id = deposits.invoice_id`+order, args...)
}

// queueSweeps queues the addresses' balances in the tokens after a change of their balances, and
// removes swept ones from the queue.
func queueSweeps(ctx context.Context, tx *db.Tx, keys []depositKey) error {
	rows := db.Each(keys, func(k depositKey) []any { return []any{k.chainKey, k.address.String(), k.token.String()} })
	err := tx.SendFrom(ctx, []string{"chain", "account", "coin"}, rows, `INSERT INTO queued_sweeps
			(id, chain_key, address, token, merchant_id, amount, by_policy, queued_at)
		SELECT chain || '/' || account || '/' || coin, chain, account, coin, deposits.merchant_id, held.unswept,
			CASE WHEN coin = invoices.token THEN 1 ELSE 0 END, held.since
		FROM wanted CROSS JOIN deposit_balances AS held CROSS JOIN deposits CROSS JOIN invoices
		WHERE held.chain_key = chain AND held.address = account AND held.token = coin AND held.since IS NOT NULL
			AND deposits.chain_key = chain AND deposits.address = account AND invoices.id = deposits.invoice_id
		ON CONFLICT (id) DO UPDATE SET amount = excluded.amount`)
	if err != nil {
		return err
	}
	err = tx.SendFrom(ctx, []string{"chain", "account", "coin"}, rows, `DELETE FROM queued_sweeps WHERE id IN (
		SELECT chain || '/' || account || '/' || coin FROM wanted CROSS JOIN deposit_balances AS held
		WHERE held.chain_key = chain AND held.address = account AND held.token = coin AND held.since IS NULL)`)
	return err
}

// SweepFilter selects queued sweeps of a chain's policy.
type SweepFilter struct {
	ChainKey     string
	Token        invoice.Address
	MinAmount    invoice.Amount // zero for any
	QueuedBefore time.Time      // zero for any time
}

// isWantedSweep selects the rows of isDueSweep that a SweepFilter selects, with the arguments of args.
const isWantedSweep = isDueSweep + " AND length(amount) >= $3 AND (length(amount) > $3 OR amount >= $4) AND queued_at < $5"

// args returns the first five arguments of a query that ends in isWantedSweep: chain, token and the
// arguments of isWantedSweep.
func (f SweepFilter) args() []any {
	least, before := f.MinAmount.String(), int64(1)<<62
	if !f.QueuedBefore.IsZero() {
		before = f.QueuedBefore.Unix()
	}
	return []any{f.ChainKey, f.Token.String(), int64(len(least)), least, before}
}

// DueSweeps returns up to limit queued sweeps of a merchant that the filter selects and no
// transaction carries, the largest first.
func DueSweeps(ctx context.Context, q db.Querier, f SweepFilter, merchantID string, limit int) ([]QueuedSweep, error) {
	due, err := queuedSweeps(ctx, q, "WHERE chain_key = $1 AND token = $2 AND merchant_id = $6 AND "+isWantedSweep+`
			ORDER BY length(amount) DESC, amount DESC LIMIT $7`, "", append(f.args(), merchantID, limit)...)
	slices.SortStableFunc(due, func(a, b QueuedSweep) int { return b.Amount.Cmp(a.Amount) }) // the join need not keep the order
	return due, err
}

// MerchantsWithSweeps returns up to limit merchants, in the database's order and after the given id,
// that have queued sweeps that the filter selects and no transaction carries. The cost grows with the
// number of merchants that have any queued sweep of the token.
func MerchantsWithSweeps(ctx context.Context, q db.Querier, f SweepFilter, after string, limit int) ([]string, error) {
	const first = "(SELECT min(merchant_id) FROM queued_sweeps WHERE chain_key = $1 AND token = $2 AND " + isDueSweep + " AND merchant_id > "
	return db.QueryAll(ctx, q, db.ScanID, `WITH RECURSIVE queued (merchant) AS (
			SELECT `+first+`$6)
			UNION ALL
			SELECT `+first+`queued.merchant) FROM queued WHERE queued.merchant IS NOT NULL)
		SELECT merchant FROM queued WHERE EXISTS (SELECT 1 FROM queued_sweeps
			WHERE chain_key = $1 AND token = $2 AND merchant_id = merchant AND `+isWantedSweep+`) LIMIT $7`, append(f.args(), after, limit)...)
}

// RequestedSweeps returns queued sweeps of the chain that a command asked for and no
// transaction carries, in the order of the commands.
func RequestedSweeps(ctx context.Context, q db.Querier, chainKey string, limit int) ([]QueuedSweep, error) {
	return queuedSweeps(ctx, q, "WHERE chain_key = $1 AND "+isRequestedSweep+" ORDER BY requested_at, id LIMIT $2",
		" ORDER BY queued.requested_at, queued.id", chainKey, limit)
}

// SweepsOfTx returns the queued sweeps that a transaction carries.
func SweepsOfTx(ctx context.Context, q db.Querier, txID string) ([]QueuedSweep, error) {
	return queuedSweeps(ctx, q, "WHERE tx_id = $1", "", txID)
}

// SweepCounts are numbers of queued sweeps of a chain.
type SweepCounts struct {
	Waiting  int64 // no transaction carries them
	InFlight int64 // a transaction carries them
	Failing  int64 // of Waiting: they wait after a transaction that did not sweep them
}

// CountSweeps counts the queued sweeps of a chain with tokens that the policy or a command sweeps.
func CountSweeps(ctx context.Context, q db.Querier, chainKey string, tokens []invoice.Address) (n SweepCounts, err error) {
	count := func(condition string, args ...any) (n int64, err error) {
		return db.QueryRow(ctx, q, db.ScanSeq, "SELECT count(*) FROM queued_sweeps WHERE chain_key = $1 AND "+condition, append([]any{chainKey}, args...)...)
	}
	for _, token := range tokens {
		due, err := count("token = $2 AND "+isDueSweep, token.String())
		if err != nil {
			return n, err
		}
		n.Waiting += due
	}
	requested, err := count("by_policy = 0 AND " + isRequestedSweep)
	if err != nil {
		return n, err
	}
	if n.Failing, err = count("retry_at IS NOT NULL"); err != nil {
		return n, err
	}
	n.Waiting += requested + n.Failing
	n.InFlight, err = count("tx_id IS NOT NULL")
	return n, err
}

// RetrySweeps makes failed sweeps of a chain due again when their time has come. It returns
// ErrConflict if the lease was lost.
func RetrySweeps(ctx context.Context, s *db.DB, l db.WorkLease, chainKey string, now time.Time) error {
	const due = "chain_key = $1 AND retry_at <= $2"
	ids, err := db.QueryAll(ctx, s, db.ScanID, "SELECT id FROM queued_sweeps WHERE "+due+" LIMIT 1", chainKey, now.Unix())
	if err != nil || len(ids) == 0 {
		return err
	}
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		return tx.Do(ctx, "UPDATE queued_sweeps SET retry_at = NULL WHERE "+due, chainKey, now.Unix())
	})
}

// SweepRequest selects deposits of a chain.
type SweepRequest struct {
	ChainKey   string
	MerchantID string           // empty for all
	InvoiceID  string           // empty for all
	Token      *invoice.Address // nil for the tokens of the invoices; zero for the network's coin
}

// RequestSweeps marks the selected queued sweeps that no transaction carries as requested by a command, and returns how
// many they are. With an invoice and a token it queues the sweep if no payment of the token is recorded.
func RequestSweeps(ctx context.Context, tx *db.Tx, r SweepRequest, now time.Time) (int64, error) {
	if r.InvoiceID != "" && r.Token != nil {
		_, err := tx.Exec(ctx, `INSERT INTO queued_sweeps (id, chain_key, address, token, merchant_id, amount, by_policy, queued_at, requested_at)
			SELECT chain_key || '/' || address || '/' || CAST($3 AS TEXT), chain_key, address, CAST($3 AS TEXT), merchant_id, '0', 0, CAST($4 AS BIGINT), CAST($4 AS BIGINT)
			FROM deposits WHERE invoice_id = $1 AND chain_key = $2 AND merchant_id = coalesce($5, merchant_id) ON CONFLICT (id) DO NOTHING`,
			r.InvoiceID, r.ChainKey, r.Token.String(), now.Unix(), db.OrNull(r.MerchantID))
		if err != nil {
			return 0, err
		}
	}
	text, args := "UPDATE queued_sweeps SET requested_at = $2, retry_at = NULL WHERE chain_key = $1 AND tx_id IS NULL", []any{r.ChainKey, now.Unix()}
	where := func(condition string, value any) {
		args = append(args, value)
		text += " AND " + condition + " " + db.Parameter(len(args))
	}
	if r.Token == nil {
		text += " AND by_policy = 1"
	} else {
		where("token =", r.Token.String())
	}
	if r.MerchantID != "" {
		where("merchant_id =", r.MerchantID)
	}
	if r.InvoiceID != "" {
		where("address = (SELECT address FROM deposits WHERE invoice_id =", r.InvoiceID)
		text += ")"
	}
	return tx.Exec(ctx, text, args...)
}

// QueuedSweeps returns the first queued sweeps of a chain by id, of one merchant unless merchantID is empty.
func QueuedSweeps(ctx context.Context, q db.Querier, chainKey, merchantID string, limit int) ([]QueuedSweep, error) {
	rows, args := "WHERE chain_key = $1 ORDER BY id LIMIT $2", []any{chainKey, limit}
	if merchantID != "" {
		rows, args = "WHERE chain_key = $1 AND merchant_id = $3 ORDER BY id LIMIT $2", append(args, merchantID)
	}
	return queuedSweeps(ctx, q, rows, " ORDER BY queued.id", args...)
}

// SweepResult is the outcome of a queued sweep in a final transaction.
type SweepResult struct {
	ID      string
	Gone    bool      // the balance is zero, unless a payment is recorded
	RetryAt time.Time // when it is sent again after a failure; zero if it did not fail
}

// SettleSweeps ends the work of a transaction on queued sweeps. Sweeps that the indexer has seen are
// no longer in the queue. It returns ErrConflict if the lease was lost.
func SettleSweeps(ctx context.Context, s *db.DB, l db.WorkLease, results []SweepResult) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		for _, r := range results {
			text, args := "UPDATE queued_sweeps SET tx_id = NULL WHERE id = $1", []any{r.ID}
			switch {
			case r.Gone:
				// If a payment was recorded in between, the sweep is due again.
				if _, err := tx.Exec(ctx, "DELETE FROM queued_sweeps WHERE id = $1 AND amount = '0'", r.ID); err != nil {
					return err
				}
			case !r.RetryAt.IsZero():
				text, args = "UPDATE queued_sweeps SET tx_id = NULL, failures = failures + 1, retry_at = $2 WHERE id = $1", []any{r.ID, r.RetryAt.Unix()}
			}
			if _, err := tx.Exec(ctx, text, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// AssignSweeps has a transaction carry queued sweeps, and returns how many of them were due. It
// records the merchants of the sweeps.
func AssignSweeps(ctx context.Context, tx *db.Tx, txID string, ids []string) (int64, error) {
	rows := db.Each(ids, func(id string) []any { return []any{id, txID} })
	return tx.UpdateFrom(ctx, []string{"item", "carrier"}, rows, `UPDATE queued_sweeps SET tx_id = carrier FROM wanted
		WHERE queued_sweeps.id = item AND queued_sweeps.tx_id IS NULL AND queued_sweeps.retry_at IS NULL`)
}

// ReleaseSweeps makes the sweeps of a transaction due again.
func ReleaseSweeps(ctx context.Context, tx *db.Tx, txID string) error {
	return tx.Do(ctx, "UPDATE queued_sweeps SET tx_id = NULL WHERE tx_id = $1", txID)
}
