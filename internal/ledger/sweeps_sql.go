package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

var sweepTable = db.NewTable("sweeps", func(s *invoice.Sweep) []db.Column {
	return append(observedColumns(&s.ID, &s.Transfer, &s.Status, &s.ObservedAt, &s.ConfirmedAt), db.Col("invoice_id", db.Text(&s.InvoiceID)))
})

// SaveSweeps inserts sweeps, and updates existing ones: their block, transfer and state. The sweeps must be distinct.
func SaveSweeps(ctx context.Context, tx *db.Tx, sweeps []invoice.Sweep) error {
	update := "ON CONFLICT (id) DO UPDATE SET " + sweepTable.Without(append(transferKey, "observed_at")...).Excluded()
	return sweepTable.Insert(ctx, tx, update, sweeps...)
}

// SweepsByID returns the sweeps with the ids, in no order. It skips unknown ids.
func SweepsByID(ctx context.Context, q db.Querier, ids []string) ([]invoice.Sweep, error) {
	return db.AllIn(ctx, q, sweepTable.Scan, sweepTable.Select()+" WHERE id IN ", ids)
}

// PendingSweeps returns the chain's pending sweeps in blocks from one number to another, inclusive.
func PendingSweeps(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Sweep, error) {
	return db.QueryAll(ctx, q, sweepTable.Scan, sweepTable.Select()+`
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// OrphanedSweeps returns the chain's orphaned sweeps that were last seen in blocks from one
// number to another, inclusive.
func OrphanedSweeps(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Sweep, error) {
	return db.QueryAll(ctx, q, sweepTable.Scan, sweepTable.Select()+`
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'orphaned'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}
