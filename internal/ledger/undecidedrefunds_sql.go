package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// undecidedRefund is a transfer that may be a refund, before that is decided.
type undecidedRefund struct {
	id string
	invoice.Transfer
}

var undecidedTable = db.NewTable("undecided_refunds", func(u *undecidedRefund) []db.Column { return transferColumns(&u.id, &u.Transfer) })

// deferRefunds stores transfers out of settlement addresses until the blocks are read that may hold
// the payments that they refund. The transfers must be distinct.
func deferRefunds(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	rows := db.Each(transfers, func(t invoice.Transfer) undecidedRefund {
		return undecidedRefund{tx.TransferID(invoice.PrefixRefund, t), t}
	})
	return undecidedTable.Insert(ctx, tx, "ON CONFLICT (id) DO UPDATE SET "+undecidedTable.Without(transferKey...).Excluded(), rows...)
}

// UndecidedRefunds returns the transfers that deferRefunds stored of the chain's blocks from one number to another,
// both included, in the order of the chain, up to a limit.
func UndecidedRefunds(ctx context.Context, q db.Querier, chainKey string, from, to uint64, limit int) ([]invoice.Transfer, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (invoice.Transfer, error) {
		u, err := undecidedTable.Scan(row)
		return u.Transfer, err
	}, undecidedTable.Select()+` WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3
		ORDER BY block_number, log_index LIMIT $4`, chainKey, int64(from), int64(to), limit)
}

// deleteUndecidedRefunds removes transfers that deferRefunds stored.
func deleteUndecidedRefunds(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	ids := db.Each(transfers, func(t invoice.Transfer) string { return tx.TransferID(invoice.PrefixRefund, t) })
	return db.SendIn(ctx, tx, "DELETE FROM undecided_refunds WHERE id IN ", ids)
}

// waitsUndecided reports whether a transfer that deferRefunds stored may pay a row of refund_records, or refund its
// payment.
const waitsUndecided = `EXISTS (SELECT 1 FROM undecided_refunds AS unknown WHERE ` + fitsPayment + `
	AND unknown.to_address IN (payments.from_address, refund_records.recipient) LIMIT 1 OFFSET 0)`

// MayBeRefunded reports whether a transfer that deferRefunds stored, to the payer or another recipient, may refund a
// payment.
func MayBeRefunded(ctx context.Context, q db.Querier, p invoice.Transfer, others ...invoice.Address) (bool, error) {
	var rows [][]any
	for _, to := range append(others, p.From) {
		rows = append(rows, []any{p.ChainKey, to.String(), p.To.String()})
	}
	found, err := q.WhichExist(ctx, []string{"chain", "receiver", "sender"}, rows, "undecided_refunds WHERE chain_key = chain AND to_address = receiver AND from_address = sender")
	return len(found) > 0, err
}
