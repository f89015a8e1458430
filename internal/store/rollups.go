package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// RollupPeriod is what a rollup adds up. The days of all time zones begin at a multiple of it.
const RollupPeriod = 15 * time.Minute

// rollupSeconds is RollupPeriod in seconds.
const rollupSeconds = int64(RollupPeriod / time.Second)

// RollupStart returns when the period of a time begins.
func RollupStart(at time.Time) time.Time {
	seconds := at.Unix()
	return time.Unix(seconds-(seconds%rollupSeconds+rollupSeconds)%rollupSeconds, 0).UTC()
}

// Day is the length of the days in UTC whose rollups are added up once more.
const Day = 24 * time.Hour

// DayStart returns when the day of a time begins in UTC.
func DayStart(at time.Time) time.Time { return at.UTC().Truncate(Day) }

// Rollup is what was confirmed in a RollupPeriod, or in a day in UTC: payments of invoices and
// refunds of such payments, of a merchant or, without one, of all together.
type Rollup struct {
	MerchantID         string
	Start              time.Time
	ChainKey, Currency string
	Payments, Refunds  int64
	Gross, Refunded    string // minor units; sums of amounts may exceed 256 bits
}

const rollupColumns = "merchant_id, quarter, chain_key, currency, payments, refunds, gross, refunded"

func scanRollup(row scanner) (r Rollup, err error) {
	err = row.Scan(&r.MerchantID, seconds{&r.Start}, &r.ChainKey, &r.Currency, &r.Payments, &r.Refunds, &r.Gross, &r.Refunded)
	return r, err
}

func scanTime(row scanner) (at time.Time, err error) {
	err = row.Scan(seconds{&at})
	return at, err
}

// RollupsThrough returns the time before which rollups are complete.
func (q *queries) RollupsThrough(ctx context.Context) (time.Time, error) {
	return queryRow(ctx, q, scanTime, "SELECT through FROM rollup_progress WHERE id = 1")
}

// RollupFilter selects a page of the rollups of a merchant, or of those of all together
// without one, from From on and before To.
type RollupFilter struct {
	MerchantID string
	From, To   time.Time
	After      Rollup // the last one of the page before; zero on the first page
	Limit      int
}

// Rollups lists rollups, the oldest first, and those of a period by chain and currency.
func (q *queries) Rollups(ctx context.Context, f RollupFilter) ([]Rollup, error) {
	after := f.After
	if after.Start.IsZero() {
		after.Start = f.From
	}
	return queryAll(ctx, q, scanRollup, "SELECT "+rollupColumns+` FROM settled_rollups
		WHERE merchant_id = $1 AND quarter < $2 AND (quarter, chain_key, currency) > ($3, $4, $5) ORDER BY quarter, chain_key, currency LIMIT $6`,
		f.MerchantID, f.To.Unix(), after.Start.Unix(), after.ChainKey, after.Currency, f.Limit)
}

// DayRollups lists the sums of days, the oldest first, and those of a day by chain and currency.
// Days before that of RollupsThrough are complete.
func (q *queries) DayRollups(ctx context.Context, f RollupFilter) ([]Rollup, error) {
	after := f.After
	if after.Start.IsZero() {
		after.Start = f.From
	}
	return queryAll(ctx, q, scanRollup, `SELECT merchant_id, day, chain_key, currency, payments, refunds, gross, refunded FROM settled_days
		WHERE merchant_id = $1 AND day < $2 AND (day, chain_key, currency) > ($3, $4, $5) ORDER BY day, chain_key, currency LIMIT $6`,
		f.MerchantID, f.To.Unix(), after.Start.Unix(), after.ChainKey, after.Currency, f.Limit)
}

// RollupsBetween lists the rollups of all merchants of the periods from a time on and before
// another one.
func (q *queries) RollupsBetween(ctx context.Context, from, to time.Time) ([]Rollup, error) {
	return queryAll(ctx, q, scanRollup, "SELECT "+rollupColumns+" FROM settled_rollups WHERE quarter >= $1 AND quarter < $2 ORDER BY merchant_id, quarter, chain_key, currency", from.Unix(), to.Unix())
}

// StaleRollups returns up to limit periods from a time on and before another one whose
// rollups lack something, the oldest first.
func (q *queries) StaleRollups(ctx context.Context, from, to time.Time, limit int) ([]time.Time, error) {
	return queryAll(ctx, q, scanTime, "SELECT DISTINCT quarter FROM stale_rollups WHERE quarter >= $1 AND quarter < $2 ORDER BY quarter LIMIT $3", from.Unix(), to.Unix(), limit)
}

// LockRollups returns the time before which rollups are complete. Until the transaction ends, no other one writes rollups. If
// that time is before another one, up to which the caller adds up, then no other one holds the cursor of a chain
// either: each that confirms payments has ended, or sees the time that this one stores (markConfirmed).
func (tx *Tx) LockRollups(ctx context.Context, closed time.Time) (through time.Time, err error) {
	if through, err = tx.RollupsThrough(ctx); err != nil {
		return through, err
	}
	if tx.postgres && through.Before(closed) { // SQLite has one transaction at a time
		if _, err := queryAll(ctx, &tx.queries, scanID, `SELECT chain_key FROM chains ORDER BY chain_key COLLATE "C" FOR SHARE`); err != nil { // as LockBlocks
			return through, err
		}
	}
	return queryRow(ctx, &tx.queries, scanTime, "UPDATE rollup_progress SET through = through WHERE id = 1 RETURNING through")
}

// SetRollupsThrough stores the time before which rollups are complete.
func (tx *Tx) SetRollupsThrough(ctx context.Context, through time.Time) error {
	_, err := tx.exec(ctx, "UPDATE rollup_progress SET through = $1 WHERE id = 1", through.Unix())
	return err
}

// TakeStaleRollups returns up to limit stale periods, the oldest first, and takes their marks
// away. The caller adds the periods up in the same transaction.
func (tx *Tx) TakeStaleRollups(ctx context.Context, limit int) ([]time.Time, error) {
	taken, err := queryAll(ctx, &tx.queries, scanTime,
		"DELETE FROM stale_rollups WHERE quarter IN (SELECT DISTINCT quarter FROM stale_rollups ORDER BY quarter LIMIT $1) RETURNING quarter", limit)
	slices.SortFunc(taken, time.Time.Compare)
	return slices.CompactFunc(taken, time.Time.Equal), err
}

// ReplaceRollups replaces the rollups of all merchants of the periods from a time on and
// before another one.
func (tx *Tx) ReplaceRollups(ctx context.Context, from, to time.Time, rollups []Rollup) error {
	return tx.replaceSums(ctx, "settled_rollups", "quarter", from, to, rollups)
}

// ReplaceDays replaces the sums of all merchants of the days from a time on and before another one.
func (tx *Tx) ReplaceDays(ctx context.Context, from, to time.Time, days []Rollup) error {
	return tx.replaceSums(ctx, "settled_days", "day", from, to, days)
}

func (tx *Tx) replaceSums(ctx context.Context, table, start string, from, to time.Time, sums []Rollup) error {
	if _, err := tx.exec(ctx, "DELETE FROM "+table+" WHERE "+start+" >= $1 AND "+start+" < $2", from.Unix(), to.Unix()); err != nil {
		return err
	}
	rows := make([][]any, len(sums))
	for i, r := range sums {
		rows[i] = []any{r.MerchantID, r.Start.Unix(), r.ChainKey, r.Currency, r.Payments, r.Refunds, r.Gross, r.Refunded}
	}
	return tx.insert(ctx, insertion{table: table, columns: []string{"merchant_id", start, "chain_key", "currency", "payments", "refunds", "gross", "refunded"}}, rows)
}

// markStale marks the rollups of confirmed payments of invoices, and of the refunds of those
// payments, because their periods may have been added up without them.
func (tx *Tx) markStale(ctx context.Context, payments []PaymentRow) error {
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
	if err := tx.insertStale(ctx, rows); err != nil {
		return err
	}
	return tx.markRefundsStale(ctx, ids)
}

// markConfirmed marks the rollup of the payments and refunds of a chain that are pending up to a block and are about to be confirmed at
// a time, if it was added up already. The clock that gave the time may be behind the one by which rollups are
// added up. The cursor of the chain must be locked.
func (tx *Tx) markConfirmed(ctx context.Context, chainKey string, number uint64, at time.Time) error {
	through, err := tx.RollupsThrough(ctx)
	if err != nil || !at.Before(through) {
		return err
	}
	const pending = " WHERE chain_key = $1 AND block_number <= $2 AND status = 'pending'"
	return tx.send(ctx, nil, `INSERT INTO stale_rollups (object_id, quarter) SELECT id, CAST($3 AS BIGINT) FROM payments`+pending+` AND invoice_id IS NOT NULL
		UNION ALL SELECT id, CAST($3 AS BIGINT) FROM refunds`+pending+` ON CONFLICT (object_id) DO UPDATE SET quarter = excluded.quarter`,
		chainKey, int64(number), RollupStart(at).Unix())
}

// markRefundsStale marks the rollups of the confirmed refunds of payments.
func (tx *Tx) markRefundsStale(ctx context.Context, paymentIDs []string) error {
	refunds, err := queryIn(paymentIDs, func(chunk []any) ([][]any, error) {
		return queryAll(ctx, &tx.queries, func(row scanner) ([]any, error) {
			var id string
			var at time.Time
			err := row.Scan(&id, seconds{&at})
			return []any{id, RollupStart(at).Unix()}, err
		}, "SELECT id, confirmed_at FROM refunds WHERE confirmed_at IS NOT NULL AND payment_id IN "+parameterList(0, len(chunk)), chunk...)
	})
	if err != nil {
		return fmt.Errorf("find refunds of payments: %w", err)
	}
	return tx.insertStale(ctx, refunds)
}

// markRefundStale marks the rollup of a confirmed refund.
func (tx *Tx) markRefundStale(ctx context.Context, r invoice.Refund) error {
	if r.ConfirmedAt.IsZero() {
		return nil
	}
	return tx.insertStale(ctx, [][]any{{r.ID, RollupStart(r.ConfirmedAt).Unix()}})
}

// insertStale inserts marks. One that exists is written again, so that TakeStaleRollups of
// another transaction does not take it away unseen.
func (tx *Tx) insertStale(ctx context.Context, rows [][]any) error {
	return tx.insert(ctx, insertion{"stale_rollups", []string{"object_id", "quarter BIGINT"}, "ON CONFLICT (object_id) DO UPDATE SET quarter = excluded.quarter"}, rows)
}
