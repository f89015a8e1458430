package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// sumColumns are the running sums of an invoice's payments.
func sumColumns(s *invoice.Sums) []db.Column {
	return []db.Column{
		db.Col("sums_stale", db.Bool(&s.Stale)),
		db.Col("payment_count", db.Int(&s.Payments)),
		db.Col("arrived_in_time", db.Amount(&s.InTime)),
		db.Col("arrived_in_time_dust", db.Amount(&s.InTimeDust)),
		db.Col("arrived_late", db.Amount(&s.Late)),
		db.Col("arrived_late_dust", db.Amount(&s.LateDust)),
		db.Col("newest_block", db.Int(&s.Newest.BlockNumber)),
		db.Col("newest_log", db.Int(&s.Newest.LogIndex)),
		db.Col("due", db.Amount(&s.Tally.Due)),
		db.Col("due_dust", db.Amount(&s.Tally.DueDust)),
		db.Col("beyond_dust", db.Amount(&s.Tally.BeyondDust)),
		db.Col("counted_block", db.Int(&s.Tally.Last.BlockNumber)),
		db.Col("counted_log", db.Int(&s.Tally.Last.LogIndex)),
		db.Col("arrived_returned", db.Amount(&s.Returned)),
		db.Col("due_returned", db.Amount(&s.Tally.Returned)),
	}
}

// NewestPayments returns the invoice's payments in any status, the highest on the chain first. payments_by_invoice has
// them in this order (TestStatementsUseIndexes).
func (q Reader) NewestPayments(ctx context.Context, invoiceID string, limit int) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, scanOrphaned,
		"SELECT orphaned_at, "+paymentTable.List()+` FROM payments WHERE invoice_id = $1
		ORDER BY block_number DESC, log_index DESC LIMIT $2`, invoiceID, limit)
}

// NewestPaymentIDs returns the ids of up to limit payments of each of the invoices, in any status, the highest on the
// chain.
func NewestPaymentIDs(ctx context.Context, q db.Querier, invoiceIDs []string, limit int) (map[string][]string, error) {
	rows := make([][]any, len(invoiceIDs))
	for n, id := range invoiceIDs {
		rows[n] = []any{int64(n), id}
	}
	found, err := lookUp(ctx, q, []string{"n BIGINT", "paid"}, rows,
		`SELECT string_agg(id, ' ') FROM (SELECT id FROM payments WHERE invoice_id = paid
		ORDER BY block_number DESC, log_index DESC LIMIT `+strconv.Itoa(limit)+") AS listed")
	newest := make(map[string][]string, len(invoiceIDs))
	for n, ids := range found {
		newest[invoiceIDs[n]] = strings.Fields(ids)
	}
	return newest, err
}

// PaidThroughRegistry returns which of the invoices have a confirmed payment through the registry.
func PaidThroughRegistry(ctx context.Context, q db.Querier, invoiceIDs []string) (map[string]bool, error) {
	rows := db.Each(invoiceIDs, func(id string) []any { return []any{id} })
	found, err := q.WhichExist(ctx, []string{"paid"}, rows,
		"payments WHERE invoice_id = paid AND method = 'registry' AND status = 'confirmed'")
	registered := make(map[string]bool, len(found))
	for _, n := range found {
		registered[invoiceIDs[n]] = true
	}
	return registered, err
}

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
	rows, err := db.AllIn(ctx, q, db.Fields(func(r *row) []any { return []any{&r.id, db.Amount(&r.sum.All), db.Amount(&r.sum.Final)} }), "SELECT id, amount_refunded, refunded_final FROM payments WHERE id IN ", ids)
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
