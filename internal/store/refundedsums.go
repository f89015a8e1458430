package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// RefundedSums returns how much of the payments with the ids was refunded, in
// refunds that are not orphaned, by id.
func (q *queries) RefundedSums(ctx context.Context, ids []string) (map[string]invoice.Amount, error) {
	sums := make(map[string]invoice.Amount, len(ids))
	type row struct {
		id  string
		sum invoice.Amount
	}
	rows, err := queryIn(ids, func(chunk []any) ([]row, error) {
		return queryAll(ctx, q, func(s scanner) (r row, err error) {
			err = s.Scan(&r.id, amountCol(&r.sum))
			return r, err
		}, "SELECT id, amount_refunded FROM payments WHERE id IN "+parameterList(0, len(chunk)), chunk...)
	})
	for _, r := range rows {
		sums[r.id] = r.sum
	}
	return sums, err
}

// SaveRefundedSums writes how much of payments was refunded, by id.
func (tx *Tx) SaveRefundedSums(ctx context.Context, sums map[string]invoice.Amount) error {
	rows := make([][]any, 0, len(sums))
	for id, sum := range sums {
		rows = append(rows, []any{id, sum.String()})
	}
	return tx.sendFrom(ctx, []string{"id", "amount_refunded"}, rows,
		"UPDATE payments SET amount_refunded = wanted.amount_refunded FROM wanted WHERE payments.id = wanted.id")
}
