package ledger

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

var refundTable = db.NewTable("refunds", func(r *invoice.Refund) []db.Column {
	return append(observedColumns(&r.ID, &r.Transfer, &r.Status, &r.ObservedAt, &r.ConfirmedAt),
		db.Col("payment_id", db.Text(&r.PaymentID)),
		db.Expr("payments.invoice_id", db.Text(&r.InvoiceID)),
		db.Expr("payments.merchant_id", db.Text(&r.MerchantID)),
		db.Expr("prepared.id", db.Text(&r.PreparedID)),
	)
})

// selectRefunds reads refunds with the invoice of the refunded payment, and with the prepared refund that each pays.
var selectRefunds = SelectRefundsBy("")

// SelectRefundsBy is selectRefunds with INDEXED BY after the table refunds, if index is not empty.
func SelectRefundsBy(index string) string {
	return "SELECT " + refundTable.Of("refunds") + " FROM refunds " + index + `JOIN payments ON payments.id = refunds.payment_id
	LEFT JOIN refund_records AS prepared ON prepared.refund_id = refunds.id AND prepared.tag IS NOT NULL `
}

// ScanRefund scans a row of SelectRefundsBy.
func ScanRefund(row db.Scanner) (invoice.Refund, error) { return refundTable.Scan(row) }

// SaveRefunds inserts refunds or updates existing ones, and their records in the list of refunds. The refunds must be
// distinct. It does not store their invoices, which their payments have. Call SaveRefundedSums before, and RefreshItems
// afterwards.
func SaveRefunds(ctx context.Context, tx *db.Tx, refunds ...invoice.Refund) error {
	if err := markRefundsChanged(ctx, tx, refunds); err != nil {
		return err
	}
	update := "ON CONFLICT (id) DO UPDATE SET " + refundTable.Without(append(transferKey, "observed_at")...).Excluded()
	if err := refundTable.Insert(ctx, tx, update, refunds...); err != nil {
		return fmt.Errorf("save refunds: %w", err)
	}
	return recordRefunds(ctx, tx, refunds)
}

// RefundsByID returns the refunds with the ids, in no order. It skips unknown ids.
func RefundsByID(ctx context.Context, q db.Querier, ids []string) ([]invoice.Refund, error) {
	return refundsIn(ctx, q, "refunds.id", ids)
}

// RefundsOfPayments returns the refunds of the payments.
func RefundsOfPayments(ctx context.Context, q db.Querier, paymentIDs []string) ([]invoice.Refund, error) {
	return refundsIn(ctx, q, "refunds.payment_id", paymentIDs)
}

// RefundsOfInvoices returns the refunds of the invoices' payments.
func RefundsOfInvoices(ctx context.Context, q db.Querier, invoiceIDs []string) ([]invoice.Refund, error) {
	return refundsIn(ctx, q, "payments.invoice_id", invoiceIDs)
}

// refundsIn returns the refunds with one of the values in a column.
func refundsIn(ctx context.Context, q db.Querier, column string, values []string) ([]invoice.Refund, error) {
	return db.AllIn(ctx, q, ScanRefund, selectRefunds+"WHERE "+column+" IN ", values)
}

// PendingRefunds returns the chain's pending refunds in blocks from one number to another, inclusive.
func PendingRefunds(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Refund, error) {
	return db.QueryAll(ctx, q, ScanRefund, selectRefunds+`WHERE refunds.chain_key = $1
		AND refunds.block_number BETWEEN $2 AND $3 AND refunds.status = 'pending'
		ORDER BY refunds.block_number, refunds.log_index`, chainKey, int64(from), int64(to))
}
