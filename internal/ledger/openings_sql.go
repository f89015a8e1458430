package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Opening is when the page of an invoice was first opened.
type Opening struct {
	InvoiceID string
	At        time.Time
}

// RecordOpenings stores openings, except of invoices that have one.
func RecordOpenings(ctx context.Context, s *db.DB, openings []Opening) error {
	rows := db.Each(openings, func(o Opening) []any { return []any{o.InvoiceID, o.At.Unix()} })
	return s.Update(ctx, func(tx *db.Tx) error {
		return tx.Insert(ctx, db.Insertion{Table: "invoice_openings", Columns: []string{"invoice_id", "opened_at"}, Conflict: "ON CONFLICT (invoice_id) DO NOTHING"}, rows)
	})
}

// openedAt returns when the page of an invoice was first opened, or zero.
func openedAt(ctx context.Context, q db.Querier, invoiceID string) (time.Time, error) {
	at, err := db.QueryRow(ctx, q, db.ScanTime, "SELECT opened_at FROM invoice_openings WHERE invoice_id = $1", invoiceID)
	if errors.Is(err, db.ErrNotFound) {
		return time.Time{}, nil
	}
	return at, err
}
