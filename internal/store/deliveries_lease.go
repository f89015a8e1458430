package store

import (
	"context"
	"fmt"
	"slices"
)

// Lane tells first attempts from retries. Each merchant has a queue in each.
type Lane string

// The lanes. A lane's text is a condition on a delivery, word for word that
// of the lane's index.
const (
	FirstLane Lane = "status = 'pending' AND attempts = 0"
	RetryLane Lane = "status = 'pending' AND attempts > 0"
)

// LeaseRequest asks for deliveries that are due.
type LeaseRequest struct {
	LeaseID string // new with each request
	NowMS   int64  // Unix milliseconds
	UntilMS int64  // Unix milliseconds: when the lease ends by itself
	Lane    Lane
	Limit   int // how many deliveries at most
	// PerMerchant is how many deliveries of one merchant may be leased at a
	// time, those of other requests and of both lanes included.
	PerMerchant int
	// After is the merchant that had the last turn: those behind it in the
	// order of ids come first, then the others.
	After string
}

// LeaseDeliveries leases deliveries that are due and not leased by anyone, or
// no longer. Merchants take turns: each gets its oldest one, then each the
// next. Returned are those of one merchant together, the oldest first, and the
// merchants in the order of their turns; the last one's is the After of the
// next request.
//
// The cost depends on how many merchants have something queued in the lane,
// not on how much.
func (s *Store) LeaseDeliveries(ctx context.Context, r LeaseRequest) ([]Delivery, error) {
	var leased []Delivery
	err := s.Update(ctx, func(tx *Tx) (err error) {
		leased, err = tx.leaseDeliveries(ctx, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lease deliveries: %w", err)
	}
	return leased, nil
}

func (tx *Tx) leaseDeliveries(ctx context.Context, r LeaseRequest) ([]Delivery, error) {
	merchants, err := tx.lockTurns(ctx, r)
	if err != nil || len(merchants) == 0 {
		return nil, err
	}
	if err := tx.leaseInTurns(ctx, r, merchants); err != nil {
		return nil, err
	}
	leased, err := tx.leasedDeliveries(ctx, r.LeaseID)
	slices.SortStableFunc(leased, func(a, b Delivery) int {
		return slices.Index(merchants, a.MerchantID) - slices.Index(merchants, b.MerchantID)
	})
	return leased, err
}

// claimable is an expression for the lane's oldest delivery that may be leased,
// of the merchant whose id is in a column: $1 is now, $2 how many the merchant
// may have in flight. It skips leased ones, of which there are $2 at most; a
// merchant who has all of them in flight costs no look at the queue.
func (l Lane) claimable(merchant string) string {
	return `CASE WHEN (SELECT count(*) FROM deliveries WHERE merchant_id = ` + merchant + `
				AND lease_id IS NOT NULL AND lease_ms > $1) < $2
			THEN (SELECT id FROM deliveries WHERE merchant_id = ` + merchant + ` AND ` + string(l) + `
				AND due_ms <= $1 AND (lease_ms IS NULL OR lease_ms <= $1) ORDER BY due_ms LIMIT 1) END`
}

// lockTurns returns the merchants whose turn it is, and on PostgreSQL keeps
// other replicas from serving them until the transaction ends: two that count
// at once what a merchant has in flight would both fill the rest. Merchants
// that another replica is serving are passed over.
func (tx *Tx) lockTurns(ctx context.Context, r LeaseRequest) ([]string, error) {
	merchants, err := tx.collectTurns(ctx, r, r.turnsBehind(), r.Limit)
	if err != nil || r.After == "" || len(merchants) == r.Limit {
		return merchants, err
	}
	rest, err := tx.collectTurns(ctx, r, r.turnsUpTo(), r.Limit-len(merchants))
	return append(merchants, rest...), err
}

func (tx *Tx) collectTurns(ctx context.Context, r LeaseRequest, query string, limit int) ([]string, error) {
	return collect(ctx, &tx.queries, func(row scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}, query+tx.lockFree(), r.NowMS, r.PerMerchant, limit, r.After)
}

// turnsBehind finds merchants behind the one that had the last turn, $4, and
// turnsUpTo the others.
func (r LeaseRequest) turnsBehind() string { return r.turns("", "$4") }
func (r LeaseRequest) turnsUpTo() string   { return r.turns(" AND merchant_id <= $4", "''") }

// turns walks the lane's index from one merchant to the next and stops when it
// has found $3 who may be served.
func (r LeaseRequest) turns(bound, start string) string {
	next := "(SELECT min(merchant_id) FROM deliveries WHERE " + string(r.Lane) + bound + " AND merchant_id > "
	return `WITH RECURSIVE queued (merchant_id) AS (
			SELECT ` + next + start + `)
			UNION ALL
			SELECT ` + next + `queued.merchant_id) FROM queued WHERE queued.merchant_id IS NOT NULL)
		SELECT id FROM merchants WHERE id IN (
			SELECT merchant_id FROM queued WHERE ` + r.Lane.claimable("queued.merchant_id") + ` IS NOT NULL LIMIT $3)
		ORDER BY id`
}

// leaseInTurns takes one delivery for each of the merchants, and again, until
// the request is filled or nothing more may be taken.
func (tx *Tx) leaseInTurns(ctx context.Context, r LeaseRequest, merchants []string) error {
	args := []any{r.NowMS, r.PerMerchant, r.Limit, r.LeaseID, r.UntilMS}
	for _, m := range merchants {
		args = append(args, m)
	}
	text := r.leaseText(len(merchants))
	free := r.Limit
	for free > 0 {
		args[2] = free
		n, err := tx.exec(ctx, text, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		free -= int(n)
	}
	return nil
}

// leaseText leases the oldest delivery of each of n merchants, $6 and on; of $3
// merchants at most.
func (r LeaseRequest) leaseText(n int) string {
	// What makes a delivery claimable is said once more of the row itself:
	// PostgreSQL checks that again if another transaction was faster.
	return `UPDATE deliveries SET lease_id = $4, lease_ms = $5
		WHERE status = 'pending' AND (lease_ms IS NULL OR lease_ms <= $1) AND id IN (
			SELECT oldest FROM (SELECT ` + r.Lane.claimable("merchants.id") + ` AS oldest FROM merchants
				WHERE id IN ` + list(5, n) + `) AS turns WHERE oldest IS NOT NULL LIMIT $3)`
}

// leasedDeliveries returns what the lease holds, the oldest first.
func (q *queries) leasedDeliveries(ctx context.Context, leaseID string) ([]Delivery, error) {
	return collect(ctx, q, func(row scanner) (d Delivery, err error) {
		err = row.Scan(&d.ID, &d.EventID, &d.MerchantID, &d.EventType, &d.Body, &d.Attempts, &d.DueMS, &d.DeadlineMS)
		return d, err
	}, `SELECT d.id, d.event_id, d.merchant_id, e.type, e.body, d.attempts, d.due_ms, d.deadline_ms
		FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.lease_id = $1 ORDER BY d.due_ms, d.id`, leaseID)
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
