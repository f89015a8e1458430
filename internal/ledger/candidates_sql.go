package ledger

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AmountLookup asks for invoices that transfers of one amount to one receiver can pay by that amount,
// including closed ones. It leaves out invoices that cannot be paid by any of the transfers.
type AmountLookup struct {
	AmountKey
	FirstBlock, LastBlock uint64    // the transfers are in these blocks and between them
	FirstTime             time.Time // the time of FirstBlock
}

// InvoicesByCommitment returns the ids of the invoices with the commitments.
func InvoicesByCommitment(ctx context.Context, q db.Querier, commitments []invoice.Hash) (map[invoice.Hash]string, error) {
	rows := make([][]any, len(commitments))
	for n, c := range commitments {
		rows[n] = []any{int64(n), c.String()}
	}
	ids, err := lookUp(ctx, q, []string{"n BIGINT", "commitment"}, rows, "SELECT id FROM invoices WHERE "+hasCommitment(q, "commitment"))
	found := make(map[invoice.Hash]string)
	for n, id := range ids {
		if id != "" {
			found[commitments[n]] = id //nolint:gosec // there is one id for each row
		}
	}
	return found, err
}

// hasCommitment is a condition on commitment_id. id is an SQL expression; if it is empty, no invoice matches.
func hasCommitment(q db.Querier, id string) string {
	condition := "commitment_id = " + id
	if q.OnPostgres() {
		condition = firstHalf + " = nullif(substr(" + id + ", 3, 32), '')::uuid AND " + condition
	}
	return condition
}

// firstHalf is the first half of a commitment id in PostgreSQL's index invoices_by_commitment, as 16
// bytes. Two invoices with the same half are as unlikely as a collision of a 128-bit hash.
const firstHalf = "substr(commitment_id, 3, 32)::uuid"

// InvoicesByTransferAmount returns an invoice id for each transfer: the invoice to which the amount
// was last assigned as transfer amount before the transfer's block, or "".
func InvoicesByTransferAmount(ctx context.Context, q db.Querier, transfers []invoice.Transfer) ([]string, error) {
	rows := make([][]any, len(transfers))
	for n, t := range transfers {
		rows[n] = []any{int64(n), t.ChainKey, t.To.String(), t.Token.String(), t.Amount.String(), int64(t.BlockNumber)}
	}
	return lookUp(ctx, q, []string{"n BIGINT", "chain", "receiver", "coin", "moved", "block BIGINT"}, rows,
		"SELECT max(invoice_id) FROM ("+newestTransferAmounts(q, "assigned.invoice_id", " AND assigned.from_block < wanted.block", 1)+") AS newest")
}

// InvoicesByAmount returns, for each lookup, the ids of up to limit direct invoices that have the
// amount, or had it as a remainder. Invoices that were closed below FirstBlock were covered or had
// expired there; the indexes leave them out, since their number only grows.
func InvoicesByAmount(ctx context.Context, q db.Querier, lookups []AmountLookup, limit int) ([][]string, error) {
	rows := make([][]any, len(lookups))
	for n, l := range lookups {
		rows[n] = append(l.values(n), l.Amount.String())
	}
	owed := "SELECT invoice_id AS id FROM transfer_amounts " + q.IndexedBy("transfer_amounts_by_base") +
		"WHERE base = moved AND " + payable + " AND (remainder = 1 OR from_block < highest) AND "
	return listInvoices(ctx, q, append(lookupColumns, "moved"), rows, limit, owed+"closed_block IS NULL", owed+"closed_block >= lowest")
}

// InvoicesWithTolerance returns, for each lookup, the ids of up to limit direct invoices that have a
// tolerance and an amount between the lookup's and twice that. No other invoice accepts the lookup's
// amount, since a tolerance is at most half of an invoice's amount.
func InvoicesWithTolerance(ctx context.Context, q db.Querier, lookups []AmountLookup, limit int) ([][]string, error) {
	var rows [][]any
	for n, l := range lookups {
		low, high := l.Amount.Plus(invoice.NewAmount(1)).String(), l.Amount.Plus(l.Amount).String()
		// Numbers of the same length compare like their texts.
		for digits := len(low); digits <= len(high); digits++ {
			from, to := "1"+strings.Repeat("0", digits-1), strings.Repeat("9", digits)
			if digits == len(low) {
				from = low
			}
			if digits == len(high) {
				to = high
			}
			rows = append(rows, append(l.values(n), int64(digits), from, to))
		}
	}
	tolerates := "SELECT id FROM invoices " + q.IndexedBy("invoices_by_tolerance") + "WHERE tolerance <> '0' AND collection = 'direct' AND status <> 'draft' AND " +
		payable + " AND from_block + 0 < highest AND length(amount) = digits AND amount BETWEEN low AND high AND "
	return listInvoices(ctx, q, append(lookupColumns, "digits BIGINT", "low", "high"), rows, limit, tolerates+"closed_block IS NULL", tolerates+"closed_block >= lowest")
}

// lookupColumns are the first columns of a lookup in the table wanted. payable has conditions on these
// columns. The lookups compare expressions of two columns, since PostgreSQL would otherwise read all
// open invoices of a chain by their expiry, for each lookup.
var lookupColumns = []string{"n BIGINT", "chain", "receiver", "coin", "lowest BIGINT", "highest BIGINT", "mined BIGINT"}

const payable = "merchant_address = receiver AND chain_key = chain AND token = coin AND expires_at + 0 >= mined"

// values returns the values of lookupColumns for the nth lookup.
func (l AmountLookup) values(n int) []any {
	return []any{int64(n), l.ChainKey, l.Merchant.String(), l.Token.String(), int64(l.FirstBlock), int64(l.LastBlock), invoice.UnixSeconds(l.FirstTime)}
}

// listInvoices returns the ids that the queries find for each number in the first column of the rows,
// up to limit for each row. The database joins the ids of a row into one text, because reading a row
// of a result costs more than finding an id.
func listInvoices(ctx context.Context, q db.Querier, columns []string, rows [][]any, limit int, queries ...string) ([][]string, error) {
	numbers := make([]int64, len(rows))
	for i, row := range rows {
		numbers[i] = row[0].(int64)
		row[0] = int64(i)
	}
	joined, err := lookUp(ctx, q, columns, rows, "SELECT string_agg(id, ' ') FROM ("+
		strings.Join(queries, " UNION ALL ")+" LIMIT "+strconv.Itoa(limit)+") AS listed")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	lists := make([][]string, numbers[len(numbers)-1]+1) // every number is there, in order
	for i, ids := range joined {
		lists[numbers[i]] = append(lists[numbers[i]], strings.Fields(ids)...)
	}
	return lists, nil
}

// lookUp returns the result of the subquery for each of the rows, which it refers to by the names in
// columns; empty without a result. The first column is the row's index. A subquery looks up one row
// after the other; a join could read the whole table.
func lookUp(ctx context.Context, q db.Querier, columns []string, rows [][]any, subquery string) ([]string, error) {
	found := make([]string, len(rows))
	err := q.LookUpWanted(columns, rows, func(with string, args []any) error {
		return db.ForEach(ctx, q, func(row db.Scanner) error {
			var n int64
			var text string
			err := row.Scan(&n, db.Text(&text))
			if n >= 0 {
				found[n] = text
			}
			return err
		}, with+"SELECT n, ("+subquery+") FROM wanted", args...)
	})
	return found, err
}

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
