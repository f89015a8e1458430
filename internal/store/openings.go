package store

import (
	"context"
	"errors"
	"time"
)

// Opening is when the page of an invoice was first opened.
type Opening struct {
	InvoiceID string
	At        time.Time
}

// RecordOpenings stores openings, but those of invoices that have one.
func (s *Store) RecordOpenings(ctx context.Context, openings []Opening) error {
	rows := make([][]any, len(openings))
	for i, o := range openings {
		rows[i] = []any{o.InvoiceID, o.At.Unix()}
	}
	return s.Update(ctx, func(tx *Tx) error {
		return tx.insert(ctx, insertion{"invoice_openings", []string{"invoice_id", "opened_at"}, "ON CONFLICT (invoice_id) DO NOTHING"}, rows)
	})
}

// openedAt returns when the page of an invoice was first opened, or zero.
func (q *queries) openedAt(ctx context.Context, invoiceID string) (time.Time, error) {
	at, err := queryRow(ctx, q, scanTime, "SELECT opened_at FROM invoice_openings WHERE invoice_id = $1", invoiceID)
	if errors.Is(err, ErrNotFound) {
		return time.Time{}, nil
	}
	return at, err
}
