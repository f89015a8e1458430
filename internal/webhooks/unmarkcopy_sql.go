package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// UnmarkCopy removes a person's mark from a database that is not a copy, and schedules the deliveries
// of the events that were written in isolation, of merchants that want events. now is by the
// schedule's clock. It returns ErrIsolated for any other copy. The record of the database's identity
// stays, so that a start still notices a real copy.
func UnmarkCopy(ctx context.Context, tx *db.Tx, wants func(merchantID string) bool, now time.Time) error {
	r, err := tx.Recovery(ctx)
	if err != nil {
		return err
	}
	if !r.MarkedByHand() {
		return db.ErrIsolated
	}
	after, _, err := seqsCreated(ctx, tx, db.Span{From: r.Isolated})
	if err != nil {
		return err
	}
	events, err := db.QueryAll(ctx, tx, func(row db.Scanner) (e Event, err error) {
		err = row.Scan(&e.Seq, &e.Type, &e.Subject, &e.MerchantID, db.Text(&e.InvoiceID))
		return e, err
	}, "SELECT seq, type, subject, merchant_id, invoice_id FROM events WHERE seq > $1 AND created_at >= $2 AND delivery_id IS NULL ORDER BY seq", after, invoice.UnixSeconds(r.Isolated))
	if err != nil {
		return fmt.Errorf("read the events without a delivery: %w", err)
	}
	var deliveries [][]any
	for _, e := range events {
		if !wants(e.MerchantID) {
			continue
		}
		id := invoice.DeliveryID(e.Type, e.Subject, e.MerchantID, e.InvoiceID)
		if _, err := tx.Exec(ctx, "UPDATE events SET delivery_id = $2 WHERE seq = $1", e.Seq, id); err != nil {
			return err
		}
		deliveries = append(deliveries, []any{e.Seq, e.MerchantID, now.UnixMilli(), now.Add(RetryWindow).UnixMilli()})
	}
	if err := tx.Insert(ctx, db.Insertion{Table: "deliveries", Columns: []string{"seq", "merchant_id", "due_ms", "deadline_ms"}, Conflict: ""}, deliveries); err != nil {
		return fmt.Errorf("schedule the deliveries: %w", err)
	}
	_, err = tx.Exec(ctx, "UPDATE recovery SET state = 'normal', reason = '', since = $1, isolated_at = NULL WHERE id = 1", r.Isolated.Unix())
	return err
}
