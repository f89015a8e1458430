package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// leaseScreenings returns waiting payments about which the hook is to be asked at a time, and sets when it is asked
// again: one of each merchant and one of no merchant, then a second one of each, the longest due first. New payments queue
// behind those that were to be asked about again when they came. The result is in the order of each chain.
func leaseScreenings(ctx context.Context, tx *db.Tx, now time.Time) ([]PaymentRow, error) {
	ids, err := db.QueryAll(ctx, tx, db.ScanID, `SELECT id FROM (
			SELECT id, turn, row_number() OVER (PARTITION BY merchant_id ORDER BY turn, block_number, log_index) AS place FROM (
				SELECT id, merchant_id, block_number, log_index, CASE WHEN screening_due < screening_since THEN screening_since ELSE screening_due END AS turn
				FROM payments WHERE screening = 'waiting' AND screening_due <= $1) AS due) AS placed
		ORDER BY place, turn LIMIT $2`, now.Unix(), ScreeningBatch)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	leased, err := db.QueryIn(ids, func(chunk []any) ([]string, error) {
		return db.QueryAll(ctx, tx, db.ScanID, `UPDATE payments SET screening_due = $1 + CASE WHEN $1 - screening_since < $2 THEN $2
				WHEN $1 - screening_since > $3 THEN $3 ELSE $1 - screening_since END
			WHERE screening = 'waiting' AND screening_due <= $1 AND id IN `+db.ParameterList(3, len(chunk))+" RETURNING id",
			append([]any{now.Unix(), int64(screeningPause.Seconds()), int64(maxScreeningPause.Seconds())}, chunk...)...)
	})
	if err != nil {
		return nil, err
	}
	payments, err := PaymentsByID(ctx, tx, leased)
	slices.SortFunc(payments, func(a, b PaymentRow) int { return a.Compare(b.Position) })
	return payments, err
}

// overdueScreenings returns up to limit payments that began to wait for a verdict before a time, the oldest first.
func overdueScreenings(ctx context.Context, q db.Querier, before time.Time, limit int) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+`
		WHERE screening = 'waiting' AND screening_since < $1 ORDER BY screening_since, block_number, log_index LIMIT $2`, before.Unix(), limit)
}

// countWaiting returns how many payments wait for a verdict.
func countWaiting(ctx context.Context, q db.Querier) (int64, error) {
	return db.QueryRow(ctx, q, db.ScanSeq, "SELECT count(*) FROM payments WHERE screening = 'waiting'")
}
