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

// selectRefunds reads refunds with the invoice of the refunded payment, and with the prepared refund
// that each pays.
var selectRefunds = SelectRefundsBy("")

// SelectRefundsBy is selectRefunds with INDEXED BY after the table refunds, if index is not empty.
func SelectRefundsBy(index string) string {
	return "SELECT " + refundTable.Of("refunds") + " FROM refunds " + index + `JOIN payments ON payments.id = refunds.payment_id
	LEFT JOIN refund_records AS prepared ON prepared.refund_id = refunds.id AND prepared.tag IS NOT NULL `
}

// ScanRefund scans a row of SelectRefundsBy.
func ScanRefund(row db.Scanner) (invoice.Refund, error) { return refundTable.Scan(row) }

// SaveRefund inserts a refund or updates an existing one, and its record in the list of refunds. It
// does not store the invoice, because that is the payment's.
func SaveRefund(ctx context.Context, tx *db.Tx, r invoice.Refund) error {
	if err := markRefundStale(ctx, tx, r); err != nil {
		return err
	}
	update := "ON CONFLICT (id) DO UPDATE SET " + refundTable.Without(append(transferKey, "observed_at")...).Excluded()
	err := refundTable.Insert(ctx, tx, update, r)
	if err != nil {
		return fmt.Errorf("save refund %s: %w", r.ID, err)
	}
	if err := recordRefund(ctx, tx, r); err != nil || r.Attributed() {
		return err
	}
	return RefreshItems(ctx, tx, r.PaymentID)
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
	return db.QueryIn(values, func(chunk []any) ([]invoice.Refund, error) {
		return db.QueryAll(ctx, q, ScanRefund, selectRefunds+"WHERE "+column+" IN "+db.ParameterList(0, len(chunk)), chunk...)
	})
}

// PendingRefunds returns the chain's pending refunds in blocks from one number
// to another, inclusive.
func PendingRefunds(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Refund, error) {
	return db.QueryAll(ctx, q, ScanRefund, selectRefunds+`WHERE refunds.chain_key = $1
		AND refunds.block_number BETWEEN $2 AND $3 AND refunds.status = 'pending'
		ORDER BY refunds.block_number, refunds.log_index`, chainKey, int64(from), int64(to))
}

// AmountsRefunded returns the confirmed refunds of payments added up, by
// payment id. Payments without a confirmed refund are left out.
func (q Reader) AmountsRefunded(ctx context.Context, paymentIDs []string) (map[string]invoice.Amount, error) {
	return sumRefunds(ctx, q, paymentIDs, func(s invoice.PaymentStatus) bool { return s == invoice.Confirmed })
}

// amountsSentBack returns the sums of the refunds of payments that are in blocks, final or not, by
// payment id.
func amountsSentBack(ctx context.Context, q db.Querier, paymentIDs []string) (map[string]invoice.Amount, error) {
	return sumRefunds(ctx, q, paymentIDs, func(s invoice.PaymentStatus) bool { return s != invoice.Orphaned })
}

// sumRefunds adds up the refunds of payments in the wanted states, by payment id.
func sumRefunds(ctx context.Context, q db.Querier, paymentIDs []string, wanted func(invoice.PaymentStatus) bool) (map[string]invoice.Amount, error) {
	refunds, err := RefundsOfPayments(ctx, q, paymentIDs)
	sums := make(map[string]invoice.Amount)
	for _, r := range refunds {
		if wanted(r.Status) {
			sums[r.PaymentID] = sums[r.PaymentID].Plus(r.Amount)
		}
	}
	return sums, err
}
