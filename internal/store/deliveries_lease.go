package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Lane tells first attempts from retries. Each merchant has a queue in each.
type Lane string

// The lanes. A lane's text is a condition on a delivery, word for word that
// of the lane's index.
const (
	FirstLane Lane = "attempts = 0"
	RetryLane Lane = "attempts > 0"
)

// Queue is a merchant's queue in a lane, and the place from which to look for
// what is due in it: nothing that waits was due before HeadMS, as far as the
// caller knows. On PostgreSQL, what lies before it may be many dead versions
// of rows, each of which would have to be looked at while a long snapshot
// keeps them from being cleared away.
type Queue struct {
	MerchantID string
	HeadMS     int64 // Unix milliseconds
}

// LeaseRequest asks for deliveries that are due.
type LeaseRequest struct {
	LeaseID string // new with each request
	NowMS   int64  // Unix milliseconds
	UntilMS int64  // Unix milliseconds: when the lease ends by itself
	Lane    Lane
	Queues  []Queue // in the order of their turns
	// Steady and Doubtful are how many deliveries at most, to endpoints whose
	// last answer was a quick success and to all others.
	Steady, Doubtful int
	// PerMerchant is how many deliveries of one merchant may be leased at a
	// time, those of other requests and of both lanes included. Its breaker
	// may allow fewer.
	PerMerchant int
	// Deliverer is who asks, as Enlist knows it, and Busy what it has under way
	// of the merchants. While it is the only one, that is all there is, and
	// what others lease is not looked up: on PostgreSQL there may be many dead
	// versions of rows where it stands. Without a Deliverer it is looked up.
	Deliverer string
	Busy      map[string][]int64
	// LastMS is for how many milliseconds before its deadline a delivery is
	// leased though the breaker is open.
	LastMS int64
}

// QueueState is how a queue was left by a request.
type QueueState struct {
	Queue              // HeadMS is 0 when nothing waits
	Breaker    Breaker // of the merchant
	OpenBefore bool    // the breaker is open: nothing but what is at its end was leased
}

// Leased is the answer to a request.
type Leased struct {
	// Deliveries are those of one merchant together, the oldest first, and the
	// merchants in the order of their turns.
	Deliveries []Delivery
	// Queues are those that were looked at. One that another process serves at
	// this moment was not.
	Queues []QueueState
}

// LeaseDeliveries leases deliveries that are due and not leased by anyone, or
// no longer. Merchants take turns: each gets its oldest one, then each the
// next. What it costs depends on how many queues are named, not on what they
// hold.
func (s *Store) LeaseDeliveries(ctx context.Context, r LeaseRequest) (Leased, error) {
	var leased Leased
	err := s.Update(ctx, func(tx *Tx) (err error) {
		leased, err = tx.leaseDeliveries(ctx, r)
		return err
	})
	if err != nil {
		return Leased{}, fmt.Errorf("lease deliveries: %w", err)
	}
	return leased, nil
}

func (tx *Tx) leaseDeliveries(ctx context.Context, r LeaseRequest) (Leased, error) {
	turns, err := tx.turns(ctx, r)
	if err != nil || len(turns) == 0 {
		return Leased{}, err
	}
	if err := tx.lookAhead(ctx, r, turns); err != nil {
		return Leased{}, err
	}
	chosen := choose(r, turns)
	if err := tx.lease(ctx, r, chosen); err != nil {
		return Leased{}, err
	}
	leased := Leased{Queues: make([]QueueState, len(turns))}
	place := make(map[string]int, len(turns))
	for i, t := range turns {
		leased.Queues[i] = t.left(r)
		place[t.MerchantID] = i
	}
	leased.Deliveries, err = tx.leasedDeliveries(ctx, r.LeaseID, chosen)
	slices.SortStableFunc(leased.Deliveries, func(a, b Delivery) int { return place[a.MerchantID] - place[b.MerchantID] })
	for i, d := range leased.Deliveries {
		leased.Deliveries[i].Doubtful = !turns[place[d.MerchantID]].breaker.Steady
	}
	return leased, err
}

// turn is a queue while a request is carried out.
type turn struct {
	Queue
	breaker Breaker
	busy    map[int64]bool // in flight, whichever lane they are of
	waiting []waiting      // the first of those that are not, in the order in which they are taken
	taken   int            // of them
	open    bool           // the breaker is
}

// waiting is a delivery in a queue.
type waiting struct {
	merchantID             string
	seq, dueMS, deadlineMS int64
}

// turns returns the queues that may be served, and on PostgreSQL keeps other
// replicas from serving their merchants until the transaction ends: two that
// count at once what a merchant has in flight would both fill the rest. Those
// that another replica is serving are passed over.
func (tx *Tx) turns(ctx context.Context, r LeaseRequest) ([]*turn, error) {
	ids := make([]string, len(r.Queues))
	for i, q := range r.Queues {
		ids[i] = q.MerchantID
	}
	free, err := inChunks(ids, func(chunk []any) ([]string, error) {
		return collect(ctx, &tx.queries, scanID, "SELECT id FROM merchants WHERE id IN "+list(0, len(chunk))+tx.lockFree(), chunk...)
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(free)
	var turns []*turn
	byID := make(map[string]*turn, len(free))
	for _, q := range r.Queues {
		if _, ok := slices.BinarySearch(free, q.MerchantID); ok {
			t := &turn{Queue: q, busy: make(map[int64]bool)}
			turns, byID[q.MerchantID] = append(turns, t), t
		}
	}
	breakers, err := tx.Breakers(ctx, free)
	if err != nil {
		return nil, err
	}
	for id, t := range byID {
		t.breaker = breakers[id]
		t.open = t.breaker.UntilMS > r.NowMS
	}
	alone, err := tx.alone(ctx, r)
	if err != nil {
		return nil, err
	}
	if !alone {
		return turns, tx.inFlight(ctx, r, free, byID)
	}
	for id, t := range byID {
		for _, seq := range r.Busy[id] {
			t.busy[seq] = true
		}
	}
	return turns, nil
}

// alone reports whether nobody but the one who asks can hold leases. It is
// asked after the merchants were locked: who enlists later waits for these.
func (tx *Tx) alone(ctx context.Context, r LeaseRequest) (bool, error) {
	if r.Deliverer == "" {
		return false, nil
	}
	others, err := one(ctx, &tx.queries, scanSeq, "SELECT count(*) FROM deliverers WHERE until_ms > $1 AND id <> $2", r.NowMS, r.Deliverer)
	return others == 0, err
}

// Enlist notes that the deliverer may hold leases until a time, in Unix
// milliseconds. It must have come back before the deliverer asks for any, and
// none of them may last longer.
func (s *Store) Enlist(ctx context.Context, deliverer string, nowMS, untilMS int64) error {
	err := s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, "DELETE FROM deliverers WHERE until_ms < $1", nowMS); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `INSERT INTO deliverers (id, until_ms) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms`, deliverer, untilMS)
		return err
	})
	if err != nil {
		return fmt.Errorf("enlist a deliverer: %w", err)
	}
	return nil
}

// Discharge notes that the deliverer holds no leases any more.
func (s *Store) Discharge(ctx context.Context, deliverer string) error {
	err := s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, "DELETE FROM deliverers WHERE id = $1", deliverer)
		return err
	})
	if err != nil {
		return fmt.Errorf("discharge a deliverer: %w", err)
	}
	return nil
}

// inFlight fills in what of the merchants is leased.
func (tx *Tx) inFlight(ctx context.Context, r LeaseRequest, ids []string, turns map[string]*turn) error {
	return padded(ids, "", func(part []string) error {
		_, err := collect(ctx, &tx.queries, func(row scanner) (struct{}, error) {
			var id string
			var seq int64
			err := row.Scan(&id, &seq)
			if err == nil {
				turns[id].busy[seq] = true
			}
			return struct{}{}, err
		}, "SELECT merchant_id, seq FROM leased WHERE until_ms > $1 AND merchant_id IN "+list(1, len(part)),
			append([]any{r.NowMS}, anys(part)...)...)
		return err
	})
}

// lookAhead fills in what waits first in the queues.
func (tx *Tx) lookAhead(ctx context.Context, r LeaseRequest, turns []*turn) error {
	var ordinary, open []*turn
	for _, t := range turns {
		if t.open && r.Lane == RetryLane {
			open = append(open, t)
		} else {
			ordinary = append(ordinary, t)
		}
	}
	if err := tx.lookAheadBy(ctx, r, "due_ms", ordinary); err != nil {
		return err
	}
	// Of first attempts those that are due first are those that end first, too.
	return tx.lookAheadBy(ctx, r, "deadline_ms", open)
}

func (tx *Tx) lookAheadBy(ctx context.Context, r LeaseRequest, order string, turns []*turn) error {
	byID := make(map[string]*turn, len(turns))
	for _, t := range turns {
		byID[t.MerchantID] = t
	}
	if !tx.postgres {
		for _, t := range turns {
			if err := tx.readAhead(ctx, r.ahead(order, "$1", "$2"), byID, t.MerchantID, t.HeadMS); err != nil {
				return err
			}
		}
		return nil
	}
	for part := range slices.Chunk(turns, chunkSize) {
		ids, heads := make([]string, len(part)), make([]int64, len(part))
		for i, t := range part {
			ids[i], heads[i] = t.MerchantID, t.HeadMS
		}
		err := tx.readAhead(ctx, "SELECT found.* FROM unnest($1::text[], $2::bigint[]) AS wanted (merchant_id, head_ms) CROSS JOIN LATERAL ("+
			r.ahead(order, "wanted.merchant_id", "wanted.head_ms")+") AS found", byID, ids, heads)
		if err != nil {
			return err
		}
	}
	return nil
}

// readAhead runs a query of deliveries that wait and gives them to their
// queues.
func (tx *Tx) readAhead(ctx context.Context, query string, turns map[string]*turn, args ...any) error {
	found, err := collect(ctx, &tx.queries, func(row scanner) (w waiting, err error) {
		err = row.Scan(&w.merchantID, &w.seq, &w.dueMS, &w.deadlineMS)
		return w, err
	}, query, args...)
	for _, w := range found {
		if t := turns[w.merchantID]; !t.busy[w.seq] {
			t.waiting = append(t.waiting, w)
		}
	}
	return err
}

// ahead reads the first deliveries of a merchant's queue, as many as can be in
// flight and one more: that one tells where the queue goes on.
func (r LeaseRequest) ahead(order, merchant, head string) string {
	return fmt.Sprintf(`SELECT merchant_id, seq, due_ms, deadline_ms FROM deliveries
		WHERE merchant_id = %s AND %s AND %s >= %s ORDER BY %[3]s LIMIT %[5]d`, merchant, r.Lane, order, head, r.PerMerchant+1)
}

// takes reports whether the queue's next delivery is to be taken now.
func (t *turn) takes(r LeaseRequest) bool {
	if t.taken == len(t.waiting) || len(t.busy)+t.taken >= min(r.PerMerchant, t.breaker.Allowed) {
		return false
	}
	next := t.waiting[t.taken]
	if t.open {
		return next.deadlineMS-r.LastMS <= r.NowMS
	}
	return next.dueMS <= r.NowMS
}

// choose goes round by round and gives each queue its next delivery, until the
// request is filled or nothing more may be taken.
func choose(r LeaseRequest, turns []*turn) []int64 {
	var chosen []int64
	left := map[bool]int{true: r.Steady, false: r.Doubtful}
	for again := true; again; {
		again = false
		for _, t := range turns {
			if left[t.breaker.Steady] > 0 && t.takes(r) {
				chosen = append(chosen, t.waiting[t.taken].seq)
				left[t.breaker.Steady]--
				t.taken++
				again = true
			}
		}
	}
	return chosen
}

// left returns where the queue goes on. One of which only the end was looked
// at stays where it was.
func (t *turn) left(r LeaseRequest) QueueState {
	s := QueueState{Queue: t.Queue, Breaker: t.breaker, OpenBefore: t.open}
	switch {
	case t.open && r.Lane == RetryLane:
	case t.taken < len(t.waiting):
		s.HeadMS = t.waiting[t.taken].dueMS
	default:
		s.HeadMS = 0
	}
	return s
}

// lease takes the deliveries, except those that somebody is finishing now: the
// holder of a lease that ended.
func (tx *Tx) lease(ctx context.Context, r LeaseRequest, chosen []int64) error {
	return padded(chosen, 0, func(part []int64) error {
		_, err := tx.exec(ctx, `INSERT INTO leased (seq, merchant_id, lease_id, until_ms)
			SELECT seq, merchant_id, $1, CAST($2 AS BIGINT) FROM deliveries WHERE seq IN `+list(3, len(part))+tx.lockFree()+`
			ON CONFLICT (seq) DO UPDATE SET lease_id = excluded.lease_id, until_ms = excluded.until_ms WHERE leased.until_ms <= $3`,
			append([]any{r.LeaseID, r.UntilMS, r.NowMS}, anys(part)...)...)
		return err
	})
}

// leasedDeliveries returns those of the deliveries that the lease holds, the
// oldest first.
func (q *queries) leasedDeliveries(ctx context.Context, leaseID string, among []int64) ([]Delivery, error) {
	all, err := inChunks(among, func(chunk []any) ([]Delivery, error) {
		return collect(ctx, q, func(row scanner) (d Delivery, err error) {
			err = row.Scan(&d.Seq, &d.ID, &d.EventID, &d.MerchantID, &d.EventType, &d.Body, &d.Attempts, &d.Since, &d.DueMS, &d.DeadlineMS)
			return d, err
		}, `SELECT e.seq, e.delivery_id, e.id, e.merchant_id, e.type, e.body, d.attempts, d.since, d.due_ms, d.deadline_ms
			FROM leased l JOIN deliveries d ON d.seq = l.seq JOIN events e ON e.seq = l.seq
			WHERE l.lease_id = $1 AND l.seq IN `+list(1, len(chunk)), append([]any{leaseID}, chunk...)...)
	})
	slices.SortFunc(all, func(a, b Delivery) int { return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), cmp.Compare(a.Seq, b.Seq)) })
	return all, err
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
