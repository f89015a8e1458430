package webhooks

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// Queues returns the queues that are not empty, with the due time of their first delivery and their earliest deadline.
// It walks an index from one merchant to the next. It is slow while a long snapshot is open on PostgreSQL.
func (q Reader) Queues(ctx context.Context) ([]Queue, error) {
	return db.QueryAll(ctx, q, db.Fields(func(found *Queue) []any {
		return []any{&found.MerchantID, db.Milliseconds(&found.Head), db.Milliseconds(&found.End)}
	}), `WITH RECURSIVE queued (merchant_id) AS (
			SELECT (SELECT min(merchant_id) FROM deliveries)
			UNION ALL
			SELECT (SELECT min(merchant_id) FROM deliveries WHERE merchant_id > queued.merchant_id) FROM queued WHERE queued.merchant_id IS NOT NULL)
		SELECT merchant_id, head_ms, end_ms FROM (SELECT merchant_id,
			(SELECT min(due_ms) FROM deliveries WHERE deliveries.merchant_id = queued.merchant_id) AS head_ms,
			(SELECT min(deadline_ms) FROM deliveries WHERE deliveries.merchant_id = queued.merchant_id) AS end_ms FROM queued) AS queues
		WHERE head_ms IS NOT NULL`)
}
