package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// SchemaVersions returns the newest migration of the database, and the newest that this
// program knows.
func (s *Store) SchemaVersions(ctx context.Context) (found, known int64, err error) {
	found, err = queryRow(ctx, &s.queries, scanSeq, "SELECT max(version_id) FROM goose_db_version")
	if err != nil {
		return 0, 0, fmt.Errorf("read the database's migrations: %w", err)
	}
	return found, newestMigration(), nil
}

// Product returns what the database is: sqlite or postgresql.
func (s *Store) Product() string { return s.system() }

// DailyCost is what the transactions of a chain cost on a day.
type DailyCost struct {
	Day  time.Time // its begin, by UTC
	Gwei int64     // billionths of the native coin
}

// DailyCosts returns what the transactions of a chain have cost since a time, by the day on
// which that became known, the last first.
func (q *queries) DailyCosts(ctx context.Context, chainKey string, since time.Time) ([]DailyCost, error) {
	const day = int64(24 * time.Hour / time.Millisecond)
	costs, err := queryAll(ctx, q, func(row scanner) (c DailyCost, err error) {
		var number int64
		err = row.Scan(&number, &c.Gwei)
		c.Day = time.UnixMilli(number * day).UTC()
		return c, err
	}, `SELECT spent_ms / 86400000 AS number, CAST(SUM(spent_gwei) AS BIGINT) FROM chain_txs WHERE chain_key = $1 AND spent_ms >= $2
		GROUP BY spent_ms / 86400000 ORDER BY number DESC`, chainKey, since.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("add up the cost of transactions: %w", err)
	}
	return costs, nil
}

// maxCounted bounds what is counted of a merchant.
const maxCounted = 100

// MerchantCounts are numbers of what a merchant has, each up to maxCounted.
type MerchantCounts struct {
	OpenInvoices, PendingEvents, FailedEvents, ActiveKeys int
}

// CountMerchant counts what a merchant has.
func (q *queries) CountMerchant(ctx context.Context, merchantID string, now time.Time) (MerchantCounts, error) {
	counts, err := queryRow(ctx, q, func(row scanner) (c MerchantCounts, err error) {
		var retries int
		err = row.Scan(&c.OpenInvoices, &c.PendingEvents, &retries, &c.FailedEvents, &c.ActiveKeys)
		c.PendingEvents = min(c.PendingEvents+retries, maxCounted)
		return c, err
	}, `SELECT (SELECT count(*) FROM (SELECT 1 FROM invoices WHERE merchant_id = $1 AND status = 'open' LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE merchant_id = $1 AND `+conditions[delivery.First]+` LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE merchant_id = $1 AND `+conditions[delivery.Retry]+` LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM finished_deliveries WHERE merchant_id = $1 AND status = 'failed' LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE merchant_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) LIMIT $2) AS listed)`,
		merchantID, maxCounted, now.Unix())
	if err != nil {
		return MerchantCounts{}, fmt.Errorf("count what a merchant has: %w", err)
	}
	return counts, nil
}
