package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// LeaseDeliveries leases deliveries that are due and not leased by anyone, as Plan chooses them. Its cost depends on
// how many queues are named, not on how many deliveries they hold.
func (s Tables) LeaseDeliveries(ctx context.Context, r LeaseRequest) (Leased, error) {
	var leased Leased
	err := s.DB.Update(ctx, func(tx *db.Tx) (err error) {
		leased, err = leaseDeliveriesIn(ctx, tx, r)
		return err
	})
	return leased, db.During("lease deliveries", err)
}

func leaseDeliveriesIn(ctx context.Context, tx *db.Tx, r LeaseRequest) (leased Leased, err error) {
	ids := db.Each(r.Queues, func(q Queue) string { return q.MerchantID })
	breakers, err := lockMerchants(ctx, tx, ids)
	if err != nil || len(breakers) == 0 {
		return leased, err
	}
	plan := NewPlan(r, breakers)
	byDue, byDeadline := plan.Peeks()
	if err := peek(ctx, tx, "due_ms", byDue, plan); err != nil {
		return leased, err
	}
	if err := peek(ctx, tx, "deadline_ms", byDeadline, plan); err != nil {
		return leased, err
	}
	if err := addInFlight(ctx, tx, r.Now, slices.Sorted(maps.Keys(breakers)), plan); err != nil {
		return leased, err
	}
	chosen, queues := plan.Choose()
	leased.Queues = queues
	leased.Deliveries, err = lease(ctx, tx, r, chosen)
	return leased, err
}

// lockMerchants returns the breakers of the merchants. On PostgreSQL it keeps other replicas from serving these
// merchants until the transaction ends: two replicas that count the deliveries in flight at the same time would both
// use up the merchant's limit. It leaves out merchants that another replica is serving.
func lockMerchants(ctx context.Context, tx *db.Tx, ids []string) (map[string]Breaker, error) {
	if !tx.OnPostgres() {
		return NewReader(tx).Breakers(ctx, ids)
	}
	breakers := make(map[string]Breaker, len(ids))
	err := db.ForEach(ctx, tx, func(row db.Scanner) (err error) {
		var id string
		b, err := breakerTable.ScanAfter(row, &id)
		breakers[id] = b
		return err
	}, "SELECT m.id, "+breakerTable.Of("b")+` FROM merchants m LEFT JOIN breakers b ON b.merchant_id = m.id
		WHERE m.id = ANY ($1::text[]) FOR NO KEY UPDATE OF m SKIP LOCKED`, ids)
	return breakers, err
}

// addInFlight adds the leased deliveries of the merchants to the plan.
func addInFlight(ctx context.Context, tx *db.Tx, now time.Time, ids []string, plan *Plan) error {
	return db.InBatches(ids, "", func(part []string) error {
		return db.ForEach(ctx, tx, func(row db.Scanner) error {
			var id string
			var seq int64
			err := row.Scan(&id, &seq)
			if err == nil {
				plan.AddInFlight(id, seq)
			}
			return err
		}, "SELECT merchant_id, seq FROM deliveries WHERE lease_id IS NOT NULL AND due_ms > $1 AND merchant_id IN "+db.ParameterList(1, len(part)),
			append([]any{now.UnixMilli()}, db.ToAny(part)...)...)
	})
}

// peek reads the first deliveries of queues, in the order of a column, and adds them to the plan. PostgreSQL reads many
// queues at once, with one limit for all of them.
func peek(ctx context.Context, tx *db.Tx, order string, peeks []Peek, plan *Plan) error {
	if tx.OnPostgres() {
		return peekMany(ctx, tx, order, peeks, plan)
	}
	for _, p := range peeks {
		found, err := db.QueryAll(ctx, tx, scanPeeked, peekQuery(order, "$1", "$2", "$3", "$4"),
			p.MerchantID, db.UnixMilli(p.Head), p.HeadSeq, db.UnixMilli(p.From), p.Limit)
		if err != nil {
			return err
		}
		plan.Found(p, found)
	}
	return nil
}

func peekMany(ctx context.Context, tx *db.Tx, order string, peeks []Peek, plan *Plan) error {
	for part := range slices.Chunk(peeks, db.MaxBatch) {
		limit := 0
		for _, p := range part {
			limit = max(limit, p.Limit)
		}
		found, err := db.QueryAll(ctx, tx, scanPeeked, `SELECT found.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
			AS wanted (merchant_id, head_ms, head_seq, from_ms) CROSS JOIN LATERAL (`+
			peekQuery(order, "wanted.merchant_id", "wanted.head_ms", "wanted.head_seq", "wanted.from_ms")+") AS found",
			db.Each(part, func(p Peek) string { return p.MerchantID }), db.Each(part, func(p Peek) int64 { return db.UnixMilli(p.Head) }),
			db.Each(part, func(p Peek) int64 { return p.HeadSeq }), db.Each(part, func(p Peek) int64 { return db.UnixMilli(p.From) }), limit)
		if err != nil {
			return err
		}
		byMerchant := make(map[string][]Delivery, len(part))
		for _, d := range found {
			byMerchant[d.MerchantID] = append(byMerchant[d.MerchantID], d)
		}
		for _, p := range part {
			p.Limit = limit
			plan.Found(p, byMerchant[p.MerchantID])
		}
	}
	return nil
}

// peekQuery reads the first deliveries of a merchant's queue from its head on. $5 is the limit.
func peekQuery(order, merchant, head, headSeq, from string) string {
	return fmt.Sprintf(`SELECT merchant_id, seq, attempts, since, due_ms, deadline_ms FROM deliveries
		WHERE merchant_id = %s AND (%s, seq) >= (%s, %s) AND deadline_ms >= %s ORDER BY %[2]s, seq LIMIT $5`,
		merchant, order, head, headSeq, from)
}

func scanPeeked(row db.Scanner) (d Delivery, err error) {
	err = row.Scan(&d.MerchantID, &d.Seq, &d.Attempts, &d.PriorAttempts, db.Milliseconds(&d.Due), db.Milliseconds(&d.Deadline))
	return d, err
}

// lease leases the deliveries and returns them with the messages to send. It leaves out deliveries that another process
// has changed since they were read, or is finishing now, as the holder of an ended lease.
func lease(ctx context.Context, tx *db.Tx, r LeaseRequest, chosen []Delivery) ([]Delivery, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	messages := make(map[int64]Delivery, len(chosen))
	add := func(row db.Scanner) (none struct{}, err error) {
		var m Delivery
		err = row.Scan(&m.Seq, &m.ID, &m.EventID, &m.EventType, &m.Body)
		messages[m.Seq] = m
		return none, err
	}
	write := leaseOnSQLite
	if tx.OnPostgres() {
		write = leaseOnPostgres
	}
	if err := write(ctx, tx, r, chosen, add); err != nil {
		return nil, err
	}
	leased := chosen[:0]
	for _, d := range chosen {
		if m, ok := messages[d.Seq]; ok {
			d.ID, d.EventID, d.EventType, d.Body = m.ID, m.EventID, m.EventType, m.Body
			leased = append(leased, d)
		}
	}
	return leased, nil
}

// leaseOnPostgres writes the leases and reads the messages in one statement, since each costs a round trip.
func leaseOnPostgres(ctx context.Context, tx *db.Tx, r LeaseRequest, chosen []Delivery, add func(db.Scanner) (struct{}, error)) error {
	_, err := db.QueryAll(ctx, tx, add, `WITH chosen AS (
			SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::bigint[]) AS c (seq, attempts, due_ms)
		), unchanged AS (
			SELECT d.seq FROM chosen JOIN deliveries d USING (seq, attempts, due_ms)
			WHERE d.lease_id IS NULL OR d.due_ms <= $3 FOR NO KEY UPDATE OF d SKIP LOCKED
		), taken AS (
			UPDATE deliveries d SET lease_id = $1, due_ms = $2 FROM unchanged WHERE d.seq = unchanged.seq RETURNING d.seq
		) SELECT seq, delivery_id, id, type, body FROM events JOIN taken USING (seq)`,
		r.LeaseID, r.Until.UnixMilli(), r.Now.UnixMilli(), seqsOf(chosen),
		db.Each(chosen, func(d Delivery) int64 { return int64(d.Attempts) }), db.Each(chosen, func(d Delivery) int64 { return d.Due.UnixMilli() }))
	return err
}

// leaseOnSQLite writes the leases and reads the messages. SQLite has one writer, so no row has changed
// since it was read.
func leaseOnSQLite(ctx context.Context, tx *db.Tx, r LeaseRequest, chosen []Delivery, add func(db.Scanner) (struct{}, error)) error {
	taken, err := db.QueryIn(seqsOf(chosen), func(chunk []any) ([]int64, error) {
		return db.QueryAll(ctx, tx, db.ScanSeq, "UPDATE deliveries SET lease_id = $1, due_ms = $2 WHERE (lease_id IS NULL OR due_ms <= $3) AND seq IN "+
			db.ParameterList(3, len(chunk))+" RETURNING seq", append([]any{r.LeaseID, r.Until.UnixMilli(), r.Now.UnixMilli()}, chunk...)...)
	})
	if err != nil {
		return err
	}
	_, err = db.AllIn(ctx, tx, add, "SELECT seq, delivery_id, id, type, body FROM events WHERE seq IN ", taken)
	return err
}

func seqsOf(deliveries []Delivery) []int64 {
	return db.Each(deliveries, func(d Delivery) int64 { return d.Seq })
}
