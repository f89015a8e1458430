package report

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"
)

// sweepingCost adds up what the transactions of the period cost that were sent to sweep
// deposits. Each merchant has its part of a transaction, the same for each deposit.
func sweepingCost(ctx context.Context, db Reader, r Request) ([]*SweepLine, error) {
	type key struct{ chainKey, merchantID string }
	lines := make(map[key]*SweepLine)
	add := func(k key, deposits, gwei int64) {
		if lines[k] == nil {
			lines[k] = &SweepLine{ChainKey: k.chainKey, MerchantID: k.merchantID}
		}
		lines[k].Deposits += deposits
		lines[k].Gwei.Add(&lines[k].Gwei, big.NewInt(gwei))
	}
	for f := r.filter(); ; {
		page, err := db.SweepTxs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, tx := range page {
			if len(tx.Merchants) == 0 && r.MerchantID == "" {
				add(key{tx.ChainKey, ""}, 0, tx.Cost.Gwei)
			}
			for _, m := range tx.Shares() {
				if r.MerchantID == "" || r.MerchantID == m.MerchantID {
					add(key{tx.ChainKey, m.MerchantID}, m.Deposits, m.Gwei)
				}
			}
		}
		if len(page) < f.Limit {
			break
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.Cost.At, last.ID
	}
	return slices.SortedFunc(maps.Values(lines), func(a, b *SweepLine) int {
		return cmp.Or(cmp.Compare(a.ChainKey, b.ChainKey), cmp.Compare(a.MerchantID, b.MerchantID))
	}), nil
}
