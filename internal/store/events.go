package store

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
)

// Event is a notification of a merchant. A subject has at most one event of
// each type.
type Event struct {
	ID         string
	Seq        int64 // its place in the order of commits; InsertEvents sets it, 0 for an event that it leaves out
	Type       invoice.EventType
	Subject    string
	MerchantID string
	InvoiceID  string
	Body       []byte // the envelope, as it is sent
	CreatedAt  int64  // Unix seconds
	// DeliveryID is the id of the event's delivery, empty when the merchant
	// has no endpoint to deliver to.
	DeliveryID string
	DueMS      int64 // Unix milliseconds: when its first attempt is due
	// LeaseID leases the delivery until LeaseUntilMS to the only registered worker,
	// whose id it is. InsertEvents clears it if another worker is registered.
	LeaseID      string
	LeaseUntilMS int64 // Unix milliseconds
}

// eventsLock is the key of PostgreSQL's advisory lock on the order of events.
const eventsLock = 0x71756974

// InsertEvents inserts events and schedules their deliveries. It skips an event
// whose subject already has one of its type.
//
// It must be the last call of a transaction: from here to the commit no other
// transaction can insert events. Events therefore become visible in the order
// of their sequence numbers, and a reader in that order misses none.
func (tx *Tx) InsertEvents(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	seq, err := tx.lockEvents(ctx, events)
	if err != nil {
		return err
	}
	rows := make([][]any, len(events))
	for i, e := range events {
		rows[i] = []any{
			e.ID, seq + int64(i) + 1, string(e.Type), e.Subject, e.MerchantID, orNull(e.InvoiceID), string(e.Body), e.CreatedAt, orNull(e.DeliveryID),
		}
	}
	inserted, err := tx.insertReturningKeys(ctx, insertion{"events",
		[]string{"id", "seq", "type", "subject", "merchant_id", "invoice_id", "body", "created_at", "delivery_id"},
		"ON CONFLICT (subject, type) DO NOTHING"}, rows)
	if err != nil {
		return err
	}
	var deliveries [][]any
	for i := range events {
		e := &events[i]
		if e.Seq = 0; !inserted[e.ID] {
			continue
		}
		e.Seq = seq + int64(i) + 1
		if e.DeliveryID != "" {
			deliveries = append(deliveries, []any{e.Seq, e.MerchantID, max(e.DueMS, e.LeaseUntilMS), e.DueMS + delivery.RetryWindow, orNull(e.LeaseID)})
		}
	}
	return tx.insert(ctx, insertion{"deliveries", []string{"seq", "merchant_id", "due_ms", "deadline_ms", "lease_id"}, ""}, deliveries)
}

// lockEvents returns the newest event's sequence number. Until this transaction
// ends, no other can insert an event or register a worker. It uses an advisory
// lock, because a row that every event updates would accumulate dead versions.
// It clears the events' leases if another worker is registered, since that
// worker counts the leased deliveries before it leases more.
func (tx *Tx) lockEvents(ctx context.Context, events []Event) (last int64, err error) {
	if err := tx.lockOrder(ctx); err != nil {
		return 0, err
	}
	i := max(0, slices.IndexFunc(events, func(e Event) bool { return e.LeaseID != "" }))
	var others int64
	last, err = queryRow(ctx, &tx.queries, func(row scanner) (seq int64, err error) {
		err = row.Scan(nullInt{&seq}, &others)
		return seq, err
	}, "SELECT (SELECT max(seq) FROM events), (SELECT count(*) FROM deliverers WHERE id <> $1 AND until_ms > $2)", events[i].LeaseID, events[i].DueMS)
	for i := range events {
		if others > 0 {
			events[i].LeaseID, events[i].LeaseUntilMS = "", 0
		}
	}
	return last, err
}

// lockOrder takes the lock on the order of events.
func (tx *Tx) lockOrder(ctx context.Context) error {
	if !tx.postgres {
		return nil
	}
	_, err := tx.exec(ctx, "SELECT pg_advisory_xact_lock($1)", eventsLock)
	return err
}

// LastSeq returns the newest event's sequence number, or 0.
func (q *queries) LastSeq(ctx context.Context) (int64, error) {
	return queryRow(ctx, q, func(row scanner) (seq int64, err error) {
		err = row.Scan(nullInt{&seq})
		return seq, err
	}, "SELECT max(seq) FROM events")
}
