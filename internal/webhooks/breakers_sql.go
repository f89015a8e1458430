package webhooks

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
)

// Breakers returns the merchants' circuit breakers. A merchant without
// deliveries has a closed one.
func (q Reader) Breakers(ctx context.Context, merchantIDs []string) (map[string]Breaker, error) {
	return breakers(ctx, q, merchantIDs, "")
}

func breakers(ctx context.Context, q db.Querier, merchantIDs []string, lock string) (map[string]Breaker, error) {
	all := make(map[string]Breaker, len(merchantIDs))
	for _, id := range merchantIDs {
		all[id] = NewBreaker
	}
	return all, db.InBatches(merchantIDs, "", func(part []string) error {
		_, err := db.QueryAll(ctx, q, func(row db.Scanner) (none struct{}, err error) {
			id, b, err := scanBreaker(row)
			if err == nil {
				all[id] = b
			}
			return none, err
		}, "SELECT b.merchant_id, "+breakerColumns+" FROM breakers b WHERE b.merchant_id IN "+db.ParameterList(0, len(part))+lock, db.ToAny(part)...)
		return err
	})
}

const breakerColumns = "b.state, b.steady, b.allowed, b.failures, b.timeouts, b.pauses, b.since_ms, b.until_ms"

// scanBreaker reads a merchant and its breaker. Columns are NULL for a merchant
// without deliveries.
func scanBreaker(row db.Scanner) (merchantID string, b Breaker, err error) {
	var healthy, allowed, failures, timeouts, pauses int64
	err = row.Scan(&merchantID, db.NullText(&b.State), db.NullInt(&healthy), db.NullInt(&allowed), db.NullInt(&failures), db.NullInt(&timeouts), db.NullInt(&pauses),
		db.Milliseconds(&b.Since), db.Milliseconds(&b.Until))
	if b.State == "" {
		return merchantID, NewBreaker, err
	}
	b.Used, b.Healthy, b.Allowed, b.Failures, b.Timeouts, b.Pauses = true, healthy == 1, int(allowed), int(failures), int(timeouts), int(pauses)
	return merchantID, b, err
}

// breakerChanges are changes of breakers that follow from outcomes, in their order.
type breakerChanges map[string][]func(Breaker) Breaker

// changesOf returns the changes of the breakers that change.
func changesOf(outcomes []Outcome, before map[string]Breaker) breakerChanges {
	changes := make(breakerChanges)
	for _, o := range outcomes {
		if id := o.Delivery.MerchantID; o.Change != nil {
			changes[id] = append(changes[id], o.Change)
		}
	}
	maps.DeleteFunc(changes, func(id string, _ []func(Breaker) Breaker) bool {
		return changes.after(id, before[id]) == before[id]
	})
	return changes
}

func (c breakerChanges) after(id string, b Breaker) Breaker {
	for _, change := range c[id] {
		b = change(b)
	}
	return b
}

// updateBreakers changes breakers. before holds them as they were read.
func updateBreakers(ctx context.Context, tx *db.Tx, changes breakerChanges, before map[string]Breaker) (err error) {
	if len(changes) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(changes)) // so that transactions wait for each other in one order
	if tx.OnPostgres() {
		// Missing rows are inserted first, so that they can be locked.
		if err := saveBreakers(ctx, tx, ids, func(string) Breaker { return NewBreaker }, "NOTHING"); err != nil {
			return err
		}
		if before, err = breakers(ctx, tx, ids, " ORDER BY merchant_id"+tx.ForUpdate()); err != nil {
			return err
		}
	}
	return saveBreakers(ctx, tx, ids, func(id string) Breaker { return changes.after(id, before[id]) }, `UPDATE SET state = excluded.state,
		steady = excluded.steady, allowed = excluded.allowed, failures = excluded.failures, timeouts = excluded.timeouts,
		pauses = excluded.pauses, since_ms = excluded.since_ms, until_ms = excluded.until_ms`)
}

// saveBreakers inserts breakers. conflict is the action for merchants that have
// one.
func saveBreakers(ctx context.Context, tx *db.Tx, merchantIDs []string, breaker func(id string) Breaker, conflict string) error {
	rows := make([][]any, len(merchantIDs))
	for i, id := range merchantIDs {
		b, healthy := breaker(id), 0
		if b.Healthy {
			healthy = 1
		}
		rows[i] = []any{id, string(b.State), healthy, b.Allowed, b.Failures, b.Timeouts, b.Pauses, db.UnixMilli(b.Since), db.UnixMilli(b.Until)}
	}
	return tx.Insert(ctx, db.Insertion{Table: "breakers", Columns: []string{"merchant_id", "state", "steady", "allowed", "failures", "timeouts", "pauses", "since_ms", "until_ms"},
		Conflict: "ON CONFLICT (merchant_id) DO " + conflict}, rows)
}

// BreakerCounts returns how many breakers are in each state.
func (q Reader) BreakerCounts(ctx context.Context) (map[BreakerState]int64, error) {
	counts := map[BreakerState]int64{BreakerClosed: 0, BreakerOpen: 0, BreakerGone: 0}
	_, err := db.QueryAll(ctx, q, func(row db.Scanner) (struct{}, error) {
		var state BreakerState
		var n int64
		err := row.Scan(&state, &n)
		counts[state] = n
		return struct{}{}, err
	}, "SELECT state, count(*) FROM breakers GROUP BY state")
	return counts, err
}
