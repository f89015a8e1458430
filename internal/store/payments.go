package store

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

// transferColumns are those that payments and refunds share.
const transferColumns = `id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time,
	token, currency, from_address, to_address, amount, commitment_id, status, observed_at, confirmed_at, invoice_id, merchant_id`

func scanTransfer(row scanner, t *invoice.Transfer, more ...any) error {
	return row.Scan(append([]any{more[0], &t.ChainKey, hashCol(&t.TxHash), &t.Ordinal, &t.LogIndex,
		&t.BlockNumber, hashCol(&t.BlockHash), &t.BlockTime, addressCol(&t.Token), &t.Currency,
		addressCol(&t.From), addressCol(&t.To), amountCol(&t.Amount), hashCol(&t.Evidence.Calldata)}, more[1:]...)...)
}

func transferValues(id string, t invoice.Transfer) []any {
	return []any{id, t.ChainKey, t.TxHash.String(), t.Ordinal, t.LogIndex,
		int64(t.BlockNumber), t.BlockHash.String(), t.BlockTime, t.Token.String(), t.Currency,
		t.From.String(), t.To.String(), t.Amount.String(), orNull(t.Evidence.Calldata)}
}

// PaymentRow is a payment and its place in the lists of payments.
type PaymentRow struct {
	invoice.Payment
	SeenID string
}

const paymentColumns = transferColumns + ", method, seen_id"

func scanPayment(row scanner) (PaymentRow, error) {
	var p PaymentRow
	err := scanTransfer(row, &p.Transfer, &p.ID, &p.Status, &p.ObservedAt, seconds{&p.ConfirmedAt},
		textCol(&p.InvoiceID), textCol(&p.MerchantID), textCol(&p.Method), &p.SeenID)
	return p, err
}

// SavePayment inserts the payment, or writes what may change of one that is
// there: where it was mined, what it moved, its state and its invoice.
func (tx *Tx) SavePayment(ctx context.Context, p PaymentRow) error {
	_, err := tx.exec(ctx, `INSERT INTO payments (`+paymentColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
		ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, status = excluded.status,
			confirmed_at = excluded.confirmed_at, invoice_id = excluded.invoice_id,
			merchant_id = excluded.merchant_id, method = excluded.method`,
		append(transferValues(p.ID, p.Transfer), string(p.Status), p.ObservedAt, orNull(p.ConfirmedAt),
			orNull(p.InvoiceID), orNull(p.MerchantID), orNull(p.Method), p.SeenID)...)
	if err != nil {
		return fmt.Errorf("save payment %s: %w", p.ID, err)
	}
	return nil
}

// Payment returns the payment with the id, or ErrNotFound.
func (q *queries) Payment(ctx context.Context, id string) (PaymentRow, error) {
	return one(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE id = $1", id)
}

// PaymentsOfInvoices returns the payments attributed to the invoices.
func (q *queries) PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]PaymentRow, error) {
	return inChunks(invoiceIDs, func(chunk []any) ([]PaymentRow, error) {
		return collect(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE invoice_id IN "+list(0, len(chunk)), chunk...)
	})
}

// pairLimit bounds the payments between one payer and one merchant that a
// refund is looked for among: the newest.
const pairLimit = 1000

// PaymentsBetween returns the newest payments from one account to another.
func (q *queries) PaymentsBetween(ctx context.Context, chainKey string, from, to invoice.Address) ([]PaymentRow, error) {
	return collect(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE from_address = $1 AND to_address = $2 AND chain_key = $3 ORDER BY block_number DESC LIMIT $4`,
		from.String(), to.String(), chainKey, pairLimit)
}

// UnfinalPayments returns the pending payments of the chain mined in blocks
// from one number to another, both included.
func (q *queries) UnfinalPayments(ctx context.Context, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return collect(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// PaymentFilter says which payments to list. Empty members do not filter.
// Payments that are attributed to no invoice are not listed.
type PaymentFilter struct {
	MerchantID     string
	ChainKey       string
	IncludePending bool   // those not confirmed, and those orphaned, too
	Before         string // a payment's SeenID; those listed were seen before it
	Limit          int
}

// Payments lists payments, the last seen first. What it costs does not depend
// on how many there are.
func (q *queries) Payments(ctx context.Context, f PaymentFilter) ([]PaymentRow, error) {
	var w where
	w.conditions = append(w.conditions, "invoice_id IS NOT NULL")
	if !f.IncludePending {
		w.conditions = append(w.conditions, "status = 'confirmed'")
	}
	w.equal("merchant_id", f.MerchantID)
	w.equal("chain_key", f.ChainKey)
	w.below("seen_id", f.Before)
	return collect(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments"+w.text()+
		fmt.Sprintf(" ORDER BY seen_id DESC LIMIT $%d", w.next()), append(w.args, f.Limit)...)
}

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
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, status = excluded.status,
			confirmed_at = excluded.confirmed_at, payment_id = excluded.payment_id,
			invoice_id = excluded.invoice_id, merchant_id = excluded.merchant_id`,
		append(transferValues(r.ID, r.Transfer), string(r.Status), r.ObservedAt, orNull(r.ConfirmedAt),
			r.InvoiceID, r.MerchantID, r.PaymentID)...)
	if err != nil {
		return fmt.Errorf("save refund %s: %w", r.ID, err)
	}
	return nil
}

// Refund returns the refund with the id, or ErrNotFound.
func (q *queries) Refund(ctx context.Context, id string) (invoice.Refund, error) {
	return one(ctx, q, scanRefund, "SELECT "+refundColumns+" FROM refunds WHERE id = $1", id)
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

// OrphanAbove orphans the pending payments and refunds of blocks above the
// number, which a reorg left.
func (tx *Tx) OrphanAbove(ctx context.Context, chainKey string, number uint64) error {
	for _, table := range []string{"payments", "refunds"} {
		if _, err := tx.exec(ctx, "UPDATE "+table+` SET status = 'orphaned'
			WHERE chain_key = $1 AND block_number > $2 AND status = 'pending'`, chainKey, int64(number)); err != nil {
			return err
		}
	}
	return nil
}
