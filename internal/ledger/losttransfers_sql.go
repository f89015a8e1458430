package ledger

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// maxMayRefund bounds the payments that are listed with an unrecognized transfer.
const maxMayRefund = 10

// UnrecognizedTransfer is a transfer out of a settlement address that a recovery found and that
// matches no known refund.
type UnrecognizedTransfer struct {
	ID string // id of the refund, if it is one
	invoice.Transfer
	Payments []string // ids of payments that it may refund, the newest first, up to maxMayRefund
}

// unrecognized are conditions for a row of unrecognized_transfers named unknown: the transfer is still
// neither a refund nor the payment of an invoice, and no person has checked it. The ids of a transfer's refund
// and payment differ in their prefix.
const unrecognized = `unknown.checked = 0 AND NOT EXISTS (SELECT 1 FROM refunds AS known WHERE known.id = unknown.id AND known.status <> 'orphaned')
	AND ` + paysNoInvoice

// paysNoInvoice is a condition for the id that a transfer named unknown has as a refund.
const paysNoInvoice = `NOT EXISTS (SELECT 1 FROM payments AS known WHERE known.id = '` + invoice.PrefixPayment + `' || substr(unknown.id, 5) AND known.invoice_id IS NOT NULL)`

// mayRefund are conditions for a row of unrecognized_transfers named unknown that may have refunded a row of payments.
const mayRefund = fitsPayment + " AND " + unrecognized

// fitsPayment are conditions for a transfer named unknown: it is out of the settlement address of a row of payments,
// and not older or larger.
const fitsPayment = `unknown.from_address = coalesce(payments.settles_to, payments.to_address) AND unknown.chain_key = payments.chain_key AND unknown.token = payments.token
	AND unknown.block_number >= payments.block_number AND (length(unknown.amount), unknown.amount) <= (length(payments.amount), payments.amount)`

// InsertUnrecognizedTransfers records transfers out of settlement addresses.
func InsertUnrecognizedTransfers(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	rows := db.Each(transfers, func(t invoice.Transfer) []any {
		return []any{tx.TransferID(invoice.PrefixRefund, t), t.ChainKey, t.TxHash.String(), int64(t.BlockNumber), t.Token.String(), t.Currency, t.From.String(), t.To.String(), t.Amount.String(), int64(0)}
	})
	return tx.Insert(ctx, db.Insertion{Table: "unrecognized_transfers",
		Columns: []string{"id", "chain_key", "tx_hash", "block_number BIGINT", "token", "currency", "from_address", "to_address", "amount", "checked BIGINT"}, Conflict: "ON CONFLICT (id) DO NOTHING"}, rows)
}

// UnrecognizedTransfers returns the transfers of a chain, or of all chains if it is empty, that match
// no known refund and that no person has checked, in the order of their blocks: up to limit transfers,
// after the last one of the page before.
func UnrecognizedTransfers(ctx context.Context, q db.Querier, chainKey string, after UnrecognizedTransfer, limit int) ([]UnrecognizedTransfer, error) {
	all, err := db.QueryAll(ctx, q, db.Fields(func(t *UnrecognizedTransfer) []any {
		return []any{&t.ID, &t.ChainKey, db.Hash(&t.TxHash), &t.BlockNumber, db.Address(&t.Token), &t.Currency, db.Address(&t.From), db.Address(&t.To), db.Amount(&t.Amount)}
	}), `SELECT id, chain_key, tx_hash, block_number, token, currency, from_address, to_address, amount FROM unrecognized_transfers AS unknown
		WHERE ($1 = '' OR chain_key = $1) AND `+unrecognized+" AND (block_number, id) > ($2, $3) ORDER BY block_number, id LIMIT $4", chainKey, int64(after.BlockNumber), after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("read unrecognized transfers: %w", err)
	}
	for i, t := range all {
		all[i].Payments, err = db.QueryAll(ctx, q, db.ScanID, `SELECT payments.id FROM unrecognized_transfers AS unknown, payments WHERE unknown.id = $1 AND payments.status <> 'orphaned'
			AND (payments.to_address = $2 OR payments.settles_to = $2) AND `+mayRefund+" ORDER BY payments.block_number DESC, payments.id LIMIT $3", t.ID, t.From.String(), maxMayRefund)
		if err != nil {
			return nil, fmt.Errorf("read which payments transfer %s may have refunded: %w", t.ID, err)
		}
	}
	return all, nil
}

// CheckTransfer records that a person has checked an unrecognized transfer, also if its block is read again. It returns
// ErrNotFound for an unknown id, or one that was checked.
func CheckTransfer(ctx context.Context, tx *db.Tx, id string) error {
	return tx.Change(ctx, "UPDATE unrecognized_transfers SET checked = 1 WHERE id = $1 AND checked = 0", id)
}
