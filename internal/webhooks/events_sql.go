package webhooks

import (
	"context"
	"maps"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Event is a notification to a merchant. A subject has at most one event of each type.
type Event struct {
	ID         string
	Seq        int64 // its place in the order of commits; InsertEvents has it set by the commit, 0 for an event that it leaves out
	Type       invoice.EventType
	Subject    string
	MerchantID string
	InvoiceID  string
	Body       []byte // the envelope, as it is sent
	CreatedAt  time.Time
	// DeliveryID is the id of the event's delivery, empty when the merchant has no endpoint to deliver to.
	DeliveryID string
	Due        time.Time // when its first attempt is due
}

// eventsLock is the key of PostgreSQL's advisory lock on the order of events.
const eventsLock = 0x71756974

// InsertEvents inserts events and schedules their deliveries. It skips an event if its subject already
// has one of the type.
//
// It must be the last call of a transaction: from here to the commit no other transaction can insert events. Events
// therefore become visible in the order of their sequence numbers, and a reader in that order misses no event.
func InsertEvents(ctx context.Context, tx *db.Tx, events []Event) error {
	switch {
	case len(events) == 0:
		return nil
	case tx.OnPostgres():
		return insertEventsOnPostgres(ctx, tx, events)
	}
	seq, err := NewReader(tx).LastSeq(ctx)
	if err != nil {
		return err
	}
	fresh := firstOfEach(events)
	rows, numbers := make([][]any, len(fresh)), make(map[string]int64, len(fresh))
	for i, e := range fresh {
		numbers[e.ID] = seq + int64(i) + 1
		numbered := *e
		numbered.Seq = numbers[e.ID]
		rows[i] = EventTable.Values(numbered)
	}
	inserted, err := tx.InsertReturningKeys(ctx, EventTable.Insertion("ON CONFLICT (subject, type) DO NOTHING"), rows)
	if err != nil {
		return err
	}
	maps.DeleteFunc(numbers, func(id string, _ int64) bool { return !inserted[id] })
	var deliveries [][]any
	for _, e := range fresh {
		if e.Seq = numbers[e.ID]; e.Seq != 0 && e.DeliveryID != "" {
			deliveries = append(deliveries, []any{e.Seq, e.MerchantID, e.Due.UnixMilli(), e.Due.Add(RetryWindow).UnixMilli()})
		}
	}
	return tx.Insert(ctx, db.Insertion{Table: "deliveries", Columns: []string{"seq", "merchant_id", "due_ms", "deadline_ms"}, Conflict: ""}, deliveries)
}

// firstOfEach returns the first event of each id, and leaves the others out.
func firstOfEach(events []Event) []*Event {
	seen, first := make(map[string]bool, len(events)), make([]*Event, 0, len(events))
	for i := range events {
		e := &events[i]
		if e.Seq = 0; !seen[e.ID] {
			seen[e.ID] = true
			first = append(first, e)
		}
	}
	return first
}

// EventTable has the columns of an event, but not its delivery.
var EventTable = db.NewTable("events", eventColumns)

func eventColumns(e *Event) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&e.ID)),
		db.Col("seq", db.Int(&e.Seq)),
		db.Col("type", db.Text(&e.Type)),
		db.Col("subject", db.Text(&e.Subject)),
		db.Col("merchant_id", db.Text(&e.MerchantID)),
		db.Col("invoice_id", db.Null(db.Text(&e.InvoiceID))),
		db.Col("body", db.Bytes(&e.Body)),
		db.Col("created_at", db.Seconds(&e.CreatedAt)),
		db.Col("delivery_id", db.Null(db.Text(&e.DeliveryID))),
	}
}

// lockEvents keeps other transactions from inserting events until this one ends. It uses an advisory lock, because a
// row that every event updates would accumulate dead versions.
func lockEvents(ctx context.Context, tx *db.Tx) error {
	if !tx.OnPostgres() {
		return nil
	}
	return tx.Send(ctx, func(row db.Scanner) error { return row.Scan(&tx.HeldSince) }, "SELECT clock_timestamp() FROM pg_advisory_xact_lock($1)", eventsLock)
}

// MeasureHold sets *held, once the transaction is committed, to how long the transaction kept others
// from inserting events: on PostgreSQL from the lock of events to the commit, on SQLite from its
// beginning. Call it after InsertEvents.
func MeasureHold(ctx context.Context, tx *db.Tx, held *time.Duration) error {
	if !tx.OnPostgres() {
		*held = time.Since(tx.HeldSince)
		return nil
	}
	return tx.Send(ctx, func(row db.Scanner) error {
		var until time.Time
		err := row.Scan(&until)
		*held = until.Sub(tx.HeldSince)
		return err
	}, "SELECT clock_timestamp()")
}

// LastSeq returns the newest event's sequence number, or 0.
func (q Reader) LastSeq(ctx context.Context) (int64, error) {
	return db.QueryRow(ctx, q, db.One(db.Int[int64]), "SELECT max(seq) FROM events")
}

// CreatedSeqs returns the numbers of the invoice.created events of invoices. Those that were removed are left out.
func CreatedSeqs(ctx context.Context, q db.Querier, invoiceIDs []string) (map[string]int64, error) {
	seqs := make(map[string]int64, len(invoiceIDs))
	_, err := db.AllIn(ctx, q, func(row db.Scanner) (struct{}, error) {
		var id string
		var seq int64
		err := row.Scan(&id, &seq)
		seqs[id] = seq
		return struct{}{}, err
	}, "SELECT subject, seq FROM events WHERE type = 'invoice.created' AND subject IN ", invoiceIDs)
	return seqs, err
}

// insertEvents inserts events with their numbers and their deliveries, and returns the inserted ones.
const insertEvents = `WITH newest AS (
		SELECT COALESCE(max(seq), 0) AS seq FROM events
	), fresh AS (
		SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::bigint[])
			WITH ORDINALITY AS f (id, type, subject, merchant_id, invoice_id, body, created_at, delivery_id, due_ms, n)
	), inserted AS (
		INSERT INTO events (id, seq, type, subject, merchant_id, invoice_id, body, created_at, delivery_id)
		SELECT id, newest.seq + n, type, subject, merchant_id, NULLIF(invoice_id, ''), body, created_at, NULLIF(delivery_id, '') FROM fresh, newest ORDER BY n
		ON CONFLICT (subject, type) DO NOTHING RETURNING id, seq
	), scheduled AS (
		INSERT INTO deliveries (seq, merchant_id, due_ms, deadline_ms)
		SELECT inserted.seq, merchant_id, due_ms, due_ms + $1 FROM inserted JOIN fresh USING (id) WHERE delivery_id <> ''
	) SELECT id, seq FROM inserted`

// insertEventsOnPostgres inserts events in one statement, which it sends together with the commit, so
// that no other transaction waits for a round trip of this one. Until then the events have no number.
func insertEventsOnPostgres(ctx context.Context, tx *db.Tx, events []Event) error {
	if err := lockEvents(ctx, tx); err != nil {
		return err
	}
	fresh := firstOfEach(events)
	text := func(column func(e *Event) string) []string { return db.Each(fresh, column) }
	byID := make(map[string]*Event, len(fresh))
	for _, e := range fresh {
		byID[e.ID] = e
	}
	return tx.Send(ctx, func(row db.Scanner) error {
		var id string
		var seq int64
		if err := row.Scan(&id, &seq); err != nil {
			return err
		}
		byID[id].Seq = seq
		return nil
	}, insertEvents, RetryWindow.Milliseconds(),
		text(func(e *Event) string { return e.ID }), text(func(e *Event) string { return string(e.Type) }), text(func(e *Event) string { return e.Subject }),
		text(func(e *Event) string { return e.MerchantID }), text(func(e *Event) string { return e.InvoiceID }), text(func(e *Event) string { return string(e.Body) }),
		db.Each(fresh, func(e *Event) int64 { return invoice.UnixSeconds(e.CreatedAt) }), text(func(e *Event) string { return e.DeliveryID }),
		db.Each(fresh, func(e *Event) int64 { return e.Due.UnixMilli() }))
}
