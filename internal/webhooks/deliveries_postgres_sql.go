package webhooks

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// recordOutcomes records the outcomes that still have their lease, and ends
// it. It returns these leases, with the breakers of their merchants.
const recordOutcomes = `WITH ended AS (
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
		INSERT INTO attempts (seq, ` + attemptColumns + `)
		SELECT a.seq, number, started_ms, duration_ms, NULLIF(status_code, 0), error, excerpt, lookup_ms, connect_ms, handshake_ms, answer_ms
		FROM ended JOIN unnest($7::bigint[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[],
			$15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[])
			AS a (seq, lease_id, number, started_ms, duration_ms, status_code, error, excerpt, lookup_ms, connect_ms, handshake_ms, answer_ms)
			USING (seq, lease_id)
	) SELECT ended.seq, lease_id, ended.merchant_id, ` + breakerColumns + ` FROM ended LEFT JOIN breakers b ON b.merchant_id = ended.merchant_id`

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
	attempted := make([]Outcome, 0, len(outcomes))
	for _, o := range outcomes {
		if o.Attempt != nil {
			attempted = append(attempted, o)
		}
	}
	attempt := func(column func(a *Attempt) int64) []int64 {
		return db.Each(attempted, func(o Outcome) int64 { return column(o.Attempt) })
	}
	mine, breakers := make(map[leaseKey]bool, len(outcomes)), make(map[string]Breaker)
	_, err := db.QueryAll(ctx, q, func(row db.Scanner) (none struct{}, err error) {
		var k leaseKey
		id, b, err := scanBreaker(db.PrefixedRow{Row: row, First: []any{&k.seq, &k.leaseID}})
		mine[k], breakers[id] = true, b
		return none, err
	}, recordOutcomes,
		db.Each(outcomes, func(o Outcome) int64 { return o.Delivery.Seq }), db.Each(outcomes, func(o Outcome) string { return o.LeaseID }),
		db.Each(outcomes, func(o Outcome) string { return o.Delivery.MerchantID }), db.Each(outcomes, func(o Outcome) string { return string(o.Status) }),
		db.Each(outcomes, func(o Outcome) int64 { return int64(o.Attempts()) }), db.Each(outcomes, func(o Outcome) int64 { return max(db.UnixMilli(o.NextDue), db.UnixMilli(o.Finished)) }),
		db.Each(attempted, func(o Outcome) int64 { return o.Delivery.Seq }), db.Each(attempted, func(o Outcome) string { return o.LeaseID }),
		attempt(func(a *Attempt) int64 { return int64(a.Number) }), attempt(func(a *Attempt) int64 { return a.Started.UnixMilli() }),
		attempt(func(a *Attempt) int64 { return a.Duration.Milliseconds() }), attempt(func(a *Attempt) int64 { return int64(a.StatusCode) }),
		db.Each(attempted, func(o Outcome) string { return o.Attempt.Error }), db.Each(attempted, func(o Outcome) string { return o.Attempt.Excerpt }),
		attempt(func(a *Attempt) int64 { return a.Lookup.Milliseconds() }), attempt(func(a *Attempt) int64 { return a.Connect.Milliseconds() }),
		attempt(func(a *Attempt) int64 { return a.Handshake.Milliseconds() }), attempt(func(a *Attempt) int64 { return a.Answer.Milliseconds() }))
	return mine, breakers, err
}
