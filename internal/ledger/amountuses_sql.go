package ledger

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AmountKey is an amount of a token at an address.
type AmountKey struct {
	ChainKey        string
	Merchant, Token invoice.Address
	Amount          invoice.Amount
}

// With returns the key of another amount at the same address.
func (k AmountKey) With(a invoice.Amount) AmountKey {
	k.Amount = a
	return k
}

// AmountUse describes the invoices that an amount at an address already refers to.
type AmountUse struct {
	// Taken is set if it is the amount or the transfer amount of an open direct invoice.
	Taken bool
	// Until is the latest expiresAt of the closed invoices with this transfer amount. It is zero if no
	// such invoice expired since the requested time.
	Until time.Time
}

// AmountUses returns how the amounts are used. Closed invoices count if they expired at or after since, which is called
// after the first lookup. The cost does not depend on the number of invoices.
func AmountUses(ctx context.Context, q db.Querier, keys []AmountKey, since func() time.Time) (map[AmountKey]AmountUse, error) {
	uses := make(map[AmountKey]AmountUse)
	rows := make([][]any, len(keys))
	for n, k := range keys {
		rows[n] = []any{int64(n), k.ChainKey, k.Merchant.String(), k.Token.String(), k.Amount.String()}
	}
	err := q.LookUpWanted([]string{"n BIGINT", "chain", "receiver", "coin", "moved"}, rows, func(with string, args []any) error {
		return lookUpAmountUses(ctx, q, with, args, func(n int64, taken bool, until time.Time) {
			if until.Before(since()) {
				until = time.Time{}
			}
			if n >= 0 && (taken || !until.IsZero()) {
				uses[keys[n]] = AmountUse{Taken: taken, Until: until}
			}
		})
	})
	return uses, err
}

// newestTransferAmounts selects a column of the n newest rows of transfer_amounts, named assigned,
// that have the wanted amount and meet a condition. The columns of wanted identify the amount.
//
// PostgreSQL reads the index transfer_amounts_by_key, which stays small because it holds a hash of
// these columns. The index ends in the block, so the query selects all rows of the last row's block,
// even more than n. There are few, since an amount belongs to only one open invoice at a time.
func newestTransferAmounts(q db.Querier, column, condition string, n int) string {
	key, order := "", "assigned.from_block DESC, assigned.invoice_id DESC LIMIT "+strconv.Itoa(n)
	if q.OnPostgres() {
		key = `hashtextextended(assigned.amount || assigned.merchant_address || assigned.chain_key || assigned.token, 0)
			= hashtextextended(wanted.moved || wanted.receiver || wanted.chain || wanted.coin, 0) AND `
		order = "assigned.from_block DESC FETCH FIRST " + strconv.Itoa(n) + " ROWS WITH TIES"
	}
	return "SELECT " + column + " FROM transfer_amounts AS assigned WHERE " + key + `assigned.amount = wanted.moved AND assigned.merchant_address = wanted.receiver
		AND assigned.chain_key = wanted.chain AND assigned.token = wanted.coin` + condition + " ORDER BY " + order
}

// live replaces the expiry of an open invoice.
const live = 1 << 62

// maxRecentInvoices is how many of the newest invoices with a transfer amount are read. The newest invoice usually
// expires last, because an amount is assigned again only after earlier invoices with it have expired.
const maxRecentInvoices = 8

// lookUpAmountUses looks up each wanted amount by index, and stops at the first row. A join could read
// all open invoices.
func lookUpAmountUses(ctx context.Context, q db.Querier, with string, args []any, report func(n int64, taken bool, until time.Time)) error {
	return db.ForEach(ctx, q, func(row db.Scanner) error {
		var n, bare int64
		var until sql.NullInt64
		err := row.Scan(&n, &bare, &until)
		switch {
		case until.Int64 == live:
			report(n, true, time.Time{})
		case until.Valid:
			report(n, bare == 1, invoice.Unix(until.Int64))
		default:
			report(n, bare == 1, time.Time{})
		}
		return err
	}, with+`SELECT n, CASE WHEN EXISTS (SELECT 1 FROM transfer_amounts AS owed WHERE owed.base = moved AND owed.merchant_address = receiver
			AND owed.chain_key = chain AND owed.token = coin AND owed.closed_block IS NULL LIMIT 1 OFFSET 0) THEN 1 ELSE 0 END,
		(SELECT max(until) FROM (`+
		newestTransferAmounts(q, "CASE assigned.live WHEN 1 THEN "+strconv.Itoa(live)+" ELSE assigned.expires_at END AS until", "", maxRecentInvoices)+`) AS newest)
		FROM wanted`, args...)
}
