package webhooks

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

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
