package store

import "context"

// AttributionRow is the record of a payment that somebody attributed to an invoice.
type AttributionRow struct {
	ID        string // their order is that of attribution
	PaymentID string
	InvoiceID string
	By        string // who did it
	Note      string // why; may be empty
	At        int64  // Unix seconds
}

// InsertAttribution records that a payment was attributed by hand.
func (tx *Tx) InsertAttribution(ctx context.Context, a AttributionRow) error {
	_, err := tx.exec(ctx, `INSERT INTO attributions (id, payment_id, invoice_id, attributed_by, note, attributed_at)
		VALUES ($1, $2, $3, $4, $5, $6)`, a.ID, a.PaymentID, a.InvoiceID, a.By, a.Note, a.At)
	return err
}
