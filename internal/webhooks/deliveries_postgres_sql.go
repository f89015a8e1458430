package webhooks

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// outcomeAttempt is an attempt of an outcome.
type outcomeAttempt struct {
	Attempt
	seq     int64
	leaseID string
}

var outcomeAttempts = db.NewTable("attempts", func(a *outcomeAttempt) []db.Column {
	return append(attemptColumns(&a.Attempt), db.Col("seq", db.Int(&a.seq)), db.Col("lease_id", db.Text(&a.leaseID)))
})

// recordOutcomes records the outcomes that still have their lease, and ends
// it. It returns these leases, with the breakers of their merchants.
var recordOutcomes = `WITH ended AS (
		SELECT o.* FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
			AS o (seq, lease_id, merchant_id, status, attempts, at_ms)
		JOIN deliveries d USING (seq, lease_id) ORDER BY d.seq FOR NO KEY UPDATE OF d
	), retried AS (
		UPDATE deliveries SET attempts = ended.attempts, due_ms = at_ms, lease_id = NULL FROM ended WHERE deliveries.seq = ended.seq AND status = 'pending'
	), unscheduled AS (
		DELETE FROM deliveries USING ended WHERE deliveries.seq = ended.seq AND status <> 'pending'
	), finished AS (
		INSERT INTO finished_deliveries (seq, merchant_id, status, attempts, finished_ms)
		SELECT seq, merchant_id, status, attempts, at_ms FROM ended WHERE status <> 'pending'
	), attempted AS (
		INSERT INTO attempts (seq, ` + AttemptTable.List() + `)
		SELECT a.seq, ` + AttemptTable.List() + ` FROM ended JOIN ` + outcomeAttempts.Unnest(6, "a") + `
			USING (seq, lease_id)
	) SELECT ended.seq, lease_id, ended.merchant_id, ` + breakerTable.Of("b") + ` FROM ended LEFT JOIN breakers b ON b.merchant_id = ended.merchant_id`

// finishOnPostgres records outcomes in one statement, since each costs a round
// trip, and returns the leases that they had.
func finishOnPostgres(ctx context.Context, tx *db.Tx, outcomes []Outcome) (map[leaseKey]bool, error) {
	mine, breakers, err := applyOutcomes(ctx, tx, outcomes)
	if err != nil {
		return nil, err
	}
	return mine, updateBreakers(ctx, tx, changesOf(keep(outcomes, mine), breakers), breakers)
}

// finishDelivered records successes. Most of them change no breaker; then one statement, without an
// explicit transaction, is enough. A breaker that is not changed because of a crash is changed by the
// next success.
func finishDelivered(ctx context.Context, s *db.DB, outcomes []Outcome) (map[leaseKey]bool, error) {
	mine, breakers, err := applyOutcomes(ctx, s, outcomes)
	if err != nil {
		return nil, err
	}
	if changes := changesOf(keep(outcomes, mine), breakers); len(changes) > 0 {
		err = s.Update(ctx, func(tx *db.Tx) error { return updateBreakers(ctx, tx, changes, breakers) })
	}
	return mine, err
}

func applyOutcomes(ctx context.Context, q db.Querier, outcomes []Outcome) (map[leaseKey]bool, map[string]Breaker, error) {
	var attempts []outcomeAttempt
	for _, o := range outcomes {
		if o.Attempt != nil {
			attempts = append(attempts, outcomeAttempt{*o.Attempt, o.Delivery.Seq, o.LeaseID})
		}
	}
	args := []any{
		db.Each(outcomes, func(o Outcome) int64 { return o.Delivery.Seq }), db.Each(outcomes, func(o Outcome) string { return o.LeaseID }),
		db.Each(outcomes, func(o Outcome) string { return o.Delivery.MerchantID }), db.Each(outcomes, func(o Outcome) string { return string(o.Status) }),
		db.Each(outcomes, func(o Outcome) int64 { return int64(o.Attempts()) }), db.Each(outcomes, func(o Outcome) int64 { return max(db.UnixMilli(o.NextDue), db.UnixMilli(o.Finished)) }),
	}
	mine, breakers := make(map[leaseKey]bool, len(outcomes)), make(map[string]Breaker)
	_, err := db.QueryAll(ctx, q, func(row db.Scanner) (none struct{}, err error) {
		var k leaseKey
		var id string
		b, err := breakerTable.ScanAfter(row, &k.seq, &k.leaseID, &id)
		mine[k], breakers[id] = true, b
		return none, err
	}, recordOutcomes, append(args, outcomeAttempts.Arrays(attempts)...)...)
	return mine, breakers, err
}
