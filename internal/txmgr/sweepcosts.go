package txmgr

import (
	"context"
	"strconv"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/ledger"
)

// auditedCost is the audit log's entry for the cost of a mined transaction for a merchant's deposits.
type auditedCost struct {
	ChainKey string `json:"chainKey"`
	Deposits int64  `json:"deposits,omitempty"` // number of deposits that it was sent to sweep
	CostGwei string `json:"costGwei"`
	Reverted bool   `json:"reverted,omitempty"`
}

// cost returns the cost of a mined transaction and its entries for the audit log: one for each merchant with deposits
// that it was sent to sweep, and no entry for other kinds or for a cost that is recorded already: a reorg, or a node that
// is behind, makes a transaction look as if it was not mined. The cost is nil while it is not known.
func (w *Writer) cost(ctx context.Context, t ChainTx, mined minedAttempt) (*ledger.TxCost, []access.Entry, error) {
	cost := w.spent(ctx, t, mined)
	if cost == nil {
		return nil, nil, nil
	}
	if t.Spent != nil {
		if cost.Gwei == t.Spent.Gwei {
			return t.Spent, nil, nil
		}
		cost.At, cost.Scheduled = t.Spent.At, t.Spent.Scheduled
	}
	if t.Kind != TxSweep {
		return cost, nil, nil
	}
	merchants, err := TxMerchants(ctx, w.conf.Store, t.ID)
	if err != nil {
		return nil, nil, err
	}
	if len(merchants) == 0 {
		merchants = []TxMerchant{{}} // sent by an earlier release
	}
	entries := make([]access.Entry, len(merchants))
	for i, m := range merchants {
		entries[i] = access.NewEntry(ctx, cost.At, access.Change{
			MerchantID: m.MerchantID, Action: access.ActionDepositSwept, Object: mined.receipt.TxHash.String(),
			After: auditedCost{t.ChainKey, m.Items, strconv.FormatInt(m.Share(cost.Gwei), 10), !mined.receipt.Succeeded()},
		})
	}
	return cost, entries, nil
}
