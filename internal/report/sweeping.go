package report

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"

	"github.com/quittance/quittance/internal/store"
)

// sweepKey identifies a SweepLine.
type sweepKey struct{ chainKey, merchantID string }

// sweepLines are the costs of sweeping by chain and merchant.
type sweepLines map[sweepKey]*SweepLine

func (l sweepLines) add(k sweepKey, deposits, gwei int64) {
	if l[k] == nil {
		l[k] = &SweepLine{ChainKey: k.chainKey, MerchantID: k.merchantID}
	}
	l[k].Deposits += deposits
	l[k].Gwei.Add(&l[k].Gwei, big.NewInt(gwei))
}

// addTx adds the parts of a transaction: those of a merchant, or all if merchantID is empty.
func (l sweepLines) addTx(tx store.SweepTx, merchantID string) {
	if len(tx.Merchants) == 0 && merchantID == "" {
		l.add(sweepKey{tx.ChainKey, ""}, 0, tx.Cost.Gwei)
	}
	for _, m := range tx.Shares() {
		if merchantID == "" || merchantID == m.MerchantID {
			l.add(sweepKey{tx.ChainKey, m.MerchantID}, m.Deposits, m.Gwei)
		}
	}
}

// sweepingCost adds up what the transactions of the period cost that were sent to sweep
// deposits. Each merchant has its part of a transaction, the same for each deposit.
func sweepingCost(ctx context.Context, db Reader, r Request) ([]*SweepLine, error) {
	lines := make(sweepLines)
	for f := r.filter(); ; {
		page, err := db.SweepTxs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, tx := range page {
			lines.addTx(tx, r.MerchantID)
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
