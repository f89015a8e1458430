package ledger

import (
	"context"
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
