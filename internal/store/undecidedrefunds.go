package store

import (
	"context"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// undecidedRefundColumns are those that a refund shares with a payment, but for
// what becomes of it.
var undecidedRefundColumns = strings.TrimSuffix(transferColumns, ", status, observed_at, confirmed_at")

// DeferRefunds stores transfers out of settlement addresses until the blocks are
// read that may hold the payments that they pay back. None may come twice.
func (tx *Tx) DeferRefunds(ctx context.Context, transfers []invoice.Transfer) error {
	rows := make([][]any, len(transfers))
	for i, t := range transfers {
		rows[i] = transferValues(tx.TransferID(invoice.PrefixRefund, t), t)
	}
	return tx.insert(ctx, insertion{"undecided_refunds", strings.Split(undecidedRefundColumns, ", "),
		`ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, registry_id = excluded.registry_id,
			authorization_id = excluded.authorization_id`}, rows)
}

// UndecidedRefunds returns the transfers that DeferRefunds stored of the chain's
// blocks from one number to another, both included, in the order of the chain,
// up to a limit.
func (q *queries) UndecidedRefunds(ctx context.Context, chainKey string, from, to uint64, limit int) ([]invoice.Transfer, error) {
	return queryAll(ctx, q, func(row scanner) (t invoice.Transfer, err error) {
		var id string
		err = scanTransfer(row, &t, &id)
		return t, err
	}, "SELECT "+undecidedRefundColumns+` FROM undecided_refunds WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3
		ORDER BY block_number, log_index LIMIT $4`, chainKey, int64(from), int64(to), limit)
}

// DeleteUndecidedRefunds removes transfers that DeferRefunds stored.
func (tx *Tx) DeleteUndecidedRefunds(ctx context.Context, transfers []invoice.Transfer) error {
	ids := make([]string, len(transfers))
	for i, t := range transfers {
		ids[i] = tx.TransferID(invoice.PrefixRefund, t)
	}
	return sendIn(ctx, &tx.queries, "DELETE FROM undecided_refunds WHERE id IN ", ids)
}

// MayBeRefunded reports whether a transfer that DeferRefunds stored may pay back
// a payment.
func (q *queries) MayBeRefunded(ctx context.Context, p invoice.Transfer) (bool, error) {
	found, err := q.whichExist(ctx, []string{"chain", "payer", "receiver"}, [][]any{{p.ChainKey, p.From.String(), p.To.String()}},
		"undecided_refunds WHERE chain_key = chain AND to_address = payer AND from_address = receiver")
	return len(found) > 0, err
}
