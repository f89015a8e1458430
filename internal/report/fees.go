package report

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"

	"github.com/quittance/quittance/internal/txmgr"
)

// FeeKind is the purpose of transactions.
type FeeKind string

// Purposes of transactions.
const (
	FeeCommitment    FeeKind = "commitment"    // to open and close commitments of invoices in the registry
	FeeAuthorization FeeKind = "authorization" // to relay authorizations of payers
	FeeSweep         FeeKind = "sweep"         // to sweep deposits
)

// FeeKinds are all kinds of fees, in order.
var FeeKinds = []FeeKind{FeeCommitment, FeeAuthorization, FeeSweep}

// feeKind returns the kind of the fee of a transaction.
func feeKind(k txmgr.TxKind) FeeKind {
	switch k {
	case txmgr.TxAuthorization:
		return FeeAuthorization
	case txmgr.TxSweep:
		return FeeSweep
	case txmgr.TxOpen, txmgr.TxClose:
	}
	return FeeCommitment
}

// FeeLine is the service's cost of transactions of a kind for a merchant on a chain.
type FeeLine struct {
	ChainKey   string
	Kind       FeeKind
	MerchantID string // empty if the merchants of the transactions are not recorded
	Items      int64  // merchant for which the transactions were sent
	Gwei       big.Int
}

// feeKey identifies a FeeLine.
type feeKey struct {
	chainKey   string
	kind       FeeKind
	merchantID string
}

// fees adds up the cost of the period's transactions. Each merchant has its part of a transaction, the
// same for each item.
func fees(ctx context.Context, source Source, r Request) ([]*FeeLine, error) {
	lines := make(map[feeKey]*FeeLine)
	for f := r.filter(); ; {
		page, err := source.TxShares(ctx, f)
		if err != nil {
			return nil, err
		}
		txs := 0
		for _, share := range page {
			if share.TxID != f.AfterID {
				txs++
			}
			f.After, f.AfterID = share.Cost.At, share.TxID
			key := feeKey{share.ChainKey, feeKind(share.Kind), share.MerchantID}
			if lines[key] == nil {
				lines[key] = &FeeLine{ChainKey: key.chainKey, Kind: key.kind, MerchantID: key.merchantID}
			}
			lines[key].Items += share.Items
			lines[key].Gwei.Add(&lines[key].Gwei, big.NewInt(share.Cost.Gwei))
		}
		if txs < f.Limit {
			break
		}
	}
	return slices.SortedFunc(maps.Values(lines), func(a, b *FeeLine) int {
		return cmp.Or(cmp.Compare(a.ChainKey, b.ChainKey), cmp.Compare(slices.Index(FeeKinds, a.Kind), slices.Index(FeeKinds, b.Kind)), cmp.Compare(a.MerchantID, b.MerchantID))
	}), nil
}
