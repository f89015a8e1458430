package txmgr

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// DailyCost is what the transactions of a chain cost on a day.
type DailyCost struct {
	Day  time.Time // its begin, by UTC
	Gwei int64     // billionths of the native coin
}

// DailyCosts returns the costs of a chain's transactions since a time, by the day on which the cost
// became known, newest first.
func DailyCosts(ctx context.Context, q db.Querier, chainKey string, since time.Time) ([]DailyCost, error) {
	const day = int64(24 * time.Hour / time.Millisecond)
	costs, err := db.QueryAll(ctx, q, func(row db.Scanner) (c DailyCost, err error) {
		var number int64
		err = row.Scan(&number, &c.Gwei)
		c.Day = time.UnixMilli(number * day).UTC()
		return c, err
	}, `SELECT spent_ms / 86400000 AS number, CAST(SUM(spent_gwei) AS BIGINT) FROM chain_txs WHERE chain_key = $1 AND spent_ms >= $2
		GROUP BY spent_ms / 86400000 ORDER BY number DESC`, chainKey, since.UnixMilli())
	return costs, db.During("add up the cost of transactions", err)
}
