package report

import (
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// Day is the length of a day in UTC. The rollups of a day are added up once more.
const Day = 24 * time.Hour

// dayStart returns when the day of a time begins in UTC.
func dayStart(at time.Time) time.Time { return at.UTC().Truncate(Day) }

// Rollup has the sums that were confirmed in a RollupPeriod, or on a day in UTC: payments of invoices
// and refunds of such payments, for a merchant or, with an empty MerchantID, for all together.
type Rollup struct {
	MerchantID         string
	Start              time.Time
	ChainKey, Currency string
	Payments, Refunds  int64
	Gross, Refunded    string // minor units; sums of amounts may exceed 256 bits
}

var (
	quarterTable = db.NewTable("settled_rollups", rollupColumns("quarter"))
	dayTable     = db.NewTable("settled_days", rollupColumns("day"))
)

// rollupColumns returns the columns of sums in periods, which have their start in a column.
func rollupColumns(start string) func(*Rollup) []db.Column {
	return func(r *Rollup) []db.Column {
		return []db.Column{
			db.Col("merchant_id", db.Text(&r.MerchantID)),
			db.Col(start, db.Seconds(&r.Start)),
			db.Col("chain_key", db.Text(&r.ChainKey)),
			db.Col("currency", db.Text(&r.Currency)),
			db.Col("payments", db.Int(&r.Payments)),
			db.Col("refunds", db.Int(&r.Refunds)),
			db.Col("gross", db.Text(&r.Gross)),
			db.Col("refunded", db.Text(&r.Refunded)),
		}
	}
}

// RollupFilter selects a page of the rollups of a merchant, or of all merchants together without one,
// from From on and before To.
type RollupFilter struct {
	MerchantID string
	From, To   time.Time
	After      Rollup // the last one of the page before; zero on the first page
	Limit      int
}

// Rollups lists rollups, the oldest first, and within a period by chain and currency.
func (q Reader) Rollups(ctx context.Context, f RollupFilter) ([]Rollup, error) {
	after := f.After
	if after.Start.IsZero() {
		after.Start = f.From
	}
	return db.QueryAll(ctx, q, quarterTable.Scan, quarterTable.Select()+`
		WHERE merchant_id = $1 AND quarter < $2 AND (quarter, chain_key, currency) > ($3, $4, $5) ORDER BY quarter, chain_key, currency LIMIT $6`,
		f.MerchantID, f.To.Unix(), after.Start.Unix(), after.ChainKey, after.Currency, f.Limit)
}

// DayRollups lists the sums of days, the oldest first, and within a day by chain and currency. Days
// before the day of RollupsThrough are complete.
func (q Reader) DayRollups(ctx context.Context, f RollupFilter) ([]Rollup, error) {
	after := f.After
	if after.Start.IsZero() {
		after.Start = f.From
	}
	return db.QueryAll(ctx, q, dayTable.Scan, dayTable.Select()+`
		WHERE merchant_id = $1 AND day < $2 AND (day, chain_key, currency) > ($3, $4, $5) ORDER BY day, chain_key, currency LIMIT $6`,
		f.MerchantID, f.To.Unix(), after.Start.Unix(), after.ChainKey, after.Currency, f.Limit)
}

// RollupsBetween lists the rollups of all merchants for the periods between two times, the first
// inclusive and the second exclusive.
func RollupsBetween(ctx context.Context, q db.Querier, from, to time.Time) ([]Rollup, error) {
	return db.QueryAll(ctx, q, quarterTable.Scan, quarterTable.Select()+" WHERE quarter >= $1 AND quarter < $2 ORDER BY merchant_id, quarter, chain_key, currency", from.Unix(), to.Unix())
}

// StaleRollups returns up to limit periods from a time on and before another one with incomplete
// rollups, the oldest first.
func (q Reader) StaleRollups(ctx context.Context, from, to time.Time, limit int) ([]time.Time, error) {
	return db.QueryAll(ctx, q, db.ScanTime, "SELECT DISTINCT quarter FROM stale_rollups WHERE quarter >= $1 AND quarter < $2 ORDER BY quarter LIMIT $3", from.Unix(), to.Unix(), limit)
}

// lockRollups returns the time before which rollups are complete. Until the transaction ends, no other
// transaction writes rollups. If the returned time is before the time up to which the caller adds up,
// no other transaction holds the cursor of a chain either: each transaction that confirms payments has
// ended, or sees the time that this one stores (markConfirmed).
func lockRollups(ctx context.Context, tx *db.Tx, closed time.Time) (through time.Time, err error) {
	if through, err = ledger.NewReader(tx).RollupsThrough(ctx); err != nil {
		return through, err
	}
	if tx.OnPostgres() && through.Before(closed) { // SQLite has one transaction at a time
		if _, err := db.QueryAll(ctx, tx, db.ScanID, `SELECT chain_key FROM chains ORDER BY chain_key COLLATE "C" FOR SHARE`); err != nil { // as lockBlocks of package ledger
			return through, err
		}
	}
	return db.QueryRow(ctx, tx, db.ScanTime, "UPDATE rollup_progress SET through = through WHERE id = 1 RETURNING through")
}

// setRollupsThrough stores the time before which rollups are complete.
func setRollupsThrough(ctx context.Context, tx *db.Tx, through time.Time) error {
	_, err := tx.Exec(ctx, "UPDATE rollup_progress SET through = $1 WHERE id = 1", through.Unix())
	return err
}

// TakeStaleRollups returns up to limit stale periods, the oldest first, and removes their marks. The
// caller adds the periods up in the same transaction.
func TakeStaleRollups(ctx context.Context, tx *db.Tx, limit int) ([]time.Time, error) {
	taken, err := db.QueryAll(ctx, tx, db.ScanTime,
		"DELETE FROM stale_rollups WHERE quarter IN (SELECT DISTINCT quarter FROM stale_rollups ORDER BY quarter LIMIT $1) RETURNING quarter", limit)
	slices.SortFunc(taken, time.Time.Compare)
	return slices.CompactFunc(taken, time.Time.Equal), err
}

// ReplaceRollups replaces the rollups of all merchants for the periods between two times, the first
// inclusive and the second exclusive.
func ReplaceRollups(ctx context.Context, tx *db.Tx, from, to time.Time, rollups []Rollup) error {
	return replaceSums(ctx, tx, quarterTable, "settled_rollups WHERE quarter >= $1 AND quarter < $2", from, to, rollups)
}

// replaceDays replaces the sums of all merchants for the days between two times, the first inclusive
// and the second exclusive.
func replaceDays(ctx context.Context, tx *db.Tx, from, to time.Time, days []Rollup) error {
	return replaceSums(ctx, tx, dayTable, "settled_days WHERE day >= $1 AND day < $2", from, to, days)
}

func replaceSums(ctx context.Context, tx *db.Tx, table db.Table[Rollup], within string, from, to time.Time, sums []Rollup) error {
	if _, err := tx.Exec(ctx, "DELETE FROM "+within, from.Unix(), to.Unix()); err != nil {
		return err
	}
	return table.Insert(ctx, tx, "", sums...)
}
