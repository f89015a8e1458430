package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// EventFilter selects events. Empty fields match all.
type EventFilter struct {
	MerchantID string
	Type       invoice.EventType
	InvoiceID  string
	Delivery   Status
	Created    db.Span
	// After, if not nil, lists events behind that number, the oldest first; 0 is before all. Otherwise the
	// newest come first: all, or the events before the number Before unless that is 0.
	After  *int64
	Before int64
	Limit  int

	// above and through bound the numbers of events in Created. A through of 0 is no bound.
	above, through int64
}

// EventRow is an event and the state of its delivery.
type EventRow struct {
	Event    // Due is when the next attempt of a pending delivery is due
	Status   Status
	Attempts int
	Deadline time.Time // of a pending delivery
	Finished time.Time // zero while pending
	// NoEndpoint is set if the delivery is pending and its merchant has no endpoint. The store leaves it
	// unset, because it does not know the configured endpoints.
	NoEndpoint bool
}

var eventRowTable = db.NewTable("events", func(r *EventRow) []db.Column {
	return append(eventColumns(&r.Event),
		db.Expr("coalesce(d.attempts, f.attempts)", db.Int(&r.Attempts)),
		db.Expr("d.due_ms", db.Milliseconds(&r.Due)),
		db.Expr("d.deadline_ms", db.Milliseconds(&r.Deadline)),
		db.Expr("f.status", db.Text(&r.Status)),
		db.Expr("f.finished_ms", db.Milliseconds(&r.Finished)),
	)
}).Finished(func(r *EventRow) {
	switch {
	case r.Status != "":
	case !r.Deadline.IsZero():
		r.Status = Pending
	default:
		r.Status = None
	}
})

const eventRowTables = " LEFT JOIN deliveries d ON d.seq = e.seq LEFT JOIN finished_deliveries f ON f.seq = e.seq"

// Events lists events in the order of their numbers.
func (q Reader) Events(ctx context.Context, f EventFilter) ([]EventRow, error) {
	rows, err := events(ctx, q, f)
	return rows, db.During("list events", err)
}

// events finds the sequence numbers of the events, and then reads the events.
func events(ctx context.Context, q db.Querier, f EventFilter) ([]EventRow, error) {
	var err error
	if f.above, f.through, err = seqsCreated(ctx, q, f.Created); err != nil {
		return nil, err
	}
	seqs, err := eventSeqs(ctx, q, f)
	if err != nil {
		return nil, err
	}
	return eventPage(ctx, q, f, seqs)
}

// eventPage reads the first f.Limit of these events in the filter's order.
func eventPage(ctx context.Context, q db.Querier, f EventFilter, seqs []int64) ([]EventRow, error) {
	seqs = f.firstOf(seqs)
	rows, err := db.AllIn(ctx, q, eventRowTable.Scan, "SELECT "+eventRowTable.Of("e")+" FROM events e"+eventRowTables+" WHERE e.seq IN ", seqs)
	slices.SortFunc(rows, func(a, b EventRow) int { return f.order(a.Seq, b.Seq) })
	return rows, err
}

// firstOf returns the first f.Limit of these events in the filter's order.
func (f EventFilter) firstOf(seqs []int64) []int64 {
	slices.SortFunc(seqs, f.order)
	seqs = slices.Compact(seqs)
	return seqs[:min(len(seqs), f.Limit)]
}

// EventRecord returns an event and the attempts of its delivery in order, or
// ErrNotFound. Old attempts may have been deleted.
func (q Reader) EventRecord(ctx context.Context, id string) (EventRow, []Attempt, error) {
	r, err := db.QueryRow(ctx, q, eventRowTable.Scan, "SELECT "+eventRowTable.Of("e")+" FROM events e"+eventRowTables+" WHERE e.id = $1", id)
	if err != nil {
		return r, nil, fmt.Errorf("event %s: %w", id, err)
	}
	attempts, err := db.QueryAll(ctx, q, AttemptTable.Scan, AttemptTable.Select()+" WHERE seq = $1 ORDER BY number", r.Seq)
	return r, attempts, err
}
