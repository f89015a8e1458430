package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AttributionRow records that a person attributed a payment to an invoice.
type AttributionRow struct {
	ID        string // ordered by time
	PaymentID string
	InvoiceID string
	By        string // who attributed it
	Note      string // why; may be empty
	At        time.Time
}

// insertAttribution records a manual attribution of a payment.
func insertAttribution(ctx context.Context, tx *db.Tx, a AttributionRow) error {
	_, err := tx.Exec(ctx, `INSERT INTO attributions (id, payment_id, invoice_id, attributed_by, note, attributed_at)
		VALUES ($1, $2, $3, $4, $5, $6)`, a.ID, a.PaymentID, a.InvoiceID, a.By, a.Note, invoice.UnixSeconds(a.At))
	return err
}

// AttributionNote returns the note of the newest manual attribution of a payment, or "".
func (q Reader) AttributionNote(ctx context.Context, paymentID string) (note string, err error) {
	note, err = db.QueryRow(ctx, q, func(row db.Scanner) (note string, err error) {
		err = row.Scan(&note)
		return note, err
	}, "SELECT note FROM attributions WHERE payment_id = $1 ORDER BY id DESC LIMIT 1", paymentID)
	if errors.Is(err, db.ErrNotFound) {
		return "", nil
	}
	return note, err
}
