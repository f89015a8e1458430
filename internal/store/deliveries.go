package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

const attemptColumns = "number, started_ms, duration_ms, status_code, error, excerpt, lookup_ms, connect_ms, handshake_ms, answer_ms"

// FinishDeliveries records outcomes, ends the leases on their deliveries, and
// updates the breakers. It leaves out outcomes whose lease somebody else has by
// now, and returns their indexes.
func (s *Store) FinishDeliveries(ctx context.Context, outcomes []delivery.Outcome) (lost []int, err error) {
	var mine map[leaseKey]bool
	if s.postgres && !slices.ContainsFunc(outcomes, func(o delivery.Outcome) bool { return o.Status != delivery.Delivered }) {
		mine, err = s.finishDelivered(ctx, outcomes)
	} else {
		err = s.Update(ctx, func(tx *Tx) error {
			mine, err = tx.finish(ctx, outcomes)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("finish deliveries: %w", err)
	}
	for i, o := range outcomes {
		if !mine[leaseKeyOf(o)] {
			lost = append(lost, i)
		}
	}
	return lost, nil
}

// finish returns the leases that the outcomes had.
func (tx *Tx) finish(ctx context.Context, outcomes []delivery.Outcome) (map[leaseKey]bool, error) {
	if tx.postgres {
		return tx.finishOnPostgres(ctx, outcomes)
	}
	mine, err := tx.heldLeases(ctx, outcomes)
	if err != nil {
		return nil, err
	}
	kept := keep(outcomes, mine)
	if err := tx.finishDeliveries(ctx, kept); err != nil {
		return nil, err
	}
	merchants := make(map[string]bool, len(kept))
	for _, o := range kept {
		merchants[o.Delivery.MerchantID] = true
	}
	breakers, err := tx.Breakers(ctx, slices.Sorted(maps.Keys(merchants)))
	if err != nil {
		return nil, err
	}
	return mine, tx.updateBreakers(ctx, changesOf(kept, breakers), breakers)
}

// keep returns the outcomes that had their lease.
func keep(outcomes []delivery.Outcome, mine map[leaseKey]bool) (kept []delivery.Outcome) {
	for _, o := range outcomes {
		if mine[leaseKeyOf(o)] {
			kept = append(kept, o)
		}
	}
	return kept
}

// leaseKey identifies a lease on a delivery.
type leaseKey struct {
	seq     int64
	leaseID string
}

func leaseKeyOf(o delivery.Outcome) leaseKey { return leaseKey{o.Delivery.Seq, o.LeaseID} }

// heldLeases returns the outcomes' leases that are still held.
func (tx *Tx) heldLeases(ctx context.Context, outcomes []delivery.Outcome) (map[leaseKey]bool, error) {
	asked, mine := make(map[leaseKey]bool, len(outcomes)), make(map[leaseKey]bool, len(outcomes))
	seqs := make([]int64, len(outcomes))
	for i, o := range outcomes {
		asked[leaseKeyOf(o)], seqs[i] = true, o.Delivery.Seq
	}
	held, err := queryIn(seqs, func(chunk []any) ([]leaseKey, error) {
		return queryAll(ctx, &tx.queries, scanLeaseKey, "SELECT seq, lease_id FROM deliveries WHERE lease_id IS NOT NULL AND seq IN "+parameterList(0, len(chunk)), chunk...)
	})
	for _, k := range held {
		if asked[k] {
			mine[k] = true
		}
	}
	return mine, err
}

func scanLeaseKey(row scanner) (k leaseKey, err error) {
	err = row.Scan(&k.seq, &k.leaseID)
	return k, err
}

func (tx *Tx) finishDeliveries(ctx context.Context, outcomes []delivery.Outcome) error {
	var over []int64
	var finished, again, attempts [][]any
	for _, o := range outcomes {
		seq := o.Delivery.Seq
		if o.Status == delivery.Pending {
			again = append(again, []any{seq, o.Attempts(), unixMilli(o.NextDue)})
		} else {
			over = append(over, seq)
			finished = append(finished, []any{seq, o.Delivery.MerchantID, string(o.Status), o.Attempts(), unixMilli(o.Finished)})
		}
		if a := o.Attempt; a != nil {
			attempts = append(attempts, attemptValues(seq, *a))
		}
	}
	if err := tx.sendFrom(ctx, []string{"seq BIGINT", "attempts BIGINT", "due_ms BIGINT"}, again,
		"UPDATE deliveries SET attempts = wanted.attempts, due_ms = wanted.due_ms, lease_id = NULL FROM wanted WHERE deliveries.seq = wanted.seq"); err != nil {
		return err
	}
	if err := sendIn(ctx, &tx.queries, "DELETE FROM deliveries WHERE seq IN ", over); err != nil {
		return err
	}
	if err := tx.insert(ctx, insertion{"finished_deliveries", typed(finishedColumns), ""}, finished); err != nil {
		return err
	}
	return tx.insert(ctx, insertion{"attempts", typed(insertedAttempt), ""}, attempts)
}

var (
	finishedColumns = []string{"seq", "merchant_id", "status", "attempts", "finished_ms"}
	insertedAttempt = append([]string{"seq"}, strings.Split(attemptColumns, ", ")...)
)

// attemptValues returns the values of insertedAttempt.
func attemptValues(seq int64, a delivery.Attempt) []any {
	return []any{seq, a.Number, a.Started.UnixMilli(), a.Duration.Milliseconds(), orNull(a.StatusCode), a.Error, a.Excerpt,
		a.Lookup.Milliseconds(), a.Connect.Milliseconds(), a.Handshake.Milliseconds(), a.Answer.Milliseconds()}
}

// ReleaseDeliveries ends the leases on deliveries before their time, so that
// they are due at once. It returns how many leases that were.
func (s *Store) ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64, now time.Time) (released int64, err error) {
	slices.Sort(seqs)
	err = s.Update(ctx, func(tx *Tx) error {
		released = 0
		return inBatches(seqs, 0, func(part []int64) error {
			// A first attempt is due again when it was, by which it expires.
			n, err := tx.exec(ctx, fmt.Sprintf(`UPDATE deliveries SET lease_id = NULL, due_ms = CASE WHEN attempts = 0 THEN deadline_ms - %d ELSE $1 END
				WHERE lease_id = $2 AND seq IN `, delivery.RetryWindow.Milliseconds())+parameterList(2, len(part)), append([]any{now.UnixMilli(), leaseID}, toAny(part)...)...)
			released += n
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("release deliveries: %w", err)
	}
	return released, nil
}
