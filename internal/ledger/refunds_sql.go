package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const refundColumns = transferColumns + ", payment_id"

// selectRefunds reads refunds with the invoice of the refunded payment, and with the prepared refund
// that each pays.
var selectRefunds = SelectRefundsBy("")

// SelectRefundsBy is selectRefunds with INDEXED BY after the table refunds, if index is not empty.
func SelectRefundsBy(index string) string {
	return "SELECT refunds." + strings.ReplaceAll(refundColumns, ", ", ", refunds.") +
		`, payments.invoice_id, payments.merchant_id, prepared.id FROM refunds ` + index + `JOIN payments ON payments.id = refunds.payment_id
	LEFT JOIN refund_records AS prepared ON prepared.refund_id = refunds.id AND prepared.tag IS NOT NULL `
}

// ScanRefund scans a row of SelectRefundsBy.
func ScanRefund(row db.Scanner) (invoice.Refund, error) {
	var r invoice.Refund
	err := scanTransfer(row, &r.Transfer, &r.ID, &r.Status, db.Seconds(&r.ObservedAt), db.Seconds(&r.ConfirmedAt),
		&r.PaymentID, db.NullText(&r.InvoiceID), db.NullText(&r.MerchantID), db.NullText(&r.PreparedID))
	return r, err
}

// refundValues returns the values of refundColumns.
func refundValues(r invoice.Refund) []any {
	return append(transferValues(r.ID, r.Transfer), string(r.Status), invoice.UnixSeconds(r.ObservedAt), db.OrNull(r.ConfirmedAt), r.PaymentID)
}

// SaveRefund inserts a refund or updates an existing one, and its record in the list of refunds. It
// does not store the invoice, because that is the payment's.
func SaveRefund(ctx context.Context, tx *db.Tx, r invoice.Refund) error {
	_, err := tx.Exec(ctx, `INSERT INTO refunds (`+refundColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, registry_id = excluded.registry_id,
			authorization_id = excluded.authorization_id, status = excluded.status, confirmed_at = excluded.confirmed_at,
			payment_id = excluded.payment_id`,
		refundValues(r)...)
	if err != nil {
		return fmt.Errorf("save refund %s: %w", r.ID, err)
	}
	if err := markRefundStale(ctx, tx, r); err != nil {
		return err
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
