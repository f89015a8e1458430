package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/delivery"
)

// LeaseDeliveries leases deliveries that are due and not leased by anyone, as
// delivery.Plan chooses them. Its cost depends on how many queues are named,
// not on how many deliveries they hold.
func (s *Store) LeaseDeliveries(ctx context.Context, r delivery.LeaseRequest) (delivery.Leased, error) {
	var leased delivery.Leased
	err := s.Update(ctx, func(tx *Tx) (err error) {
		leased, err = tx.leaseDeliveries(ctx, r)
		return err
	})
	if err != nil {
		return delivery.Leased{}, fmt.Errorf("lease deliveries: %w", err)
	}
	return leased, nil
}

func (tx *Tx) leaseDeliveries(ctx context.Context, r delivery.LeaseRequest) (leased delivery.Leased, err error) {
	plan, err := tx.plan(ctx, r)
	if err != nil {
		return leased, err
	}
	byDue, byDeadline := plan.Peeks()
	if err := tx.peek(ctx, r.Lane, "due_ms", byDue, plan); err != nil {
		return leased, err
	}
	if err := tx.peek(ctx, r.Lane, "deadline_ms", byDeadline, plan); err != nil {
		return leased, err
	}
	chosen, queues := plan.Choose()
	leased.Queues = queues
	leased.Deliveries, err = tx.lease(ctx, r, chosen)
	return leased, err
}

// plan begins a plan for the queues that may be served. On PostgreSQL it keeps
// other replicas from serving their merchants until the transaction ends: two
// that count at once what a merchant has in flight would both fill the rest. A
// queue that another replica is serving is left out.
func (tx *Tx) plan(ctx context.Context, r delivery.LeaseRequest) (*delivery.Plan, error) {
	ids := make([]string, len(r.Queues))
	for i, q := range r.Queues {
		ids[i] = q.MerchantID
	}
	free, err := tx.lockMerchants(ctx, ids)
	if err != nil {
		return nil, err
	}
	breakers, err := tx.Breakers(ctx, free)
	if err != nil {
		return nil, err
	}
	plan := delivery.NewPlan(r, breakers)
	if len(free) == 0 {
		return plan, nil
	}
	only, err := tx.onlyWorker(ctx, r)
	if err != nil || only {
		return plan, err
	}
	return plan, tx.addInFlight(ctx, r.NowMS, free, plan)
}

// lockMerchants locks merchants that nobody else has locked and returns them,
// sorted.
func (tx *Tx) lockMerchants(ctx context.Context, ids []string) (free []string, err error) {
	free = slices.Clone(ids)
	if tx.postgres {
		free, err = inChunks(ids, func(chunk []any) ([]string, error) {
			return collect(ctx, &tx.queries, scanID, "SELECT id FROM merchants WHERE id IN "+list(0, len(chunk))+tx.lockFree(), chunk...)
		})
	}
	slices.Sort(free)
	return free, err
}

// addInFlight adds the leased deliveries of the merchants to the plan.
func (tx *Tx) addInFlight(ctx context.Context, nowMS int64, ids []string, plan *delivery.Plan) error {
	return padded(ids, "", func(part []string) error {
		_, err := collect(ctx, &tx.queries, func(row scanner) (struct{}, error) {
			var id string
			var seq int64
			err := row.Scan(&id, &seq)
			if err == nil {
				plan.AddInFlight(id, seq)
			}
			return struct{}{}, err
		}, "SELECT merchant_id, seq FROM leased WHERE until_ms > $1 AND merchant_id IN "+list(1, len(part)),
			append([]any{nowMS}, anys(part)...)...)
		return err
	})
}

// peek reads the first deliveries of queues, in the order of a column, and adds
// them to the plan. PostgreSQL reads many queues at once, with one limit for
// all of them.
func (tx *Tx) peek(ctx context.Context, lane delivery.Lane, order string, peeks []delivery.Peek, plan *delivery.Plan) error {
	if !tx.postgres {
		for _, p := range peeks {
			found, err := collect(ctx, &tx.queries, scanPeeked, peekQuery(lane, order, "$1", "$2", "$3", "$4", "$5"),
				p.MerchantID, p.HeadMS, p.HeadSeq, p.FromMS, p.Limit)
			if err != nil {
				return err
			}
			plan.Found(p, found)
		}
		return nil
	}
	for part := range slices.Chunk(peeks, chunkSize) {
		ids := make([]string, len(part))
		heads, seqs, from := make([]int64, len(part)), make([]int64, len(part)), make([]int64, len(part))
		limit := 0
		for i, p := range part {
			ids[i], heads[i], seqs[i], from[i], limit = p.MerchantID, p.HeadMS, p.HeadSeq, p.FromMS, max(limit, p.Limit)
		}
		found, err := collect(ctx, &tx.queries, scanPeeked, `SELECT found.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
			AS wanted (merchant_id, head_ms, head_seq, from_ms) CROSS JOIN LATERAL (`+
			peekQuery(lane, order, "wanted.merchant_id", "wanted.head_ms", "wanted.head_seq", "wanted.from_ms", "$5")+") AS found",
			ids, heads, seqs, from, limit)
		if err != nil {
			return err
		}
		byMerchant := make(map[string][]delivery.Delivery, len(part))
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

// peekQuery reads the first deliveries of a merchant's queue from its head on.
func peekQuery(lane delivery.Lane, order, merchant, headMS, headSeq, fromMS, limit string) string {
	return fmt.Sprintf(`SELECT merchant_id, seq, attempts, since, due_ms, deadline_ms FROM deliveries
		WHERE merchant_id = %s AND %s AND (%s, seq) >= (%s, %s) AND deadline_ms >= %s ORDER BY %[3]s, seq LIMIT %[7]s`,
		merchant, conditions[lane], order, headMS, headSeq, fromMS, limit)
}

func scanPeeked(row scanner) (d delivery.Delivery, err error) {
	err = row.Scan(&d.MerchantID, &d.Seq, &d.Attempts, &d.PriorAttempts, &d.DueMS, &d.DeadlineMS)
	return d, err
}

// lease takes the deliveries and returns them with what is to be sent. It
// leaves out those that another process changed since they were looked at, or
// is finishing now: the holder of a lease that ended.
func (tx *Tx) lease(ctx context.Context, r delivery.LeaseRequest, chosen []delivery.Delivery) ([]delivery.Delivery, error) {
	chosen, err := tx.unchanged(ctx, chosen)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(chosen))
	for i, d := range chosen {
		rows[i] = []any{d.Seq, d.MerchantID, r.LeaseID, r.UntilMS}
	}
	taken := make(map[int64]bool, len(chosen))
	columns := []string{"seq", "merchant_id", "lease_id", "until_ms"}
	if err := tx.written(rows, len(columns), func(part [][]any) error {
		now := parameter(len(part)*len(columns) + 1)
		seqs, err := collect(ctx, &tx.queries, scanSeq, insertion{"leased", columns, `ON CONFLICT (seq) DO UPDATE
			SET lease_id = excluded.lease_id, until_ms = excluded.until_ms WHERE leased.until_ms <= ` + now + " RETURNING seq"}.text(len(part)),
			append(slices.Concat(part...), r.NowMS)...)
		for _, seq := range seqs {
			taken[seq] = true
		}
		return err
	}); err != nil {
		return nil, err
	}
	chosen = slices.DeleteFunc(chosen, func(d delivery.Delivery) bool { return !taken[d.Seq] })
	return chosen, tx.readMessages(ctx, chosen)
}

// unchanged locks deliveries and returns those that nobody has locked or
// changed since they were read. SQLite has one writer.
func (tx *Tx) unchanged(ctx context.Context, deliveries []delivery.Delivery) ([]delivery.Delivery, error) {
	if !tx.postgres {
		return deliveries, nil
	}
	type version struct{ seq, attempts, dueMS, deadlineMS int64 }
	versions, err := inChunks(seqsOf(deliveries), func(chunk []any) ([]version, error) {
		return collect(ctx, &tx.queries, func(row scanner) (v version, err error) {
			err = row.Scan(&v.seq, &v.attempts, &v.dueMS, &v.deadlineMS)
			return v, err
		}, "SELECT seq, attempts, due_ms, deadline_ms FROM deliveries WHERE seq IN "+list(0, len(chunk))+tx.lockFree(), chunk...)
	})
	found := make(map[version]bool, len(versions))
	for _, v := range versions {
		found[v] = true
	}
	return slices.DeleteFunc(deliveries, func(d delivery.Delivery) bool {
		return !found[version{d.Seq, int64(d.Attempts), d.DueMS, d.DeadlineMS}]
	}), err
}

// readMessages fills in what is to be sent.
func (q *queries) readMessages(ctx context.Context, deliveries []delivery.Delivery) error {
	place := make(map[int64]int, len(deliveries))
	for i, d := range deliveries {
		place[d.Seq] = i
	}
	_, err := inChunks(seqsOf(deliveries), func(chunk []any) ([]struct{}, error) {
		return collect(ctx, q, func(row scanner) (none struct{}, err error) {
			var seq int64
			var event delivery.Delivery
			if err := row.Scan(&seq, &event.ID, &event.EventID, &event.EventType, &event.Body); err != nil {
				return none, err
			}
			d := &deliveries[place[seq]]
			d.ID, d.EventID, d.EventType, d.Body = event.ID, event.EventID, event.EventType, event.Body
			return none, nil
		}, "SELECT seq, delivery_id, id, type, body FROM events WHERE seq IN "+list(0, len(chunk)), chunk...)
	})
	return err
}

func seqsOf(deliveries []delivery.Delivery) []int64 {
	seqs := make([]int64, len(deliveries))
	for i, d := range deliveries {
		seqs[i] = d.Seq
	}
	return seqs
}

// lockFree is the clause that locks the rows of a SELECT until the transaction
// ends, for changes that leave their keys alone, and leaves out those that
// others have locked. SQLite has one writer and needs none.
func (tx *Tx) lockFree() string {
	if tx.postgres {
		return " FOR NO KEY UPDATE SKIP LOCKED"
	}
	return ""
}
