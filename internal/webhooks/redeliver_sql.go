package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Reasons for not sending an event again.
var (
	ErrPending    = errors.New("the event's delivery is not finished")
	ErrNoDelivery = errors.New("the event has no delivery: its merchant wanted no events when it happened")
)

// Redeliver schedules a finished delivery again, under its old id and with a new deadline. Otherwise it returns
// ErrNotFound, ErrPending or ErrNoDelivery. The event is returned in its previous state, also with the last two errors.
// The merchant's endpoint is tried immediately even if its breaker is open.
func Redeliver(ctx context.Context, tx *db.Tx, eventID string, now time.Time) (EventRow, error) {
	r, _, err := NewReader(tx).EventRecord(ctx, eventID)
	switch {
	case err != nil:
	case r.Status == Pending:
		err = ErrPending
	case r.Status == None && r.DeliveryID == "":
		err = ErrNoDelivery
	default:
		var n int64
		if n, err = scheduleAgain(ctx, tx, []int64{r.Seq}, now); err == nil && n == 0 {
			err = ErrPending // another request was faster
		}
	}
	if err != nil {
		return r, fmt.Errorf("send %s again: %w", eventID, err)
	}
	return r, nil
}

// RedeliverFilter selects the finished deliveries to send again. Empty fields match all.
type RedeliverFilter struct {
	MerchantID string
	Type       invoice.EventType
	InvoiceID  string
	// After and Through bound the events' numbers, After exclusive and Through inclusive. A Through of 0
	// is the newest event.
	After, Through int64
	// CreatedFrom and CreatedTo are the first and the last second of the events' creation. Zero is no bound.
	CreatedFrom, CreatedTo time.Time
	OnlyFailed             bool
}

// bound narrows the numbers to those of events that may have been created in these times.
func (f *RedeliverFilter) bound(ctx context.Context, q db.Querier) error {
	created := db.Span{From: f.CreatedFrom}
	if !f.CreatedTo.IsZero() {
		created.To = f.CreatedTo.Add(time.Second)
	}
	after, through, err := seqsCreated(ctx, q, created)
	f.After = max(f.After, after)
	if through != 0 && (f.Through == 0 || through < f.Through) {
		f.Through = through
	}
	return err
}

// Redeliverable returns the numbers of finished deliveries to send again, among the next events up to a limit, and, for
// the After of the next call, the number of the last of these events, or 0 at the end. It runs outside the transaction
// that schedules them, which would let other transactions wait.
func (q Reader) Redeliverable(ctx context.Context, f RedeliverFilter, limit int) (seqs []int64, next int64, err error) {
	seqs, next, err = redeliverable(ctx, q, f, limit)
	return seqs, next, db.During("find events to send again", err)
}

func redeliverable(ctx context.Context, q db.Querier, f RedeliverFilter, limit int) (finished []int64, next int64, err error) {
	if err := f.bound(ctx, q); err != nil {
		return nil, 0, err
	}
	list := EventFilter{MerchantID: f.MerchantID, Type: f.Type, InvoiceID: f.InvoiceID, After: &f.After, Limit: limit}
	if f.OnlyFailed {
		list.Delivery = Failed
	}
	seqs, err := eventSeqs(ctx, q, list)
	if err != nil {
		return nil, 0, err
	}
	if seqs = list.firstOf(seqs); len(seqs) == limit {
		next = seqs[limit-1]
	}
	if i := slices.IndexFunc(seqs, func(seq int64) bool { return f.Through != 0 && seq > f.Through }); i >= 0 {
		seqs, next = seqs[:i], 0 // all are done
	}
	finished, err = db.QueryIn(seqs, func(chunk []any) ([]int64, error) {
		through := int64(math.MaxInt64)
		if !f.CreatedTo.IsZero() {
			through = f.CreatedTo.Unix()
		}
		return db.QueryAll(ctx, q, db.ScanSeq, "SELECT e.seq FROM events e JOIN finished_deliveries f ON f.seq = e.seq WHERE e.created_at BETWEEN $1 AND $2 AND e.seq IN "+
			db.ParameterList(2, len(chunk)), append([]any{invoice.UnixSeconds(f.CreatedFrom), through}, chunk...)...)
	})
	slices.Sort(finished)
	return finished, next, err
}

// RedeliverMany schedules the finished ones of these deliveries again, and returns how many.
func RedeliverMany(ctx context.Context, tx *db.Tx, seqs []int64, now time.Time) (scheduled int64, err error) {
	scheduled, err = scheduleAgain(ctx, tx, seqs, now)
	return scheduled, db.During("send events again", err)
}

// scheduleAgain moves finished deliveries back into the schedule.
func scheduleAgain(ctx context.Context, tx *db.Tx, seqs []int64, now time.Time) (int64, error) {
	type moved struct {
		seq, attempts int64
		merchantID    string
	}
	back, err := db.QueryIn(seqs, func(chunk []any) ([]moved, error) {
		return db.QueryAll(ctx, tx, db.Fields(func(m *moved) []any {
			return []any{&m.seq, &m.merchantID, &m.attempts}
		}), "DELETE FROM finished_deliveries WHERE seq IN "+db.ParameterList(0, len(chunk))+" RETURNING seq, merchant_id, attempts", chunk...)
	})
	if err != nil {
		return 0, err
	}
	rows, merchants := make([][]any, len(back)), make([]string, len(back))
	for i, m := range back {
		rows[i] = []any{m.seq, m.merchantID, m.attempts, m.attempts, now.UnixMilli(), now.Add(RetryWindow).UnixMilli()}
		merchants[i] = m.merchantID
	}
	// All transactions lock breakers in this order, so they cannot deadlock.
	slices.Sort(merchants)
	if err := db.InBatches(slices.Compact(merchants), "", func(part []string) error {
		return tx.Do(ctx, "UPDATE breakers SET until_ms = $1 WHERE until_ms > $1 AND merchant_id IN (SELECT merchant_id FROM breakers WHERE merchant_id IN "+
			db.ParameterList(1, len(part))+" ORDER BY merchant_id"+tx.ForUpdate()+")", append([]any{now.UnixMilli()}, db.ToAny(part)...)...)
	}); err != nil {
		return 0, err
	}
	err = tx.Insert(ctx, db.Insertion{Table: "deliveries", Columns: []string{"seq", "merchant_id", "attempts", "since", "due_ms", "deadline_ms"}, Conflict: ""}, rows)
	return int64(len(back)), err
}
