package webhooks

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
)

// Conditions select the deliveries of a lane, word for word as the lane's index
// does.
var Conditions = map[Lane]string{First: "attempts = 0", Retry: "attempts > 0"}

// Queues returns the non-empty queues of a lane, with the due time of their first delivery and their
// earliest deadline. It walks the lane's index from one merchant to the next. It is slow while a long
// snapshot is open on PostgreSQL.
func (q Reader) Queues(ctx context.Context, lane Lane) ([]Queue, error) {
	first := "(SELECT min(merchant_id) FROM deliveries WHERE " + Conditions[lane] + " AND merchant_id > "
	least := func(column string) string {
		return "(SELECT min(" + column + ") FROM deliveries WHERE deliveries.merchant_id = queued.merchant_id AND " + Conditions[lane] + ")"
	}
	end := least("deadline_ms")
	if lane == First { // which is in the order of deadlines, too
		end = least("due_ms") + fmt.Sprintf(" + %d", RetryWindow.Milliseconds())
	}
	return db.QueryAll(ctx, q, scanQueue, `WITH RECURSIVE queued (merchant_id) AS (
			SELECT `+first+`'')
			UNION ALL
			SELECT `+first+`queued.merchant_id) FROM queued WHERE queued.merchant_id IS NOT NULL)
		SELECT merchant_id, head_ms, end_ms FROM (SELECT merchant_id, `+least("due_ms")+` AS head_ms, `+end+` AS end_ms FROM queued) AS queues
		WHERE head_ms IS NOT NULL`)
}

func scanQueue(row db.Scanner) (found Queue, err error) {
	err = row.Scan(&found.MerchantID, db.Milliseconds(&found.Head), db.Milliseconds(&found.End))
	return found, err
}
