package store

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// StatedInvoice is an invoice that was issued, with what a statement needs.
type StatedInvoice struct {
	invoice.Invoice
	OpenedAt    time.Time // when it was created, or a draft became open
	VoidedAt    time.Time // when it was made void; expiresAt if that is not known
	ConfirmedAt time.Time // when the last of its payments was confirmed; zero without one
}

// StatedInvoices returns a page of the invoices of a merchant that were issued, by id: behind the
// invoice after, and below the id end. A draft that was made void was not issued: it never
// had an amount to transfer or an address, or blocks in which it was open.
func (q *queries) StatedInvoices(ctx context.Context, merchantID, after, end string, limit int) ([]StatedInvoice, error) {
	return queryAll(ctx, q, func(row scanner) (s StatedInvoice, err error) {
		inv := &s.Invoice
		err = row.Scan(&inv.ID, &inv.ChainKey, &inv.Currency, amountCol(&inv.Amount), amountCol(&inv.Tolerance), &inv.Status, seconds{&inv.ExpiresAt}, nullUint{&inv.ClosedBlock},
			&inv.Sums.Stale, &inv.Sums.Payments, amountCol(&inv.Sums.Tally.Due), seconds{&s.OpenedAt}, seconds{&s.VoidedAt}, seconds{&s.ConfirmedAt})
		return s, err
	}, `SELECT id, chain_key, currency, amount, tolerance, status, expires_at, closed_block, sums_stale, payment_count, due,
			coalesce((SELECT at FROM invoice_transitions WHERE invoice_id = invoices.id AND status = 'open'), created_at),
			CASE WHEN status = 'void' THEN coalesce((SELECT at FROM invoice_transitions WHERE invoice_id = invoices.id AND status = 'void'), expires_at) END,
			CASE WHEN payment_count > 0 THEN (SELECT max(confirmed_at) FROM payments WHERE invoice_id = invoices.id AND status = 'confirmed') END
		FROM invoices `+q.indexedBy("invoices_by_merchant")+`WHERE merchant_id = $1 AND (merchant_id, id) > ($1, $2) AND id < $3 AND status <> 'draft'
			AND (status <> 'void' OR transfer_amount IS NOT NULL OR deposit_address IS NOT NULL OR closed_block > from_block)
		ORDER BY merchant_id, id LIMIT $4`, merchantID, after, end, limit)
}
