package settle

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// ChainAudits returns how far the final blocks of a chain were read a second time. The
// first call for a chain begins with the blocks that become final afterwards.
func (s *Service) ChainAudits(ctx context.Context, chainKey string) ([]store.ChainAudit, error) {
	all, err := s.store.ChainAudits(ctx, chainKey)
	if err != nil || len(all) > 0 && all[0].Part == store.AuditNew {
		return all, err
	}
	err = s.updateCursor(ctx, chainKey, func(tx *store.Tx, cur *store.Cursor) error {
		return tx.BeginAudit(ctx, chainKey, cur.Confirmed.Number+1)
	})
	if err != nil {
		return nil, err
	}
	return s.store.ChainAudits(ctx, chainKey)
}

// AdvanceAudit records that a part of a chain is audited up to a block.
func (s *Service) AdvanceAudit(ctx context.Context, chainKey string, from store.ChainAudit, next uint64, more store.AuditCounts) error {
	return s.store.Update(ctx, func(tx *store.Tx) error { return tx.AdvanceAudit(ctx, chainKey, from, next, more) })
}

// RecordedTransactions returns the transactions with recorded transfers.
func (s *Service) RecordedTransactions(ctx context.Context, chainKey string, txs []invoice.Hash) (map[invoice.Hash]bool, error) {
	return s.store.RecordedTransactions(ctx, chainKey, txs)
}
