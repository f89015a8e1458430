package webhooks

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Listener is a stream that receives redelivered events, with a filter of these events. Empty fields match all.
type Listener struct {
	ID         string // random, of one stream
	MerchantID string
	Type       invoice.EventType
	InvoiceID  string
	Until      time.Time // when it has ended, unless it is put again before
}

// PutListener inserts a listener, or sets its Until, and deletes listeners that have expired.
func PutListener(ctx context.Context, s *db.DB, l Listener, now time.Time) error {
	return db.During("put a listener", s.Update(ctx, func(tx *db.Tx) error { return insertListener(ctx, tx, l, now) }))
}

func insertListener(ctx context.Context, tx *db.Tx, l Listener, now time.Time) error {
	if _, err := tx.Exec(ctx, "DELETE FROM listeners WHERE until_ms <= $1", now.UnixMilli()); err != nil {
		return err
	}
	return tx.Do(ctx, `INSERT INTO listeners (id, merchant_id, type, invoice_id, until_ms) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms`, l.ID, l.MerchantID, string(l.Type), l.InvoiceID, l.Until.UnixMilli())
}

// DeleteListener deletes a listener.
func (s Tables) DeleteListener(ctx context.Context, id string) error {
	err := s.DB.Update(ctx, func(tx *db.Tx) error {
		return tx.Do(ctx, "DELETE FROM listeners WHERE id = $1", id)
	})
	return db.During("delete a listener", err)
}

// HasListener reports whether a listener gets an event.
func HasListener(ctx context.Context, q db.Querier, e Event, now time.Time) (bool, error) {
	_, err := db.QueryRow(ctx, q, db.ScanID, `SELECT id FROM listeners WHERE merchant_id IN ('', $1) AND type IN ('', $2) AND invoice_id IN ('', $3)
		AND until_ms > $4 LIMIT 1`, e.MerchantID, string(e.Type), e.InvoiceID, now.UnixMilli())
	return err == nil, db.IgnoreNotFound(err)
}
