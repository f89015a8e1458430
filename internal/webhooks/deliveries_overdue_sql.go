package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// OverdueRequest selects the deliveries that FailOverdueDeliveries fails.
type OverdueRequest struct {
	Endpoints   string // the hash of the endpoints in the configuration of the worker that asks
	MerchantIDs []string
	// Unreachable are the deliveries of merchants without an endpoint, as far as the worker knows.
	Unreachable map[string]bool
	Now         time.Time
	Limit       int // how many are failed at most
}

// FailOverdueDeliveries fails up to r.Limit deliveries of the merchants if their deadlines have passed and no worker is
// attempting them. It returns how many failed by merchant, and whether there may be more.
//
// A delivery that was never attempted since it was scheduled gets an attempt even after its deadline,
// because the service may have been down. It fails without an attempt if probes of its endpoint failed
// for a whole retry window, or if no running worker knows an endpoint.
func (s Tables) FailOverdueDeliveries(ctx context.Context, r OverdueRequest) (expired map[string]int, more bool, err error) {
	now, limit := r.Now, r.Limit
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		expired, more = make(map[string]int), false
		breakers, err := NewReader(tx).Breakers(ctx, r.MerchantIDs)
		if err != nil {
			return err
		}
		unreachable, err := unreachable(ctx, tx, r)
		if err != nil {
			return err
		}
		var rows []Delivery
		for _, id := range r.MerchantIDs {
			if len(rows) == limit {
				break
			}
			found, err := overdue(ctx, tx, id, unreachable[id] || breakers[id].GivenUp(now), now, limit-len(rows))
			if err != nil {
				return err
			}
			rows = append(rows, found...)
		}
		more = len(rows) == limit
		outcomes := make([]Outcome, len(rows))
		for i, d := range rows {
			outcomes[i] = Outcome{Delivery: d, Status: Failed, Finished: now}
			expired[d.MerchantID]++
		}
		return finishDeliveries(ctx, tx, outcomes)
	})
	if err != nil {
		return nil, false, fmt.Errorf("fail deliveries whose deadlines passed: %w", err)
	}
	return expired, more, nil
}

// unreachable returns the merchants of r.Unreachable without an endpoint: the database has none, and all running workers
// have the same configuration as the calling one. An endpoint that was set a retry window ago, and that the worker still
// does not find, has a secret that cannot be decrypted.
func unreachable(ctx context.Context, tx *db.Tx, r OverdueRequest) (map[string]bool, error) {
	if len(r.Unreachable) == 0 {
		return nil, nil
	}
	others, err := db.QueryRow(ctx, tx, db.ScanSeq, "SELECT count(*) FROM deliverers WHERE until_ms > $1 AND endpoints <> $2", r.Now.UnixMilli(), r.Endpoints)
	if err != nil || others > 0 {
		return nil, err
	}
	left := maps.Clone(r.Unreachable)
	return left, db.InBatches(slices.Sorted(maps.Keys(left)), "", func(part []string) error {
		set, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT merchant_id FROM endpoints WHERE changed_at > $1 AND merchant_id IN "+db.ParameterList(1, len(part)),
			append([]any{r.Now.Add(-RetryWindow).Unix()}, db.ToAny(part)...)...)
		for _, id := range set {
			delete(left, id)
		}
		return err
	})
}

// overdue locks and returns the merchant's deliveries with deadlines that have passed. It includes
// deliveries without an attempt only if the endpoint is given up.
func overdue(ctx context.Context, tx *db.Tx, merchantID string, givenUp bool, now time.Time, limit int) ([]Delivery, error) {
	attempted := " AND attempts > since"
	if givenUp {
		attempted = ""
	}
	return db.QueryAll(ctx, tx, func(row db.Scanner) (d Delivery, err error) {
		d.MerchantID = merchantID
		err = row.Scan(&d.Seq, &d.Attempts)
		return d, err
	}, "SELECT seq, attempts FROM deliveries WHERE merchant_id = $1 AND deadline_ms < $2 AND (lease_id IS NULL OR due_ms <= $2)"+attempted+
		" ORDER BY deadline_ms, seq LIMIT $3"+tx.SkipLocked(), merchantID, now.UnixMilli(), limit)
}
