package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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

// clockSkew is how much the order of events' numbers may differ from the order of their times:
// replicas' clocks differ, and an event is made before it is committed.
const clockSkew = 5 * time.Minute

// timePoints is the number of events that one step of a search by time looks at.
const timePoints = 64

// seqsCreated returns bounds of the numbers of events that were created in a span: the numbers are
// above the first bound and, unless it is 0, not above the second.
func seqsCreated(ctx context.Context, q db.Querier, created db.Span) (after, through int64, err error) {
	if !created.From.IsZero() {
		if after, _, err = seqsAt(ctx, q, created.From.Add(-clockSkew), false); err != nil {
			return 0, 0, err
		}
	}
	if created.To.IsZero() {
		return after, 0, nil
	}
	_, behind, err := seqsAt(ctx, q, created.To.Add(clockSkew), true)
	if behind != 0 {
		through = max(1, behind-1) // 0 would be no bound
	}
	return after, through, err
}

// seqsAt returns the numbers of two successive events: the first was created before a time, the second was not. They
// are 0 if there are no such events. It returns the first such events, or the last ones: no earlier, or later, event
// among those it looks at was created on the other side, as an event with a wrong date may be.
func seqsAt(ctx context.Context, q db.Querier, at time.Time, last bool) (before, from int64, err error) {
	newest, err := NewReader(q).LastSeq(ctx)
	if err != nil {
		return 0, 0, err
	}
	type point struct{ seq, created int64 }
	for from = newest + 1; from-before > 1; {
		points, err := db.QueryAll(ctx, q, db.Fields(func(p *point) []any { return []any{&p.seq, &p.created} }), `WITH RECURSIVE points (n) AS (
				SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + CAST($2 AS BIGINT) FROM points WHERE n + CAST($2 AS BIGINT) < CAST($3 AS BIGINT)
			) SELECT (SELECT min(seq) FROM events WHERE seq >= n), (SELECT created_at FROM events WHERE seq >= n ORDER BY seq LIMIT 1) FROM points ORDER BY n`,
			before+1, max(1, (from-before)/timePoints), from)
		if err != nil {
			return 0, 0, err
		}
		nextBefore, nextFrom := before, from
		for _, p := range points {
			if p.seq >= from || !last && nextFrom < from {
				break
			}
			if p.created < at.Unix() {
				nextBefore, nextFrom = p.seq, from
			} else if nextFrom == from {
				nextFrom = p.seq
			}
		}
		if nextBefore == before && nextFrom == from {
			break // no event is between them
		}
		before, from = nextBefore, nextFrom
	}
	if from > newest {
		from = 0
	}
	return before, from, nil
}

// fewDeliveries bounds the deliveries in a state that are all read to find the ones of an event type.
const fewDeliveries = 1000

// eventSeqs returns the sequence numbers of the events on a page, and possibly of later ones, in no
// order and some twice. The number of rows it reads is bounded by indexes that a delivery does not
// have to update, except its merchant's:
//   - An invoice has few events.
//   - Events with a delivery and events without one have separate indexes.
//   - Deliveries in each state have indexes by number and by merchant and number.
//   - Deliveries in a state and of an event type are found among those in the state
//     while these are few, and otherwise among the events of the type.
func eventSeqs(ctx context.Context, q db.Querier, f EventFilter) ([]int64, error) {
	switch {
	case f.InvoiceID != "" || f.Delivery == "" || f.Delivery == None:
		return seqsInParts(ctx, q, f)
	case f.Type == "":
		return seqsInState(ctx, q, f)
	case f.Delivery != Delivered: // most are delivered
		if found, few, err := seqsOfFew(ctx, q, f); few || err != nil {
			return found, err
		}
	}
	return seqsOfType(ctx, q, f)
}

// seqsInState lists deliveries in a state, with events of any type.
func seqsInState(ctx context.Context, q db.Querier, f EventFilter) ([]int64, error) {
	c := &condition{of: "deliveries s"}
	if f.Delivery != Pending {
		c = &condition{of: "finished_deliveries s", terms: []string{"s.status = '" + string(f.Delivery) + "'"}} // a constant, as in the index
	}
	c.equal("s.merchant_id", f.MerchantID)
	return seqs(ctx, q, c, f, 0)
}

// seqsOfFew reads all deliveries in the state and on the page or behind it, and returns the ones of
// the filter's type. few is false if there are too many.
func seqsOfFew(ctx context.Context, q db.Querier, f EventFilter) (found []int64, few bool, err error) {
	all := f
	all.Limit = fewDeliveries + 1
	found, err = seqsInState(ctx, q, all)
	if err != nil || len(found) > fewDeliveries {
		return nil, false, err
	}
	found, err = db.AllIn(ctx, q, db.ScanSeq, "SELECT seq FROM events WHERE type = $1 AND seq IN ", found, string(f.Type))
	return found, true, err
}

// seqsOfType lists the events of a type with deliveries in a state. It starts at the first delivery in
// the state, to skip earlier events, which can be very many after an outage.
func seqsOfType(ctx context.Context, q db.Querier, f EventFilter) ([]int64, error) {
	one := f
	one.Limit = 1
	first, err := seqsInState(ctx, q, one)
	if len(first) == 0 || err != nil {
		return nil, err
	}
	if f.After != nil {
		after := first[0] - 1
		f.After = &after
	} else {
		f.Before = first[0] + 1
	}
	return seqsInParts(ctx, q, f)
}

// seqsInParts lists events by several indexes, each of which covers a part of them in order.
func seqsInParts(ctx context.Context, q db.Querier, f EventFilter) ([]int64, error) {
	var through int64
	parts := f.parts()
	if len(parts) > 1 && f.After != nil {
		// An event that is recorded between two parts would be listed only in the second, and a reader that
		// continues after it would miss the rest.
		var err error
		if through, err = NewReader(q).LastSeq(ctx); through == 0 || err != nil {
			return nil, err
		}
	}
	var all []int64
	for _, c := range parts {
		found, err := seqs(ctx, q, c, f, through)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// parts splits the filter into conditions that one index serves each: by type for a merchant's events,
// and by whether they have a delivery.
func (f EventFilter) parts() []*condition {
	kinds := []string{"s.delivery_id IS NULL", "s.delivery_id IS NOT NULL"}
	switch f.Delivery {
	case "":
	case None:
		kinds = kinds[:1]
	case Pending, Delivered, Failed:
		kinds = kinds[1:]
	}
	types := invoice.EventTypes
	switch {
	case f.InvoiceID != "", f.MerchantID == "" && f.Type == "" && f.Delivery == "":
		return []*condition{f.condition(kinds, f.Type)}
	case f.Type != "":
		types = []invoice.EventType{f.Type}
	}
	var parts []*condition
	for _, kind := range kinds {
		for _, t := range types {
			parts = append(parts, f.condition([]string{kind}, t))
		}
	}
	return parts
}

// condition returns the condition of a part: events of a type, with or without a delivery, or both.
// OFFSET 0 keeps PostgreSQL from turning lookups into a join that reads the whole table.
func (f EventFilter) condition(kinds []string, t invoice.EventType) *condition {
	c := &condition{of: "events s"}
	if len(kinds) == 1 {
		c.terms = append(c.terms, kinds[0])
	}
	switch f.Delivery {
	case "", None:
	case Pending:
		c.terms = append(c.terms, "EXISTS (SELECT 1 FROM deliveries x WHERE x.seq = s.seq LIMIT 1 OFFSET 0)")
	case Delivered, Failed:
		c.args = append(c.args, string(f.Delivery))
		c.terms = append(c.terms, "EXISTS (SELECT 1 FROM finished_deliveries x WHERE x.seq = s.seq AND x.status = "+db.Parameter(len(c.args))+" LIMIT 1 OFFSET 0)")
	}
	merchant, kind := "s.merchant_id", "s.type"
	if f.InvoiceID != "" {
		// An invoice has fewer events than a merchant or a type. The concatenations keep the planners from
		// using the indexes on those (TestEventListsUseTheirIndexes).
		merchant, kind = "s.merchant_id || ''", "s.type || ''"
	}
	c.equal(merchant, f.MerchantID)
	c.equal(kind, string(t))
	c.equal("s.invoice_id", f.InvoiceID)
	return c
}

// condition selects rows of a table with the alias s.
type condition struct {
	of    string
	terms []string
	args  []any
}

// equal adds a term unless the value is empty.
func (c *condition) equal(expression, value string) {
	if value != "" {
		c.add(expression+" =", value)
	}
}

func (c *condition) add(left string, value any) {
	c.args = append(c.args, value)
	c.terms = append(c.terms, left+" "+db.Parameter(len(c.args)))
}

// seqs lists up to f.Limit sequence numbers of the filter's page, none above through unless that is 0.
func seqs(ctx context.Context, q db.Querier, c *condition, f EventFilter, through int64) ([]int64, error) {
	order := " DESC"
	switch {
	case f.After != nil:
		order = ""
		c.add("s.seq >", *f.After)
	case f.Before != 0:
		c.add("s.seq <", f.Before)
	}
	if through != 0 {
		c.add("s.seq <=", through)
	}
	c.created(f)
	text := "SELECT s.seq FROM " + c.of
	if len(c.terms) > 0 {
		text += " WHERE " + strings.Join(c.terms, " AND ")
	}
	c.args = append(c.args, f.Limit)
	return db.QueryAll(ctx, q, db.ScanSeq, text+" ORDER BY s.seq"+order+" LIMIT "+db.Parameter(len(c.args)), c.args...)
}

// created adds the terms of the filter by the time of creation. Within the bounds of the
// numbers, few events were created at other times.
func (c *condition) created(f EventFilter) {
	if f.Created.IsZero() {
		return
	}
	at := "s.created_at"
	if c.of != "events s" {
		at = "(SELECT x.created_at FROM events x WHERE x.seq = s.seq)"
	}
	c.add("s.seq >", f.above)
	if f.through != 0 {
		c.add("s.seq <=", f.through)
	}
	c.add(at+" >=", f.Created.First())
	c.add(at+" <", f.Created.End())
}

// order compares sequence numbers in the filter's order.
func (f EventFilter) order(a, b int64) int {
	if f.After != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}
