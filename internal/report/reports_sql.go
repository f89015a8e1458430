package report

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/txmgr"
)

// ReportFilter selects a page of rows that were confirmed from From on and before To, in the order of
// confirmation.
type ReportFilter struct {
	MerchantID string // empty for all
	From, To   time.Time
	// After and AfterID are the last element of the page before: its ConfirmedAt, and its SeenID or, for a
	// refund, its ID. AfterID is empty on the first page.
	After   time.Time
	AfterID string
	Limit   int
}

// condition returns the conditions on the columns of time and order.
func (f ReportFilter) condition(at, id string) db.Where {
	var w db.Where
	w.Equal("payments.merchant_id", f.MerchantID)
	w.Conditions = append(w.Conditions, "payments.invoice_id IS NOT NULL", at+" IS NOT NULL")
	w.Add(at+" < $%d", f.To.Unix())
	if f.AfterID == "" {
		w.Add(at+" >= $%d", f.From.Unix())
		return w
	}
	w.Args = append(w.Args, f.After.Unix(), f.AfterID)
	w.Conditions = append(w.Conditions, fmt.Sprintf("(%s, %s) > ($%d, $%d)", at, id, len(w.Args)-1, len(w.Args)))
	return w
}

// ReportedPayment is a confirmed payment, with its invoice. Only the fields that a report needs are
// set.
type ReportedPayment struct {
	ledger.PaymentRow
	Invoice invoice.Invoice
}

// ReportedPayments returns confirmed payments of invoices.
func (q Reader) ReportedPayments(ctx context.Context, f ReportFilter) ([]ReportedPayment, error) {
	w := f.condition("payments.confirmed_at", "payments.seen_id")
	return db.QueryAll(ctx, q, func(row db.Scanner) (r ReportedPayment, err error) {
		p, inv := &r.PaymentRow, &r.Invoice
		err = row.Scan(&p.SeenID, &p.InvoiceID, &p.ChainKey, &p.Currency, db.Amount(&p.Amount), db.Amount(&p.Returned), &p.BlockNumber, &p.LogIndex, db.Seconds(&p.BlockTime), db.Seconds(&p.ConfirmedAt),
			&inv.Status, db.Amount(&inv.Amount), db.Amount(&inv.Tolerance), db.Seconds(&inv.ExpiresAt), &inv.Sums.Payments, db.Amount(&inv.Sums.Tally.Due), db.Amount(&inv.Sums.Tally.Returned), db.Int(&inv.ClosedBlock))
		inv.ID = p.InvoiceID
		return r, err
	}, `SELECT payments.seen_id, payments.invoice_id, payments.chain_key, payments.currency, payments.amount, payments.returned, payments.block_number, payments.log_index,
		payments.block_time, payments.confirmed_at, invoices.status, invoices.amount, invoices.tolerance, invoices.expires_at, invoices.payment_count, invoices.due, invoices.due_returned, invoices.closed_block
		FROM payments JOIN invoices ON invoices.id = payments.invoice_id`+w.Text()+
		fmt.Sprintf(" ORDER BY payments.confirmed_at, payments.seen_id LIMIT $%d", w.Next()), append(w.Args, f.Limit)...)
}

// ReportedRefunds returns confirmed refunds of confirmed payments that have an invoice.
func (q Reader) ReportedRefunds(ctx context.Context, f ReportFilter) ([]invoice.Refund, error) {
	w := f.condition("refunds.confirmed_at", "refunds.id")
	w.Conditions = append(w.Conditions, "payments.confirmed_at IS NOT NULL")
	return db.QueryAll(ctx, q, ledger.ScanRefund, ledger.SelectRefundsBy(q.IndexedBy("refunds_by_confirmation"))+w.Text()[1:]+
		fmt.Sprintf(" ORDER BY refunds.confirmed_at, refunds.id LIMIT $%d", w.Next()), append(w.Args, f.Limit)...)
}

// ConfirmedPaymentsBetween returns confirmed payments of an invoice between two positions, in the
// order of the chain. Only their amount, returned amount, position and time of confirmation are set.
func (q Reader) ConfirmedPaymentsBetween(ctx context.Context, invoiceID string, after, before invoice.Position, limit int) ([]invoice.Payment, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (p invoice.Payment, err error) {
		err = row.Scan(db.Amount(&p.Amount), db.Amount(&p.Returned), &p.BlockNumber, &p.LogIndex, db.Seconds(&p.BlockTime), db.Seconds(&p.ConfirmedAt))
		return p, err
	}, `SELECT amount, returned, block_number, log_index, block_time, confirmed_at FROM payments
		WHERE invoice_id = $1 AND (block_number, log_index) > ($2, $3) AND (block_number, log_index) < ($4, $5) AND status = 'confirmed'
		ORDER BY block_number, log_index LIMIT $6`, invoiceID, int64(after.BlockNumber), int64(after.LogIndex), int64(before.BlockNumber), int64(before.LogIndex), limit)
}

// TxShares returns a page of the parts of transactions; see txmgr.TxShares.
func (q Reader) TxShares(ctx context.Context, f ReportFilter) ([]txmgr.TxShare, error) {
	return txmgr.TxShares(ctx, q, txmgr.ShareFilter(f))
}

// RollupsThrough returns the time up to which rollups are added up.
func (q Reader) RollupsThrough(ctx context.Context) (time.Time, error) {
	return ledger.NewReader(q).RollupsThrough(ctx)
}
