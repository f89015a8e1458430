package ledger

import (
	"context"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const sweepColumns = transferColumns + ", invoice_id"

func scanSweep(row db.Scanner) (invoice.Sweep, error) {
	var s invoice.Sweep
	err := scanTransfer(row, &s.Transfer, &s.ID, &s.Status, db.Seconds(&s.ObservedAt), db.Seconds(&s.ConfirmedAt), &s.InvoiceID)
	return s, err
}

// SaveSweeps inserts sweeps, and updates existing ones: their block, transfer and state.
// The sweeps must be distinct.
func SaveSweeps(ctx context.Context, tx *db.Tx, sweeps []invoice.Sweep) error {
	rows := make([][]any, len(sweeps))
	for i, s := range sweeps {
		rows[i] = append(transferValues(s.ID, s.Transfer), string(s.Status), invoice.UnixSeconds(s.ObservedAt), db.OrNull(s.ConfirmedAt), s.InvoiceID)
	}
	return tx.Insert(ctx, db.Insertion{Table: "sweeps", Columns: db.Typed(strings.Split(sweepColumns, ", ")),
		Conflict: `ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, registry_id = excluded.registry_id,
			authorization_id = excluded.authorization_id, status = excluded.status, confirmed_at = excluded.confirmed_at,
			invoice_id = excluded.invoice_id`}, rows)
}

// SweepsByID returns the sweeps with the ids, in no order. It skips unknown ids.
func SweepsByID(ctx context.Context, q db.Querier, ids []string) ([]invoice.Sweep, error) {
	return db.QueryIn(ids, func(chunk []any) ([]invoice.Sweep, error) {
		return db.QueryAll(ctx, q, scanSweep, "SELECT "+sweepColumns+" FROM sweeps WHERE id IN "+db.ParameterList(0, len(chunk)), chunk...)
	})
}

// PendingSweeps returns the chain's pending sweeps in blocks from one number to another,
// inclusive.
func PendingSweeps(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Sweep, error) {
	return db.QueryAll(ctx, q, scanSweep, "SELECT "+sweepColumns+` FROM sweeps
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// OrphanedSweeps returns the chain's orphaned sweeps that were last seen in blocks from one
// number to another, inclusive.
func OrphanedSweeps(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Sweep, error) {
	return db.QueryAll(ctx, q, scanSweep, "SELECT "+sweepColumns+` FROM sweeps
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'orphaned'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}
