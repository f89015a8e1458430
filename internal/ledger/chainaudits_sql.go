package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// AuditPart is a part of a chain's final blocks.
type AuditPart string

// Parts of a chain's blocks.
const (
	AuditNew   AuditPart = "new"   // as they become final
	AuditOlder AuditPart = "older" // of a back-fill
)

// ChainAudit is the progress of the second reading of a part of a chain's final blocks.
type ChainAudit struct {
	Part    AuditPart
	Next    uint64  // first block that is not audited
	Last    *uint64 // nil for the newest final one
	Counted AuditCounts
}

// AuditCounts are numbers of blocks, by how they were audited.
type AuditCounts struct{ Header, Receipts, Node, Unverified uint64 }

// chainAudits returns the audits of a chain.
func chainAudits(ctx context.Context, q db.Querier, chainKey string) ([]ChainAudit, error) {
	return db.QueryAll(ctx, q, db.Fields(func(a *ChainAudit) []any {
		return []any{&a.Part, &a.Next, &a.Last, &a.Counted.Header, &a.Counted.Receipts, &a.Counted.Node, &a.Counted.Unverified}
	}), "SELECT part, next_block, last_block, by_header, by_receipts, by_node, unverified FROM chain_audits WHERE chain_key = $1 ORDER BY part", chainKey)
}

// beginAudit starts the audit of a chain's blocks at a number, unless it has started already.
func beginAudit(ctx context.Context, tx *db.Tx, chainKey string, next uint64) error {
	return tx.Send(ctx, nil, `INSERT INTO chain_audits (chain_key, part, next_block) VALUES ($1, 'new', $2) ON CONFLICT DO NOTHING`,
		chainKey, int64(next))
}

// auditOlder schedules an audit of a range of older blocks, together with the rest of an earlier range.
func auditOlder(ctx context.Context, tx *db.Tx, chainKey string, first, last uint64) error {
	return tx.Send(ctx, nil, `INSERT INTO chain_audits (chain_key, part, next_block, last_block) VALUES ($1, 'older', $2, $3)
		ON CONFLICT (chain_key, part) DO UPDATE SET
		next_block = CASE WHEN chain_audits.next_block > chain_audits.last_block OR excluded.next_block < chain_audits.next_block
			THEN excluded.next_block ELSE chain_audits.next_block END,
		last_block = CASE WHEN chain_audits.next_block > chain_audits.last_block OR excluded.last_block > chain_audits.last_block
			THEN excluded.last_block ELSE chain_audits.last_block END`, chainKey, int64(first), int64(last))
}

// advanceAudit records that blocks from one on were audited, and the first that is not. It has no
// effect if another process has advanced the audit.
func advanceAudit(ctx context.Context, tx *db.Tx, chainKey string, from ChainAudit, next uint64, more AuditCounts) error {
	return tx.Send(ctx, nil, `UPDATE chain_audits SET next_block = $4, by_header = by_header + $5, by_receipts = by_receipts + $6,
		by_node = by_node + $7, unverified = unverified + $8 WHERE chain_key = $1 AND part = $2 AND next_block = $3`,
		chainKey, string(from.Part), int64(from.Next), int64(next), int64(more.Header), int64(more.Receipts), int64(more.Node), int64(more.Unverified))
}

// recordedTransactions returns the transactions of a chain with a recorded payment, refund or sweep
// that is not orphaned, or a possible refund that is undecided.
func recordedTransactions(ctx context.Context, q db.Querier, chainKey string, hashes []invoice.Hash) (map[invoice.Hash]bool, error) {
	recorded := map[invoice.Hash]bool{}
	for _, hash := range hashes {
		found, err := db.QueryRow(ctx, q, db.ScanSeq, `SELECT (SELECT count(*) FROM payments WHERE chain_key = $1 AND tx_hash = $2 AND status <> 'orphaned')
			+ (SELECT count(*) FROM refunds WHERE chain_key = $1 AND tx_hash = $2 AND status <> 'orphaned')
			+ (SELECT count(*) FROM undecided_refunds WHERE chain_key = $1 AND tx_hash = $2)
			+ (SELECT count(*) FROM sweeps WHERE chain_key = $1 AND tx_hash = $2 AND status <> 'orphaned')`, chainKey, hash.String())
		if err != nil {
			return nil, err
		}
		if found > 0 {
			recorded[hash] = true
		}
	}
	return recorded, nil
}
