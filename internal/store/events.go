package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// RetryWindow is how long after an event its delivery may be attempted, in
// milliseconds (interface, section 8).
const RetryWindow = 24 * 60 * 60 * 1000

// Event is what a merchant is told. Subject is what it is about: of one type,
// a subject is told once.
type Event struct {
	ID         string
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

// InsertEvents inserts events and schedules their deliveries. An event whose
// subject was told already is left out.
func (tx *Tx) InsertEvents(ctx context.Context, events []Event) error {
	rows := make([][]any, len(events))
	for i, e := range events {
		rows[i] = []any{e.ID, string(e.Type), e.Subject, e.MerchantID, e.InvoiceID, string(e.Body), e.CreatedAt}
	}
	inserted, err := tx.into(ctx, insertion{"events",
		[]string{"id", "type", "subject", "merchant_id", "invoice_id", "body", "created_at"},
		"ON CONFLICT (subject, type) DO NOTHING"}, rows)
	if err != nil {
		return err
	}
	var deliveries [][]any
	for _, e := range events {
		if inserted[e.ID] && e.DeliveryID != "" {
			deliveries = append(deliveries, []any{e.DeliveryID, e.ID, e.MerchantID, "pending", e.DueMS, e.DueMS + RetryWindow})
		}
	}
	_, err = tx.into(ctx, insertion{"deliveries",
		[]string{"id", "event_id", "merchant_id", "status", "due_ms", "deadline_ms"}, ""}, deliveries)
	return err
}
