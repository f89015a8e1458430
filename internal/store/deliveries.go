package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Delivery is an event on its way to a merchant's endpoint.
type Delivery struct {
	ID         string
	Seq        int64 // of the event
	EventID    string
	MerchantID string
	EventType  string
	Body       []byte // the envelope, as it is sent
	Attempts   int    // finished ones
	Since      int    // of those, the ones before the present schedule began
	DueMS      int64  // Unix milliseconds: when this attempt was due
	DeadlineMS int64  // Unix milliseconds: no attempt but the first starts after it
	Doubtful   bool   // it was leased as one to an endpoint that may be slow or dead
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// A delivery is pending until an attempt succeeded or none is left.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Attempt is one exchange with a merchant's endpoint.
type Attempt struct {
	Number     int   // from 1
	StartedMS  int64 // Unix milliseconds
	DurationMS int64
	StatusCode int    // 100 to 999; 0 when there was no answer
	Error      string // why it was not a success; empty when it was
	Excerpt    string // how the answer's body began, without secrets
	// What of DurationMS the parts took that happened: looking up the name,
	// connecting, the TLS handshake, and waiting for the answer's first byte.
	LookupMS, ConnectMS, HandshakeMS, AnswerMS int64
}

// Outcome is what became of a leased delivery.
type Outcome struct {
	Delivery Delivery // as it was leased
	LeaseID  string
	Attempt  *Attempt // nil when the deadline had passed before one more could start
	Status   DeliveryStatus
	// NextDueMS is when the next attempt of a pending one is due, FinishedMS
	// when it became delivered or failed, both in Unix milliseconds.
	NextDueMS, FinishedMS int64
	// Change says what the attempt means for the merchant's breaker; nil for
	// nothing. It may be called more than once.
	Change func(Breaker) Breaker
}

// attempts returns how many attempts the delivery has had now.
func (o Outcome) attempts() int {
	if o.Attempt == nil {
		return o.Delivery.Attempts
	}
	return o.Attempt.Number
}

const attemptColumns = "number, started_ms, duration_ms, status_code, error, excerpt, lookup_ms, connect_ms, handshake_ms, answer_ms"

// FinishDeliveries records outcomes, ends the leases on their deliveries, and
// moves the breakers. An outcome whose lease is no longer its own is left out;
// the places of these are returned.
func (s *Store) FinishDeliveries(ctx context.Context, outcomes []Outcome) (lost []int, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		mine, err := tx.endLeases(ctx, outcomes)
		if err != nil {
			return err
		}
		lost = nil
		var kept []Outcome
		for i, o := range outcomes {
			if mine[o.hold()] {
				kept = append(kept, o)
			} else {
				lost = append(lost, i)
			}
		}
		if err := tx.finishDeliveries(ctx, kept); err != nil {
			return err
		}
		return tx.moveBreakers(ctx, kept)
	})
	if err != nil {
		return nil, fmt.Errorf("finish deliveries: %w", err)
	}
	return lost, nil
}

// hold is a lease on a delivery.
type hold struct {
	seq     int64
	leaseID string
}

func (o Outcome) hold() hold { return hold{o.Delivery.Seq, o.LeaseID} }

// endLeases ends the outcomes' leases and returns those that lasted until now.
func (tx *Tx) endLeases(ctx context.Context, outcomes []Outcome) (map[hold]bool, error) {
	asked, mine := make(map[hold]bool, len(outcomes)), make(map[hold]bool, len(outcomes))
	seqs := make([]int64, len(outcomes))
	for i, o := range outcomes {
		asked[o.hold()], seqs[i] = true, o.Delivery.Seq
	}
	if tx.postgres { // as leasing does: the delivery before the lease on it
		if _, err := inChunks(seqs, func(chunk []any) ([]int64, error) {
			return collect(ctx, &tx.queries, scanSeq, "SELECT seq FROM deliveries WHERE seq IN "+list(0, len(chunk))+" ORDER BY seq FOR NO KEY UPDATE", chunk...)
		}); err != nil {
			return nil, err
		}
	}
	held, err := inChunks(seqs, func(chunk []any) ([]hold, error) {
		return collect(ctx, &tx.queries, func(row scanner) (h hold, err error) {
			err = row.Scan(&h.seq, &h.leaseID)
			return h, err
		}, "SELECT seq, lease_id FROM leased WHERE seq IN "+list(0, len(chunk))+tx.forUpdate(), chunk...)
	})
	if err != nil {
		return nil, err
	}
	ended := seqs[:0]
	for _, h := range held {
		if asked[h] {
			mine[h] = true
			ended = append(ended, h.seq)
		}
	}
	return mine, execIn(ctx, &tx.queries, "DELETE FROM leased WHERE seq IN ", ended)
}

func (tx *Tx) finishDeliveries(ctx context.Context, outcomes []Outcome) error {
	var over []int64
	var finished, again, attempts [][]any
	for _, o := range outcomes {
		seq := o.Delivery.Seq
		if o.Status == DeliveryPending {
			again = append(again, []any{seq, o.attempts(), o.NextDueMS})
		} else {
			over = append(over, seq)
			finished = append(finished, []any{seq, o.Delivery.MerchantID, string(o.Status), o.attempts(), o.FinishedMS})
		}
		if a := o.Attempt; a != nil {
			attempts = append(attempts, []any{seq, a.Number, a.StartedMS, a.DurationMS, orNull(a.StatusCode), a.Error, a.Excerpt,
				a.LookupMS, a.ConnectMS, a.HandshakeMS, a.AnswerMS})
		}
	}
	if _, err := tx.change(ctx, []string{"seq BIGINT", "attempts BIGINT", "due_ms BIGINT"}, again,
		"UPDATE deliveries SET attempts = wanted.attempts, due_ms = wanted.due_ms FROM wanted WHERE deliveries.seq = wanted.seq"); err != nil {
		return err
	}
	if err := execIn(ctx, &tx.queries, "DELETE FROM deliveries WHERE seq IN ", over); err != nil {
		return err
	}
	if err := tx.into(ctx, insertion{"finished_deliveries",
		[]string{"seq", "merchant_id", "status", "attempts", "finished_ms"}, ""}, finished); err != nil {
		return err
	}
	return tx.into(ctx, insertion{"attempts", []string{"seq", "number", "started_ms", "duration_ms", "status_code", "error", "excerpt",
		"lookup_ms", "connect_ms", "handshake_ms", "answer_ms"}, ""}, attempts)
}

// ReleaseDeliveries ends a lease before its time: whoever asks next gets what
// was not finished. It returns how many that were.
func (s *Store) ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64) (released int64, err error) {
	slices.Sort(seqs)
	err = s.Update(ctx, func(tx *Tx) error {
		released = 0
		return padded(seqs, 0, func(part []int64) error {
			n, err := tx.exec(ctx, "DELETE FROM leased WHERE lease_id = $1 AND seq IN "+list(1, len(part)), append([]any{leaseID}, anys(part)...)...)
			released += n
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("release deliveries: %w", err)
	}
	return released, nil
}

// Queues returns the queues of a lane that hold something, when the first of it
// is due, and when the first runs out of time: by walking the lane's index from one merchant to the next. It
// is what a process learns from that knows nothing yet; while a long snapshot
// is open on PostgreSQL it is slow.
func (q *queries) Queues(ctx context.Context, lane Lane) ([]Queue, error) {
	first := "(SELECT min(merchant_id) FROM deliveries WHERE " + string(lane) + " AND merchant_id > "
	least := func(column string) string {
		return "(SELECT min(" + column + ") FROM deliveries WHERE deliveries.merchant_id = queued.merchant_id AND " + string(lane) + ")"
	}
	end := least("deadline_ms")
	if lane == FirstLane { // which is in the order of deadlines, too
		end = least("due_ms") + fmt.Sprintf(" + %d", RetryWindow)
	}
	return collect(ctx, q, scanQueue, `WITH RECURSIVE queued (merchant_id) AS (
			SELECT `+first+`'')
			UNION ALL
			SELECT `+first+`queued.merchant_id) FROM queued WHERE queued.merchant_id IS NOT NULL)
		SELECT merchant_id, head_ms, end_ms FROM (SELECT merchant_id, `+least("due_ms")+` AS head_ms, `+end+` AS end_ms FROM queued) AS queues
		WHERE head_ms IS NOT NULL`)
}

// newsLimit is how many events one look at what is new covers.
const newsLimit = 1000

// News returns in which queues of first attempts the events that came after
// the one with the number after left something, the number of the last one
// that it looked at, and whether there may be more.
func (q *queries) News(ctx context.Context, after int64) (queues []Queue, last int64, more bool, err error) {
	found, err := collect(ctx, q, func(row scanner) (n Queue, err error) {
		err = row.Scan(&n.HeadSeq, &n.MerchantID, seconds{&n.HeadMS})
		return n, err
	}, `SELECT e.seq, e.merchant_id, d.due_ms FROM events e LEFT JOIN deliveries d ON d.seq = e.seq AND d.attempts = 0
		WHERE e.seq > $1 ORDER BY e.seq LIMIT $2`, after, newsLimit)
	if err != nil {
		return nil, after, false, err
	}
	heads := make(map[string]Queue)
	for _, n := range found {
		after = n.HeadSeq
		if head, ok := heads[n.MerchantID]; n.HeadMS != 0 && (!ok || n.Before(head)) {
			heads[n.MerchantID] = n
		}
	}
	queues = slices.AppendSeq(queues, maps.Values(heads))
	slices.SortFunc(queues, func(a, b Queue) int { return cmp.Compare(a.MerchantID, b.MerchantID) })
	return queues, after, len(found) == newsLimit, nil
}

func scanQueue(row scanner) (found Queue, err error) {
	err = row.Scan(&found.MerchantID, &found.HeadMS, &found.EndMS)
	return found, err
}

func scanID(row scanner) (id string, err error) {
	err = row.Scan(&id)
	return id, err
}

func scanSeq(row scanner) (seq int64, err error) {
	err = row.Scan(&seq)
	return seq, err
}
