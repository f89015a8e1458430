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
// what is due in it: nothing waits that was due before HeadMS, or at HeadMS
// with a lower number than HeadSeq, as far as the caller knows. What lies
// before it is under way; on PostgreSQL it may also be many dead versions of
// rows, each of which would have to be looked at while a long snapshot keeps
// them from being cleared away.
type Queue struct {
	MerchantID string
	HeadMS     int64 // Unix milliseconds
	HeadSeq    int64 // of an event
	EndMS      int64 // Unix milliseconds: when the first of its deliveries runs out of time; 0 when nobody looked
}

// Before reports whether the queue begins earlier than another's place.
func (q Queue) Before(o Queue) bool {
	return cmp.Or(cmp.Compare(q.HeadMS, o.HeadMS), cmp.Compare(q.HeadSeq, o.HeadSeq)) < 0
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
	// Queue's HeadMS is 0 when nothing waits. In the retry lane behind an open
	// breaker it is as it was asked for.
	Queue
	Breaker Breaker // of the merchant
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
	choose(r, turns)
	leased := Leased{Queues: make([]QueueState, len(turns))}
	var chosen []Delivery
	for i, t := range turns {
		leased.Queues[i] = t.left(r)
		for _, d := range t.waiting[:t.taken] {
			d.Doubtful = !t.breaker.Steady
			chosen = append(chosen, d)
		}
	}
	leased.Deliveries, err = tx.lease(ctx, r, chosen)
	return leased, err
}

// turn is a queue while a request is carried out.
type turn struct {
	Queue
	breaker Breaker
	busy    map[int64]bool // in flight, whichever lane they are of
	waiting []Delivery     // the first of those that are not, in the order in which they are taken; only what the schedule holds of them
	taken   int            // of them
	limit   int            // how many are looked at
	further *Queue         // where there may be more behind what was looked at; nil when there is not
	open    bool           // the breaker is
	// fromMS leaves out, by their deadlines, what ExpireDeliveries is to fail;
	// in Unix milliseconds.
	fromMS int64
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
	free, err := tx.lockMerchants(ctx, ids)
	if err != nil {
		return nil, err
	}
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
		if t.breaker.givenUp(r.NowMS) {
			t.fromMS = r.NowMS
			// A first attempt's deadline is that long after it is due.
			if first := r.NowMS - RetryWindow; r.Lane == FirstLane && t.HeadMS < first {
				t.HeadMS, t.HeadSeq = first, 0
			}
		}
	}
	alone, err := tx.alone(ctx, r)
	if err != nil {
		return nil, err
	}
	for id, t := range byID {
		for _, seq := range r.Busy[id] {
			t.busy[seq] = true
		}
	}
	if alone {
		return turns, nil
	}
	return turns, tx.inFlight(ctx, r, free, byID)
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

// alone reports whether nobody but the one who asks can hold leases. It is
// asked after the merchants were locked: who enlists later waits for these.
func (tx *Tx) alone(ctx context.Context, r LeaseRequest) (bool, error) {
	if r.Deliverer == "" {
		return false, nil
	}
	others, err := one(ctx, &tx.queries, scanSeq, "SELECT count(*) FROM deliverers WHERE until_ms > $1 AND id <> $2", r.NowMS, r.Deliverer)
	return others == 0, err
}

// Deliverer is a process that takes up attempts.
type Deliverer struct {
	ID string // random, of one run of the process
	// Endpoints is a hash of the merchants whose endpoints its configuration
	// holds. Two deliverers with the same know the same endpoints.
	Endpoints string
}

// Enlist notes that the deliverer may hold leases until a time, in Unix
// milliseconds. It must have come back before the deliverer asks for any, and
// none of them may last longer.
func (s *Store) Enlist(ctx context.Context, d Deliverer, nowMS, untilMS int64) error {
	err := s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, "DELETE FROM deliverers WHERE until_ms < $1", nowMS); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `INSERT INTO deliverers (id, endpoints, until_ms) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET endpoints = excluded.endpoints, until_ms = excluded.until_ms`, d.ID, d.Endpoints, untilMS)
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
	if len(turns) == 0 {
		return nil
	}
	byID, queues := make(map[string]*turn, len(turns)), make(map[bool]int)
	for _, t := range turns {
		byID[t.MerchantID] = t
		queues[t.breaker.Steady]++
	}
	room := map[bool]int{true: r.Steady, false: r.Doubtful}
	most := 0
	for _, t := range turns {
		share := (room[t.breaker.Steady] + queues[t.breaker.Steady] - 1) / queues[t.breaker.Steady]
		// One more tells where the queue goes on.
		t.limit = max(0, min(share, t.allowed(r)-len(t.busy))) + 1
		if t.HeadSeq == 0 { // from a survey, which counts what is under way
			t.limit += len(t.busy)
		}
		most = max(most, t.limit)
	}
	if !tx.postgres {
		for _, t := range turns {
			if err := tx.readAhead(ctx, r.ahead(order, "$1", "$2", "$3", "$4", "$5"), byID, t.MerchantID, t.HeadMS, t.HeadSeq, t.fromMS, t.limit); err != nil {
				return err
			}
		}
		return nil
	}
	for part := range slices.Chunk(turns, chunkSize) {
		ids := make([]string, len(part))
		heads, seqs, from := make([]int64, len(part)), make([]int64, len(part)), make([]int64, len(part))
		for i, t := range part {
			ids[i], heads[i], seqs[i], from[i], t.limit = t.MerchantID, t.HeadMS, t.HeadSeq, t.fromMS, most
		}
		err := tx.readAhead(ctx, `SELECT found.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
			AS wanted (merchant_id, head_ms, head_seq, from_ms) CROSS JOIN LATERAL (`+
			r.ahead(order, "wanted.merchant_id", "wanted.head_ms", "wanted.head_seq", "wanted.from_ms", "$5")+") AS found",
			byID, ids, heads, seqs, from, most)
		if err != nil {
			return err
		}
	}
	return nil
}

// readAhead runs a query of deliveries that wait and gives them to their
// queues, of each of which it finds no more than the turn's limit.
func (tx *Tx) readAhead(ctx context.Context, query string, turns map[string]*turn, args ...any) error {
	found, err := collect(ctx, &tx.queries, func(row scanner) (d Delivery, err error) {
		err = row.Scan(&d.MerchantID, &d.Seq, &d.Attempts, &d.Since, &d.DueMS, &d.DeadlineMS)
		return d, err
	}, query, args...)
	looked := make(map[string]int)
	for _, d := range found {
		t := turns[d.MerchantID]
		if !t.busy[d.Seq] {
			t.waiting = append(t.waiting, d)
		}
		if looked[d.MerchantID]++; looked[d.MerchantID] == t.limit {
			t.further = &Queue{MerchantID: d.MerchantID, HeadMS: d.DueMS, HeadSeq: d.Seq + 1}
		}
	}
	return err
}

// ahead reads the first deliveries of a merchant's queue behind its head.
func (r LeaseRequest) ahead(order, merchant, headMS, headSeq, fromMS, limit string) string {
	return fmt.Sprintf(`SELECT merchant_id, seq, attempts, since, due_ms, deadline_ms FROM deliveries
		WHERE merchant_id = %s AND %s AND (%s, seq) >= (%s, %s) AND deadline_ms >= %s ORDER BY %[3]s, seq LIMIT %[7]s`,
		merchant, r.Lane, order, headMS, headSeq, fromMS, limit)
}

// allowed is how many deliveries of the merchant may be in flight.
func (t *turn) allowed(r LeaseRequest) int { return min(r.PerMerchant, t.breaker.Allowed) }

// takes reports whether the queue's next delivery is to be taken now.
func (t *turn) takes(r LeaseRequest) bool {
	if t.taken == len(t.waiting) || len(t.busy)+t.taken >= t.allowed(r) {
		return false
	}
	next := t.waiting[t.taken]
	if t.open {
		return next.DeadlineMS-r.LastMS <= r.NowMS
	}
	return next.DueMS <= r.NowMS
}

// choose goes round by round and has each queue take its next delivery, until
// the request is filled or nothing more may be taken.
func choose(r LeaseRequest, turns []*turn) {
	left := map[bool]int{true: r.Steady, false: r.Doubtful}
	for again := true; again; {
		again = false
		for _, t := range turns {
			if left[t.breaker.Steady] > 0 && t.takes(r) {
				left[t.breaker.Steady]--
				t.taken++
				again = true
			}
		}
	}
}

// left returns where the queue goes on. One of which only the end was looked
// at stays where it was.
func (t *turn) left(r LeaseRequest) QueueState {
	s := QueueState{Queue: t.Queue, Breaker: t.breaker}
	s.EndMS = 0
	switch {
	case t.open && r.Lane == RetryLane:
	case t.taken < len(t.waiting):
		next := t.waiting[t.taken]
		s.HeadMS, s.HeadSeq = next.DueMS, next.Seq
	case t.further != nil:
		s.Queue = *t.further
	default:
		s.HeadMS, s.HeadSeq = 0, 0
	}
	return s
}

// lease takes the deliveries and returns them with what is to be sent. It
// leaves out those that another process changed since they were looked at, or
// is finishing now: the holder of a lease that ended.
func (tx *Tx) lease(ctx context.Context, r LeaseRequest, chosen []Delivery) ([]Delivery, error) {
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
	chosen = slices.DeleteFunc(chosen, func(d Delivery) bool { return !taken[d.Seq] })
	return chosen, tx.readMessages(ctx, chosen)
}

// unchanged locks deliveries and returns those that nobody has locked or
// changed since they were read. SQLite has one writer.
func (tx *Tx) unchanged(ctx context.Context, deliveries []Delivery) ([]Delivery, error) {
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
	return slices.DeleteFunc(deliveries, func(d Delivery) bool {
		return !found[version{d.Seq, int64(d.Attempts), d.DueMS, d.DeadlineMS}]
	}), err
}

// readMessages fills in what is to be sent.
func (q *queries) readMessages(ctx context.Context, deliveries []Delivery) error {
	place := make(map[int64]int, len(deliveries))
	for i, d := range deliveries {
		place[d.Seq] = i
	}
	_, err := inChunks(seqsOf(deliveries), func(chunk []any) ([]struct{}, error) {
		return collect(ctx, q, func(row scanner) (none struct{}, err error) {
			var seq int64
			var event Delivery
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

func seqsOf(deliveries []Delivery) []int64 {
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
