package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// RefundedSum is how much of a payment was refunded, in refunds that are not orphaned. The sums are stored with the
// payments, so that a refund does not read all refunds before it.
type RefundedSum struct {
	All   invoice.Amount
	Final invoice.Amount // the part in confirmed refunds
}

// plus returns the sum with a refund.
func (s RefundedSum) plus(r invoice.Refund) RefundedSum { return s.change(r, invoice.Amount.Plus) }

// minus returns the sum without a refund.
func (s RefundedSum) minus(r invoice.Refund) RefundedSum { return s.change(r, invoice.Amount.Minus) }

func (s RefundedSum) change(r invoice.Refund, by func(sum, amount invoice.Amount) invoice.Amount) RefundedSum {
	if isActive(r) {
		s.All = by(s.All, r.Amount)
	}
	if r.Status == invoice.Confirmed {
		s.Final = by(s.Final, r.Amount)
	}
	return s
}

// RefundedSums returns how much of the payments with the ids was refunded, by id.
func RefundedSums(ctx context.Context, q db.Querier, ids []string) (map[string]RefundedSum, error) {
	sums := make(map[string]RefundedSum, len(ids))
	type row struct {
		id  string
		sum RefundedSum
	}
	rows, err := db.AllIn(ctx, q, func(s db.Scanner) (r row, err error) {
		err = s.Scan(&r.id, db.Amount(&r.sum.All), db.Amount(&r.sum.Final))
		return r, err
	}, "SELECT id, amount_refunded, refunded_final FROM payments WHERE id IN ", ids)
	for _, r := range rows {
		sums[r.id] = r.sum
	}
	return sums, err
}

// AmountsRefunded returns the confirmed refunds of payments added up, by payment id. Payments without a confirmed refund
// are left out.
func (q Reader) AmountsRefunded(ctx context.Context, paymentIDs []string) (map[string]invoice.Amount, error) {
	sums, err := RefundedSums(ctx, q, paymentIDs)
	final := make(map[string]invoice.Amount)
	for id, sum := range sums {
		if !sum.Final.IsZero() {
			final[id] = sum.Final
		}
	}
	return final, err
}

// SaveRefundedSums writes how much of payments was refunded, by id.
func SaveRefundedSums(ctx context.Context, tx *db.Tx, sums map[string]RefundedSum) error {
	rows := make([][]any, 0, len(sums))
	for id, sum := range sums {
		rows = append(rows, []any{id, sum.All.String(), sum.Final.String()})
	}
	return tx.SendFrom(ctx, []string{"id", "refunded", "confirmed"}, rows,
		"UPDATE payments SET amount_refunded = wanted.refunded, refunded_final = wanted.confirmed FROM wanted WHERE payments.id = wanted.id")
}
