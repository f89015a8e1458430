package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// AttemptTable has the columns of an attempt, but not the number of its event, seq.
var AttemptTable = db.NewTable("attempts", attemptColumns)

func attemptColumns(a *Attempt) []db.Column {
	return []db.Column{
		db.Col("number", db.Int(&a.Number)),
		db.Col("started_ms", db.Milliseconds(&a.Started)),
		db.Col("duration_ms", db.Duration(&a.Duration, time.Millisecond)),
		db.Col("status_code", db.Null(db.Int(&a.StatusCode))),
		db.Col("error", db.Text(&a.Error)),
		db.Col("excerpt", db.Text(&a.Excerpt)),
		db.Col("lookup_ms", db.Duration(&a.Lookup, time.Millisecond)),
		db.Col("connect_ms", db.Duration(&a.Connect, time.Millisecond)),
		db.Col("handshake_ms", db.Duration(&a.Handshake, time.Millisecond)),
		db.Col("answer_ms", db.Duration(&a.Answer, time.Millisecond)),
	}
}

// FinishedDelivery is the end of a delivery.
type FinishedDelivery struct {
	Seq        int64
	MerchantID string
	Status     Status
	Attempts   int
	Finished   time.Time
}

// FinishedTable has the columns of a finished delivery.
var FinishedTable = db.NewTable("finished_deliveries", func(d *FinishedDelivery) []db.Column {
	return []db.Column{
		db.Col("seq", db.Int(&d.Seq)),
		db.Col("merchant_id", db.Text(&d.MerchantID)),
		db.Col("status", db.Text(&d.Status)),
		db.Col("attempts", db.Int(&d.Attempts)),
		db.Col("finished_ms", db.Milliseconds(&d.Finished)),
	}
})

// FinishDeliveries records outcomes, ends the leases on their deliveries, and updates the breakers. It
// leaves out outcomes with a lease that has another holder by now, and returns their indexes.
func (s Tables) FinishDeliveries(ctx context.Context, outcomes []Outcome) (lost []int, err error) {
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		lost, err = finish(ctx, tx, outcomes)
		return err
	})
	return lost, db.During("finish deliveries", err)
}

func finish(ctx context.Context, tx *db.Tx, outcomes []Outcome) (lost []int, err error) {
	mine, breakers, err := heldLeases(ctx, tx, outcomes)
	if err != nil {
		return nil, err
	}
	kept := make([]Outcome, 0, len(outcomes))
	for i, o := range outcomes {
		if mine[leaseKey{o.Delivery.Seq, o.LeaseID}] {
			kept = append(kept, o)
		} else {
			lost = append(lost, i)
		}
	}
	if err := finishDeliveries(ctx, tx, kept); err != nil {
		return nil, err
	}
	return lost, updateBreakers(ctx, tx, changesOf(kept, breakers), breakers)
}

// leaseKey identifies a lease on a delivery.
type leaseKey struct {
	seq     int64
	leaseID string
}

// heldLeases locks the deliveries of outcomes, and returns the leases on them and the breakers of their merchants.
func heldLeases(ctx context.Context, tx *db.Tx, outcomes []Outcome) (map[leaseKey]bool, map[string]Breaker, error) {
	held, breakers := make(map[leaseKey]bool, len(outcomes)), make(map[string]Breaker)
	seqs := db.Each(outcomes, func(o Outcome) int64 { return o.Delivery.Seq })
	slices.Sort(seqs)
	lock := ""
	if tx.OnPostgres() {
		lock = " ORDER BY d.seq" + tx.ForNoKeyUpdate() + " OF d"
	}
	_, err := db.QueryIn(seqs, func(chunk []any) ([]struct{}, error) {
		return db.QueryAll(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
			var k leaseKey
			var id string
			b, err := breakerTable.ScanAfter(row, &k.seq, &k.leaseID, &id)
			held[k], breakers[id] = true, b
			return none, err
		}, "SELECT d.seq, d.lease_id, d.merchant_id, "+breakerTable.Of("b")+` FROM deliveries d LEFT JOIN breakers b ON b.merchant_id = d.merchant_id
			WHERE d.lease_id IS NOT NULL AND d.seq IN `+db.ParameterList(0, len(chunk))+lock, chunk...)
	})
	return held, breakers, err
}

func finishDeliveries(ctx context.Context, tx *db.Tx, outcomes []Outcome) error {
	var over []int64
	var finished []FinishedDelivery
	var again, attempts [][]any
	for _, o := range outcomes {
		seq := o.Delivery.Seq
		if o.Status == Pending {
			again = append(again, []any{seq, o.Attempts(), db.UnixMilli(o.NextDue)})
		} else {
			over = append(over, seq)
			finished = append(finished, FinishedDelivery{seq, o.Delivery.MerchantID, o.Status, o.Attempts(), o.Finished})
		}
		if a := o.Attempt; a != nil {
			attempts = append(attempts, AttemptTable.Values(*a, seq))
		}
	}
	if err := tx.SendFrom(ctx, []string{"seq BIGINT", "attempts BIGINT", "due_ms BIGINT"}, again,
		"UPDATE deliveries SET attempts = wanted.attempts, due_ms = wanted.due_ms, lease_id = NULL FROM wanted WHERE deliveries.seq = wanted.seq"); err != nil {
		return err
	}
	if err := db.SendIn(ctx, tx, "DELETE FROM deliveries WHERE seq IN ", over); err != nil {
		return err
	}
	if err := FinishedTable.Insert(ctx, tx, "", finished...); err != nil {
		return err
	}
	return tx.Insert(ctx, AttemptTable.Insertion("", "seq BIGINT"), attempts)
}

// ReleaseDeliveries ends leases on deliveries early, so that the deliveries are due at once. It
// returns the number of these leases.
func (s Tables) ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64, now time.Time) (released int64, err error) {
	slices.Sort(seqs)
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		released = 0
		return db.InBatches(seqs, 0, func(part []int64) error {
			// A first attempt gets its old due time back, because its deadline depends on it.
			n, err := tx.Exec(ctx, fmt.Sprintf(`UPDATE deliveries SET lease_id = NULL, due_ms = CASE WHEN attempts = 0 THEN deadline_ms - %d ELSE $1 END
				WHERE lease_id = $2 AND seq IN `, RetryWindow.Milliseconds())+db.ParameterList(2, len(part)), append([]any{now.UnixMilli(), leaseID}, db.ToAny(part)...)...)
			released += n
			return err
		})
	})
	return released, db.During("release deliveries", err)
}

// Queues returns the queues that are not empty, with the due time of their first delivery and their earliest deadline.
// It walks an index from one merchant to the next. It is slow while a long snapshot is open on PostgreSQL.
func (q Reader) Queues(ctx context.Context) ([]Queue, error) {
	return db.QueryAll(ctx, q, db.Fields(func(found *Queue) []any {
		return []any{&found.MerchantID, db.Milliseconds(&found.Head), db.Milliseconds(&found.End)}
	}), `WITH RECURSIVE queued (merchant_id) AS (
			SELECT (SELECT min(merchant_id) FROM deliveries)
			UNION ALL
			SELECT (SELECT min(merchant_id) FROM deliveries WHERE merchant_id > queued.merchant_id) FROM queued WHERE queued.merchant_id IS NOT NULL)
		SELECT merchant_id, head_ms, end_ms FROM (SELECT merchant_id,
			(SELECT min(due_ms) FROM deliveries WHERE deliveries.merchant_id = queued.merchant_id) AS head_ms,
			(SELECT min(deadline_ms) FROM deliveries WHERE deliveries.merchant_id = queued.merchant_id) AS end_ms FROM queued) AS queues
		WHERE head_ms IS NOT NULL`)
}

// RegisterWorker notes that a worker with a random id runs until a time. endpoints is a hash of the endpoints in its
// configuration: two workers with the same hash know the same endpoints.
func (s Tables) RegisterWorker(ctx context.Context, id, endpoints string, now, until time.Time) error {
	err := s.DB.Update(ctx, func(tx *db.Tx) error {
		if err := tx.Send(ctx, nil, "DELETE FROM deliverers WHERE until_ms < $1", now.UnixMilli()); err != nil {
			return err
		}
		return tx.Send(ctx, nil, `INSERT INTO deliverers (id, endpoints, until_ms) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET endpoints = excluded.endpoints, until_ms = excluded.until_ms`, id, endpoints, until.UnixMilli())
	})
	return db.During("register a delivery worker", err)
}

// OverdueRequest selects the deliveries that FailOverdueDeliveries fails.
type OverdueRequest struct {
	Endpoints   string // the hash of the endpoints in the configuration of the worker that asks
	MerchantIDs []string
	// Unreachable are the deliveries of merchants without an endpoint, as far as the worker knows.
	Unreachable map[string]bool
	Now         time.Time
	Limit       int // how many are failed at most
}

// FailOverdueDeliveries fails up to r.Limit deliveries of the merchants if their deadlines have passed and no worker is
// attempting them. It returns how many failed by merchant, and whether there may be more.
//
// A delivery that was never attempted since it was scheduled gets an attempt even after its deadline,
// because the service may have been down. It fails without an attempt if probes of its endpoint failed
// for a whole retry window, or if no running worker knows an endpoint.
func (s Tables) FailOverdueDeliveries(ctx context.Context, r OverdueRequest) (expired map[string]int, more bool, err error) {
	now, limit := r.Now, r.Limit
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		expired, more = make(map[string]int), false
		breakers, err := NewReader(tx).Breakers(ctx, r.MerchantIDs)
		if err != nil {
			return err
		}
		unreachable, err := unreachable(ctx, tx, r)
		if err != nil {
			return err
		}
		var rows []Delivery
		for _, id := range r.MerchantIDs {
			if len(rows) == limit {
				break
			}
			found, err := overdue(ctx, tx, id, unreachable[id] || breakers[id].GivenUp(now), now, limit-len(rows))
			if err != nil {
				return err
			}
			rows = append(rows, found...)
		}
		more = len(rows) == limit
		outcomes := make([]Outcome, len(rows))
		for i, d := range rows {
			outcomes[i] = Outcome{Delivery: d, Status: Failed, Finished: now}
			expired[d.MerchantID]++
		}
		return finishDeliveries(ctx, tx, outcomes)
	})
	if err != nil {
		return nil, false, fmt.Errorf("fail deliveries whose deadlines passed: %w", err)
	}
	return expired, more, nil
}

// unreachable returns the merchants of r.Unreachable without an endpoint: the database has none, and all running workers
// have the same configuration as the calling one. An endpoint that was set a retry window ago, and that the worker still
// does not find, has a secret that cannot be decrypted.
func unreachable(ctx context.Context, tx *db.Tx, r OverdueRequest) (map[string]bool, error) {
	if len(r.Unreachable) == 0 {
		return nil, nil
	}
	others, err := db.QueryRow(ctx, tx, db.ScanSeq, "SELECT count(*) FROM deliverers WHERE until_ms > $1 AND endpoints <> $2", r.Now.UnixMilli(), r.Endpoints)
	if err != nil || others > 0 {
		return nil, err
	}
	left := maps.Clone(r.Unreachable)
	return left, db.InBatches(slices.Sorted(maps.Keys(left)), "", func(part []string) error {
		set, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT merchant_id FROM endpoints WHERE changed_at > $1 AND merchant_id IN "+db.ParameterList(1, len(part)),
			append([]any{r.Now.Add(-RetryWindow).Unix()}, db.ToAny(part)...)...)
		for _, id := range set {
			delete(left, id)
		}
		return err
	})
}

// overdue locks and returns the merchant's deliveries with deadlines that have passed. It includes
// deliveries without an attempt only if the endpoint is given up.
func overdue(ctx context.Context, tx *db.Tx, merchantID string, givenUp bool, now time.Time, limit int) ([]Delivery, error) {
	attempted := " AND attempts > since"
	if givenUp {
		attempted = ""
	}
	return db.QueryAll(ctx, tx, func(row db.Scanner) (d Delivery, err error) {
		d.MerchantID = merchantID
		err = row.Scan(&d.Seq, &d.Attempts)
		return d, err
	}, "SELECT seq, attempts FROM deliveries WHERE merchant_id = $1 AND deadline_ms < $2 AND (lease_id IS NULL OR due_ms <= $2)"+attempted+
		" ORDER BY deadline_ms, seq LIMIT $3"+tx.SkipLocked(), merchantID, now.UnixMilli(), limit)
}
