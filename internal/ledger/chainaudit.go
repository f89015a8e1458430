package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ChainAudits returns how far the final blocks of a chain were read a second time. The
// first call for a chain begins with the blocks that become final afterwards.
func (s *Service) ChainAudits(ctx context.Context, chainKey string) ([]ChainAudit, error) {
	all, err := chainAudits(ctx, s.conf.Store, chainKey)
	if err != nil || len(all) > 0 && all[0].Part == AuditNew {
		return all, err
	}
	err = s.updateCursor(ctx, chainKey, func(tx *db.Tx, cur *Cursor) error {
		return beginAudit(ctx, tx, chainKey, cur.Confirmed.Number+1)
	})
	if err != nil {
		return nil, err
	}
	return chainAudits(ctx, s.conf.Store, chainKey)
}

// AdvanceAudit records that a part of a chain is audited up to a block.
func (s *Service) AdvanceAudit(ctx context.Context, chainKey string, from ChainAudit, next uint64, more AuditCounts) error {
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error { return advanceAudit(ctx, tx, chainKey, from, next, more) })
}

// MayBeRefunds returns the pairs of accounts for which a transfer from the settlement address may be a refund.
func (s *Service) MayBeRefunds(ctx context.Context, chainKey string, outgoing []Pair) (map[Pair]bool, error) {
	return PaidPairs(ctx, s.conf.Store, chainKey, outgoing, true)
}

// RecordedTransactions returns the transactions with recorded transfers.
func (s *Service) RecordedTransactions(ctx context.Context, chainKey string, txs []invoice.Hash) (map[invoice.Hash]bool, error) {
	return recordedTransactions(ctx, s.conf.Store, chainKey, txs)
}
