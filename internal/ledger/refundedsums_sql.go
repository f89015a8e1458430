package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// RefundedSums returns how much of the payments with the ids was refunded, in
// refunds that are not orphaned, by id.
func RefundedSums(ctx context.Context, q db.Querier, ids []string) (map[string]invoice.Amount, error) {
	sums := make(map[string]invoice.Amount, len(ids))
	type row struct {
		id  string
		sum invoice.Amount
	}
	rows, err := db.QueryIn(ids, func(chunk []any) ([]row, error) {
		return db.QueryAll(ctx, q, func(s db.Scanner) (r row, err error) {
			err = s.Scan(&r.id, db.Amount(&r.sum))
			return r, err
		}, "SELECT id, amount_refunded FROM payments WHERE id IN "+db.ParameterList(0, len(chunk)), chunk...)
	})
	for _, r := range rows {
		sums[r.id] = r.sum
	}
	return sums, err
}

// SaveRefundedSums writes how much of payments was refunded, by id.
func SaveRefundedSums(ctx context.Context, tx *db.Tx, sums map[string]invoice.Amount) error {
	rows := make([][]any, 0, len(sums))
	for id, sum := range sums {
		rows = append(rows, []any{id, sum.String()})
	}
	return tx.SendFrom(ctx, []string{"id", "amount_refunded"}, rows,
		"UPDATE payments SET amount_refunded = wanted.amount_refunded FROM wanted WHERE payments.id = wanted.id")
}
