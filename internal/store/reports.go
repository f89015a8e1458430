package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// ReportFilter selects a page of what was confirmed from From on and before To, in the
// order of confirmation.
type ReportFilter struct {
	MerchantID string // empty for all
	From, To   time.Time
	// After and AfterID continue behind an element: its ConfirmedAt, and its SeenID or, of
	// a refund, its ID. AfterID is empty on the first page.
	After   time.Time
	AfterID string
	Limit   int
}

// condition returns the conditions on the columns of time and order.
func (f ReportFilter) condition(at, id string) where {
	var w where
	w.equal("payments.merchant_id", f.MerchantID)
	w.conditions = append(w.conditions, "payments.invoice_id IS NOT NULL", at+" IS NOT NULL")
	w.add(at+" < $%d", f.To.Unix())
	if f.AfterID == "" {
		w.add(at+" >= $%d", f.From.Unix())
		return w
	}
	w.args = append(w.args, f.After.Unix(), f.AfterID)
	w.conditions = append(w.conditions, fmt.Sprintf("(%s, %s) > ($%d, $%d)", at, id, len(w.args)-1, len(w.args)))
	return w
}

// ReportedPayment is a confirmed payment, with its invoice. Both have only what a report
// needs.
type ReportedPayment struct {
	PaymentRow
	Invoice invoice.Invoice
}

// ReportedPayments returns confirmed payments of invoices.
func (q *queries) ReportedPayments(ctx context.Context, f ReportFilter) ([]ReportedPayment, error) {
	w := f.condition("payments.confirmed_at", "payments.seen_id")
	return queryAll(ctx, q, func(row scanner) (r ReportedPayment, err error) {
		p, inv := &r.PaymentRow, &r.Invoice
		err = row.Scan(&p.SeenID, &p.InvoiceID, &p.ChainKey, &p.Currency, amountCol(&p.Amount), amountCol(&p.Returned), &p.BlockNumber, &p.LogIndex, seconds{&p.BlockTime}, seconds{&p.ConfirmedAt},
			&inv.Status, amountCol(&inv.Amount), amountCol(&inv.Tolerance), seconds{&inv.ExpiresAt}, &inv.Sums.Payments, amountCol(&inv.Sums.Tally.Due), amountCol(&inv.Sums.Tally.Returned), nullUint{&inv.ClosedBlock})
		inv.ID = p.InvoiceID
		return r, err
	}, `SELECT payments.seen_id, payments.invoice_id, payments.chain_key, payments.currency, payments.amount, payments.returned, payments.block_number, payments.log_index,
		payments.block_time, payments.confirmed_at, invoices.status, invoices.amount, invoices.tolerance, invoices.expires_at, invoices.payment_count, invoices.due, invoices.due_returned, invoices.closed_block
		FROM payments JOIN invoices ON invoices.id = payments.invoice_id`+w.text()+
		fmt.Sprintf(" ORDER BY payments.confirmed_at, payments.seen_id LIMIT $%d", w.next()), append(w.args, f.Limit)...)
}

// ReportedRefunds returns confirmed refunds of payments that have an invoice.
func (q *queries) ReportedRefunds(ctx context.Context, f ReportFilter) ([]invoice.Refund, error) {
	w := f.condition("refunds.confirmed_at", "refunds.id")
	return queryAll(ctx, q, scanRefund, selectRefundsBy(q.indexedBy("refunds_by_confirmation"))+w.text()[1:]+
		fmt.Sprintf(" ORDER BY refunds.confirmed_at, refunds.id LIMIT $%d", w.next()), append(w.args, f.Limit)...)
}

// ConfirmedPaymentsBetween returns confirmed payments of an invoice between two positions,
// in the order of the chain. They have only an amount, what was returned of it, a position and a time of confirmation.
func (q *queries) ConfirmedPaymentsBetween(ctx context.Context, invoiceID string, after, before invoice.Position, limit int) ([]invoice.Payment, error) {
	return queryAll(ctx, q, func(row scanner) (p invoice.Payment, err error) {
		err = row.Scan(amountCol(&p.Amount), amountCol(&p.Returned), &p.BlockNumber, &p.LogIndex, seconds{&p.BlockTime}, seconds{&p.ConfirmedAt})
		return p, err
	}, `SELECT amount, returned, block_number, log_index, block_time, confirmed_at FROM payments
		WHERE invoice_id = $1 AND (block_number, log_index) > ($2, $3) AND (block_number, log_index) < ($4, $5) AND status = 'confirmed'
		ORDER BY block_number, log_index LIMIT $6`, invoiceID, int64(after.BlockNumber), int64(after.LogIndex), int64(before.BlockNumber), int64(before.LogIndex), limit)
}
