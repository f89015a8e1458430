package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// foreignTxs returns the transactions that are not stored as sent by the service.
func foreignTxs(ctx context.Context, q db.Querier, txs []invoice.Hash) ([]invoice.Hash, error) {
	rows := db.Each(txs, func(t invoice.Hash) []any { return []any{t.String()} })
	stored, err := q.WhichExist(ctx, []string{"hash"}, rows, "chain_tx_attempts WHERE tx_hash = hash")
	if err != nil {
		return nil, fmt.Errorf("look up transactions: %w", err)
	}
	foreign := slices.Clone(txs)
	for _, i := range stored {
		foreign[i] = invoice.Hash{}
	}
	return slices.DeleteFunc(foreign, invoice.Hash.IsZero), nil
}
