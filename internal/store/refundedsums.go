package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// RefundedSums returns how much of the payments with the ids was paid back in
// refunds that are not orphaned, by id. Those of which it is not known are
// listed instead: their refunds must be added up.
func (q *queries) RefundedSums(ctx context.Context, ids []string) (sums map[string]invoice.Amount, unknown []string, err error) {
	sums = make(map[string]invoice.Amount, len(ids))
	type row struct {
		id    string
		sum   invoice.Amount
		stale bool
	}
	rows, err := queryIn(ids, func(chunk []any) ([]row, error) {
		return queryAll(ctx, q, func(s scanner) (r row, err error) {
			err = s.Scan(&r.id, amountCol(&r.sum), &r.stale)
			return r, err
		}, "SELECT id, paid_back, paid_back_stale FROM payments WHERE id IN "+parameterList(0, len(chunk)), chunk...)
	})
	for _, r := range rows {
		if r.stale {
			unknown = append(unknown, r.id)
		} else {
			sums[r.id] = r.sum
		}
	}
	return sums, unknown, err
}

// SaveRefundedSums writes how much of payments was paid back, by id.
func (tx *Tx) SaveRefundedSums(ctx context.Context, sums map[string]invoice.Amount) error {
	rows := make([][]any, 0, len(sums))
	for id, sum := range sums {
		rows = append(rows, []any{id, sum.String()})
	}
	err := tx.sendFrom(ctx, []string{"id", "paid_back"}, rows,
		"UPDATE payments SET paid_back = wanted.paid_back, paid_back_stale = 0 FROM wanted WHERE payments.id = wanted.id")
	return err
}
