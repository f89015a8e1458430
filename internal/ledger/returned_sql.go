package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// setReturned writes Payment.Returned of payments, by id.
func setReturned(ctx context.Context, tx *db.Tx, returned map[string]invoice.Amount) error {
	rows := make([][]any, 0, len(returned))
	for id, amount := range returned {
		rows = append(rows, []any{id, db.OrNull(amount)})
	}
	return tx.SendFrom(ctx, []string{"payment", "back"}, rows, "UPDATE payments SET returned = back FROM wanted WHERE payments.id = payment")
}

// markInvoicesPaid records that the invoices were paid, in their prepared refunds that can still be
// sent.
func markInvoicesPaid(ctx context.Context, tx *db.Tx, invoiceIDs []string) error {
	return db.SendIn(ctx, tx, `UPDATE refund_records SET invoice_paid = 1 WHERE tag IS NOT NULL
		AND status IN ('awaiting_address', 'awaiting_approval', 'pending') AND invoice_id IN `, invoiceIDs)
}
