package api

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// maxCounted bounds the counts of a merchant's objects.
const maxCounted = 100

// MerchantCounts are numbers of a merchant's objects, each up to maxCounted.
type MerchantCounts struct {
	OpenInvoices, PendingEvents, FailedEvents, ActiveKeys int
}

// CountMerchant counts a merchant's objects.
func CountMerchant(ctx context.Context, q db.Querier, merchantID string, now time.Time) (MerchantCounts, error) {
	counts, err := db.QueryRow(ctx, q, func(row db.Scanner) (c MerchantCounts, err error) {
		err = row.Scan(&c.OpenInvoices, &c.PendingEvents, &c.FailedEvents, &c.ActiveKeys)
		return c, err
	}, `SELECT (SELECT count(*) FROM (SELECT 1 FROM invoices WHERE merchant_id = $1 AND status = 'open' LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE merchant_id = $1 LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM finished_deliveries WHERE merchant_id = $1 AND status = 'failed' LIMIT $2) AS listed),
		(SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE merchant_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) LIMIT $2) AS listed)`,
		merchantID, maxCounted, now.Unix())
	if err != nil {
		return MerchantCounts{}, fmt.Errorf("count what a merchant has: %w", err)
	}
	return counts, nil
}
