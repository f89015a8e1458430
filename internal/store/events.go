package store

import (
	"context"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
)

// Event is a notification of a merchant. Subject is what it is about: a subject
// has one event of each type.
type Event struct {
	ID         string
	Seq        int64 // its place in the order of commits; InsertEvents gives it
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
}

// eventsLock is PostgreSQL's advisory lock on the order of events.
const eventsLock = 0x71756974

// InsertEvents inserts events and schedules their deliveries. It leaves out an
// event if its subject already has one of the type.
//
// It must be the last call of a transaction: from here to the commit no other
// transaction inserts events, so that events become visible in the order of
// their numbers. A reader in that order misses none.
func (tx *Tx) InsertEvents(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	seq, err := tx.lastSeqLocked(ctx)
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
	for i, e := range events {
		if inserted[e.ID] && e.DeliveryID != "" {
			deliveries = append(deliveries, []any{seq + int64(i) + 1, e.MerchantID, e.DueMS, e.DueMS + delivery.RetryWindow})
		}
	}
	return tx.insert(ctx, insertion{"deliveries", []string{"seq", "merchant_id", "due_ms", "deadline_ms"}, ""}, deliveries)
}

// lastSeqLocked returns the number of the newest event. No other transaction can
// insert one until this one ends. It takes an advisory lock, since a row that
// every event changes would collect dead versions of itself.
func (tx *Tx) lastSeqLocked(ctx context.Context) (int64, error) {
	if tx.postgres {
		if _, err := tx.exec(ctx, "SELECT pg_advisory_xact_lock($1)", eventsLock); err != nil {
			return 0, err
		}
	}
	return tx.LastSeq(ctx)
}

// LastSeq returns the number of the newest event, 0 when there is none.
func (q *queries) LastSeq(ctx context.Context) (int64, error) {
	return queryRow(ctx, q, func(row scanner) (seq int64, err error) {
		err = row.Scan(nullInt{&seq})
		return seq, err
	}, "SELECT max(seq) FROM events")
}
