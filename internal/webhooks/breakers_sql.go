package webhooks

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
)

// Breakers returns the merchants' circuit breakers. A merchant without deliveries has a closed one.
func (q Reader) Breakers(ctx context.Context, merchantIDs []string) (map[string]Breaker, error) {
	return breakers(ctx, q, merchantIDs, "")
}

func breakers(ctx context.Context, q db.Querier, merchantIDs []string, lock string) (map[string]Breaker, error) {
	all := make(map[string]Breaker, len(merchantIDs))
	for _, id := range merchantIDs {
		all[id] = NewBreaker
	}
	return all, db.InBatches(merchantIDs, "", func(part []string) error {
		return db.ForEach(ctx, q, func(row db.Scanner) (err error) {
			var id string
			b, err := breakerTable.ScanAfter(row, &id)
			if err == nil {
				all[id] = b
			}
			return err
		}, "SELECT merchant_id, "+breakerTable.List()+" FROM breakers WHERE merchant_id IN "+db.ParameterList(0, len(part))+lock, db.ToAny(part)...)
	})
}

// breakerTable has the columns of a breaker, but not its merchant. Columns are NULL for a merchant without deliveries.
var breakerTable = db.NewTable("breakers", func(b *Breaker) []db.Column {
	return []db.Column{
		db.Col("state", db.Text(&b.State)),
		db.Col("steady", db.Bool(&b.Healthy)),
		db.Col("allowed", db.Int(&b.Allowed)),
		db.Col("failures", db.Int(&b.Failures)),
		db.Col("timeouts", db.Int(&b.Timeouts)),
		db.Col("pauses", db.Int(&b.Pauses)),
		db.Col("since_ms", db.Milliseconds(&b.Since)),
		db.Col("until_ms", db.Milliseconds(&b.Until)),
		db.Col("failing_ms", db.Milliseconds(&b.Failing)),
		db.Col("failed_ms", db.Milliseconds(&b.Failed)),
		db.Col("error", db.Text(&b.Error)),
	}
}).Finished(func(b *Breaker) {
	if b.Used = b.State != ""; !b.Used {
		*b = NewBreaker
	}
})

// breakerChanges are the outcomes that may change breakers, in their order.
type breakerChanges map[string][]Outcome

// changesOf returns the changes of the breakers that change.
func changesOf(outcomes []Outcome, before map[string]Breaker) breakerChanges {
	changes := make(breakerChanges)
	for _, o := range outcomes {
		if id := o.Delivery.MerchantID; o.Change != nil {
			changes[id] = append(changes[id], o)
		}
	}
	maps.DeleteFunc(changes, func(id string, _ []Outcome) bool {
		return changes.after(id, before[id]) == before[id]
	})
	return changes
}

func (c breakerChanges) after(id string, b Breaker) Breaker {
	for _, o := range c[id] {
		b = o.Change(b)
	}
	return b
}

// dropOld removes the outcomes of attempts at another URL than the endpoint's.
func (c breakerChanges) dropOld(ctx context.Context, tx *db.Tx) error {
	defer maps.DeleteFunc(c, func(_ string, left []Outcome) bool { return len(left) == 0 })
	return db.InBatches(slices.Sorted(maps.Keys(c)), "", func(part []string) error {
		_, err := db.QueryAll(ctx, tx, func(row db.Scanner) (id string, err error) {
			var url string
			err = row.Scan(&id, &url)
			c[id] = slices.DeleteFunc(c[id], func(o Outcome) bool { return o.URL != "" && o.URL != url })
			return id, err
		}, "SELECT merchant_id, url FROM endpoints WHERE merchant_id IN "+db.ParameterList(0, len(part)), db.ToAny(part)...)
		return err
	})
}

// updateBreakers changes breakers. before holds them as they were read.
func updateBreakers(ctx context.Context, tx *db.Tx, changes breakerChanges, before map[string]Breaker) (err error) {
	if len(changes) == 0 {
		return nil
	}
	if err := changes.dropOld(ctx, tx); err != nil {
		return err
	}
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
	return saveBreakers(ctx, tx, ids, func(id string) Breaker { return changes.after(id, before[id]) },
		"UPDATE SET "+breakerTable.Excluded())
}

// saveBreakers inserts breakers. conflict is the action for merchants that have one.
func saveBreakers(ctx context.Context, tx *db.Tx, merchantIDs []string, breaker func(id string) Breaker, conflict string) error {
	rows := db.Each(merchantIDs, func(id string) []any { return breakerTable.Values(breaker(id), id) })
	return tx.Insert(ctx, breakerTable.Insertion("ON CONFLICT (merchant_id) DO "+conflict, "merchant_id"), rows)
}

// BreakerCounts returns how many breakers are in each state. Without a delivery that waits, no attempt closes a breaker,
// so those do not count.
func (q Reader) BreakerCounts(ctx context.Context) (map[BreakerState]int64, error) {
	counts := map[BreakerState]int64{BreakerClosed: 0, BreakerOpen: 0, BreakerGone: 0}
	err := db.ForEach(ctx, q, func(row db.Scanner) error {
		var state BreakerState
		var n int64
		err := row.Scan(&state, &n)
		counts[state] = n
		return err
	}, "SELECT state, count(*) FROM breakers WHERE state = 'closed' OR EXISTS (SELECT 1 FROM deliveries WHERE deliveries.merchant_id = breakers.merchant_id) GROUP BY state")
	return counts, err
}
