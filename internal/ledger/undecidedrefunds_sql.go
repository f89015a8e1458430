package ledger

import (
	"context"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// undecidedRefundColumns are the columns that a refund shares with a payment, without the columns of
// its outcome.
var undecidedRefundColumns = strings.TrimSuffix(transferColumns, ", status, observed_at, confirmed_at")

// deferRefunds stores transfers out of settlement addresses until the blocks are read that may hold
// the payments that they refund. The transfers must be distinct.
func deferRefunds(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	rows := make([][]any, len(transfers))
	for i, t := range transfers {
		rows[i] = transferValues(tx.TransferID(invoice.PrefixRefund, t), t)
	}
	return tx.Insert(ctx, db.Insertion{Table: "undecided_refunds", Columns: strings.Split(undecidedRefundColumns, ", "),
		Conflict: `ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, registry_id = excluded.registry_id,
			authorization_id = excluded.authorization_id`}, rows)
}

// UndecidedRefunds returns the transfers that DeferRefunds stored of the chain's
// blocks from one number to another, both included, in the order of the chain,
// up to a limit.
func UndecidedRefunds(ctx context.Context, q db.Querier, chainKey string, from, to uint64, limit int) ([]invoice.Transfer, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (t invoice.Transfer, err error) {
		var id string
		err = scanTransfer(row, &t, &id)
		return t, err
	}, "SELECT "+undecidedRefundColumns+` FROM undecided_refunds WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3
		ORDER BY block_number, log_index LIMIT $4`, chainKey, int64(from), int64(to), limit)
}

// deleteUndecidedRefunds removes transfers that DeferRefunds stored.
func deleteUndecidedRefunds(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	ids := make([]string, len(transfers))
	for i, t := range transfers {
		ids[i] = tx.TransferID(invoice.PrefixRefund, t)
	}
	return db.SendIn(ctx, tx, "DELETE FROM undecided_refunds WHERE id IN ", ids)
}

// MayBeRefunded reports whether a transfer that DeferRefunds stored may refund a payment.
func MayBeRefunded(ctx context.Context, q db.Querier, p invoice.Transfer) (bool, error) {
	found, err := q.WhichExist(ctx, []string{"chain", "payer", "receiver"}, [][]any{{p.ChainKey, p.From.String(), p.To.String()}},
		"undecided_refunds WHERE chain_key = chain AND to_address = payer AND from_address = receiver")
	return len(found) > 0, err
}
