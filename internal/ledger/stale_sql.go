package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// markStale marks the rollups of confirmed payments of invoices, and of the refunds of those
// payments, because their periods may have been added up without them.
func markStale(ctx context.Context, tx *db.Tx, payments []PaymentRow) error {
	var rows [][]any
	var ids []string
	for _, p := range payments {
		if p.Attributed() && !p.ConfirmedAt.IsZero() {
			rows, ids = append(rows, []any{p.ID, RollupStart(p.ConfirmedAt).Unix()}), append(ids, p.ID)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := insertStale(ctx, tx, rows); err != nil {
		return err
	}
	return markRefundsStale(ctx, tx, ids)
}

// markConfirmed marks the rollup of the payments and refunds of a chain that are pending up to a block
// and are about to be confirmed as ConfirmThrough does, if it was added up already. The clock that gave the time
// may be behind the clock of the rollups. The cursor of the chain must be locked.
func markConfirmed(ctx context.Context, tx *db.Tx, chainKey string, number uint64, at time.Time, recovery bool) error {
	through, err := NewReader(tx).RollupsThrough(ctx)
	if err != nil || !recovery && !at.Before(through) {
		return err
	}
	quarter := rollupStartOf(confirmedAt(recovery))
	const pending = " WHERE chain_key = $1 AND block_number <= $2 AND status = 'pending'"
	return tx.Send(ctx, nil, `INSERT INTO stale_rollups (object_id, quarter) SELECT id, `+quarter+` FROM payments`+pending+` AND invoice_id IS NOT NULL
		UNION ALL SELECT id, `+quarter+` FROM refunds`+pending+` ON CONFLICT (object_id) DO UPDATE SET quarter = excluded.quarter`,
		chainKey, int64(number), at.Unix())
}

// markRefundedBefore marks the rollups of confirmed refunds of a chain's payments that are pending up to a block. A reorg
// dropped such a payment, and its refund counts once it is confirmed.
func markRefundedBefore(ctx context.Context, tx *db.Tx, chainKey string, number uint64) error {
	return tx.Send(ctx, nil, `INSERT INTO stale_rollups (object_id, quarter) SELECT refunds.id, `+rollupStartOf("refunds.confirmed_at")+`
		FROM payments JOIN refunds ON refunds.payment_id = payments.id
		WHERE payments.chain_key = $1 AND payments.block_number <= $2 AND payments.status = 'pending' AND payments.amount_refunded <> '0' AND refunds.confirmed_at IS NOT NULL
		ON CONFLICT (object_id) DO UPDATE SET quarter = excluded.quarter`, chainKey, int64(number))
}

// markRefundsStale marks the rollups of the confirmed refunds of payments.
func markRefundsStale(ctx context.Context, tx *db.Tx, paymentIDs []string) error {
	refunds, err := db.AllIn(ctx, tx, func(row db.Scanner) ([]any, error) {
		var id string
		var at time.Time
		err := row.Scan(&id, db.Seconds(&at))
		return []any{id, RollupStart(at).Unix()}, err
	}, "SELECT id, confirmed_at FROM refunds WHERE confirmed_at IS NOT NULL AND payment_id IN ", paymentIDs)
	if err != nil {
		return fmt.Errorf("find refunds of payments: %w", err)
	}
	return insertStale(ctx, tx, refunds)
}

// markRefundsChanged marks the rollups of confirmed refunds, and of stored ones that are not confirmed any more. The
// refunds are not saved yet.
func markRefundsChanged(ctx context.Context, tx *db.Tx, refunds []invoice.Refund) error {
	var confirmed, others [][]any
	for _, r := range refunds {
		if r.ConfirmedAt.IsZero() {
			others = append(others, []any{r.ID})
		} else {
			confirmed = append(confirmed, []any{r.ID, RollupStart(r.ConfirmedAt).Unix()})
		}
	}
	err := tx.SendFrom(ctx, []string{"refund"}, others, `INSERT INTO stale_rollups (object_id, quarter) SELECT id, `+rollupStartOf("confirmed_at")+`
		FROM wanted JOIN refunds ON refunds.id = refund WHERE confirmed_at IS NOT NULL
		ON CONFLICT (object_id) DO UPDATE SET quarter = excluded.quarter`)
	if err != nil {
		return err
	}
	return insertStale(ctx, tx, confirmed)
}

// insertStale inserts marks. It writes an existing mark again, so that TakeStaleRollups in another
// transaction does not remove it unseen.
func insertStale(ctx context.Context, tx *db.Tx, rows [][]any) error {
	return tx.Insert(ctx, db.Insertion{Table: "stale_rollups", Columns: []string{"object_id", "quarter BIGINT"}, Conflict: "ON CONFLICT (object_id) DO UPDATE SET quarter = excluded.quarter"}, rows)
}

// RollupStart returns when the period of a time begins.
func RollupStart(at time.Time) time.Time {
	seconds := at.Unix()
	return time.Unix(seconds-(seconds%rollupSeconds+rollupSeconds)%rollupSeconds, 0).UTC()
}

// rollupStartOf is RollupStart in SQL, of Unix seconds from 1970 on.
func rollupStartOf(seconds string) string {
	return fmt.Sprintf("(%[1]s) - (%[1]s) %% %[2]d", seconds, rollupSeconds)
}

// RollupsThrough returns the time before which rollups are complete.
func (q Reader) RollupsThrough(ctx context.Context) (time.Time, error) {
	return db.QueryRow(ctx, q, db.ScanTime, "SELECT through FROM rollup_progress WHERE id = 1")
}

// RollupPeriod is the time that one stored sum covers. The days of all time zones begin at a multiple of it.
const RollupPeriod = 15 * time.Minute

// rollupSeconds is RollupPeriod in seconds.
const rollupSeconds = int64(RollupPeriod / time.Second)
