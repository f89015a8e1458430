package store

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

const refundColumns = transferColumns + ", payment_id"

func scanRefund(row scanner) (invoice.Refund, error) {
	var r invoice.Refund
	err := scanTransfer(row, &r.Transfer, &r.ID, &r.Status, &r.ObservedAt, seconds{&r.ConfirmedAt},
		&r.InvoiceID, &r.MerchantID, &r.PaymentID)
	return r, err
}

// SaveRefund inserts the refund, or writes what may change of one that is
// there.
func (tx *Tx) SaveRefund(ctx context.Context, r invoice.Refund) error {
	_, err := tx.exec(ctx, `INSERT INTO refunds (`+refundColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
		ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, registry_id = excluded.registry_id,
			authorization_id = excluded.authorization_id, status = excluded.status, confirmed_at = excluded.confirmed_at, payment_id = excluded.payment_id,
			invoice_id = excluded.invoice_id, merchant_id = excluded.merchant_id`,
		append(transferValues(r.ID, r.Transfer), string(r.Status), r.ObservedAt, orNull(r.ConfirmedAt),
			r.InvoiceID, r.MerchantID, r.PaymentID)...)
	if err != nil {
		return fmt.Errorf("save refund %s: %w", r.ID, err)
	}
	return nil
}

// RefundsByID returns the refunds with the ids, in no order. Ids that no
// refund has are left out.
func (q *queries) RefundsByID(ctx context.Context, ids []string) ([]invoice.Refund, error) {
	return inChunks(ids, func(chunk []any) ([]invoice.Refund, error) {
		return collect(ctx, q, scanRefund, "SELECT "+refundColumns+" FROM refunds WHERE id IN "+list(0, len(chunk)), chunk...)
	})
}

// RefundsOfPayments returns the refunds of the payments.
func (q *queries) RefundsOfPayments(ctx context.Context, paymentIDs []string) ([]invoice.Refund, error) {
	return inChunks(paymentIDs, func(chunk []any) ([]invoice.Refund, error) {
		return collect(ctx, q, scanRefund, "SELECT "+refundColumns+" FROM refunds WHERE payment_id IN "+list(0, len(chunk)), chunk...)
	})
}

// RefundsOfInvoices returns the refunds of the invoices' payments.
func (q *queries) RefundsOfInvoices(ctx context.Context, invoiceIDs []string) ([]invoice.Refund, error) {
	return inChunks(invoiceIDs, func(chunk []any) ([]invoice.Refund, error) {
		return collect(ctx, q, scanRefund, "SELECT "+refundColumns+" FROM refunds WHERE invoice_id IN "+list(0, len(chunk)), chunk...)
	})
}

// UnfinalRefunds returns the pending refunds of the chain mined in blocks from
// one number to another, both included.
func (q *queries) UnfinalRefunds(ctx context.Context, chainKey string, from, to uint64) ([]invoice.Refund, error) {
	return collect(ctx, q, scanRefund, "SELECT "+refundColumns+` FROM refunds
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}
