package webhooks

import (
	"context"
	"fmt"
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
