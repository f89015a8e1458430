package txmgr

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/quittance/quittance/internal/chain"
)

// fees are the fees that a transaction offers (EIP-1559), in wei per unit of gas.
type fees struct {
	cap *big.Int // maximum in total
	tip *big.Int // maximum above the base fee
}

// poolTipWei is the least tip that go-ethereum's pool accepts, in wei per unit of gas, even if the chain is idle.
const poolTipWei = 1

// marketFees returns a tip within the limits, and a fee cap that suffices until the base fee has doubled, but not more
// than the limits allow. It fails if the base fee is already above that.
func marketFees(base, tip *big.Int, limits chain.SpendLimits) (fees, error) {
	most := wei(limits.MaxFeeWei)
	if base.Cmp(most) > 0 {
		return fees{}, fmt.Errorf("%w: the base fee is %s wei for a unit of gas, and at most %s is paid", errFeeCapExceeded, base, most)
	}
	tip = least(greatest(tip, wei(max(limits.MinTipWei, poolTipWei))), wei(limits.MaxTipWei))
	f := fees{cap: new(big.Int).Lsh(base, 1)}
	f.cap = least(f.cap.Add(f.cap, tip), most)
	f.tip = least(tip, f.cap)
	return f, nil
}

// price returns the newest block and the fees to offer now.
func (w *Writer) price(ctx context.Context) (*block, fees, error) {
	head, err := w.node.head(ctx)
	if err != nil {
		return nil, fees{}, err
	}
	offer, err := w.marketFeesAt(ctx, head)
	return head, offer, err
}

// marketFeesAt returns the present market fees of the chain, of which the head is given.
func (w *Writer) marketFeesAt(ctx context.Context, head *block) (fees, error) {
	if head.BaseFee == nil {
		return fees{}, fmt.Errorf("block %d has no base fee; want a chain with the fees of EIP-1559", head.Number.N)
	}
	tip, err := w.node.tip(ctx)
	if err != nil {
		return fees{}, err
	}
	return marketFees(head.BaseFee.N, tip, w.conf.Chain.Limits)
}

// stuckLimit returns the highest fee cap for a transaction that is stuck at the market fees f: twice their cap.
func (f fees) stuckLimit() *big.Int { return new(big.Int).Lsh(f.cap, 1) }

// bump returns fees with which every node's pool replaces a transaction with the old ones, or the market fees if they
// are higher. ok is false if that exceeds the limits.
func bump(old, market, limit fees) (fees, bool) {
	f := fees{cap: minReplacement(old.cap), tip: minReplacement(old.tip)}
	if f.cap.Cmp(limit.cap) > 0 || f.tip.Cmp(limit.tip) > 0 {
		return old, false
	}
	f.cap = least(greatest(f.cap, market.cap), limit.cap)
	f.tip = least(least(greatest(f.tip, market.tip), limit.tip), f.cap)
	return f, true
}

// minReplacement returns the least fee that replaces another everywhere: nodes require a tenth more of both fees, some
// an eighth, some strictly more.
func minReplacement(old *big.Int) *big.Int {
	eighth := new(big.Int).Add(old, big.NewInt(7))
	eighth.Rsh(eighth, 3)
	return eighth.Add(old, greatest(eighth, big.NewInt(1)))
}

// nearlyEqual reports whether two fees differ by less than an eighth.
func (f fees) nearlyEqual(other fees) bool {
	near := func(a, b *big.Int) bool {
		return greatest(a, b).Cmp(minReplacement(least(a, b))) < 0 || a.Cmp(b) == 0
	}
	return near(f.cap, other.cap) && near(f.tip, other.tip)
}

// median returns the median of some numbers, or nil for an empty list.
func median(all []*big.Int) *big.Int {
	if len(all) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(all), (*big.Int).Cmp)
	return sorted[len(sorted)/2]
}

// weiPerGwei is a billionth of a chain's native coin in wei.
const weiPerGwei = 1_000_000_000

func wei(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// inWei converts gwei to wei.
func inWei(gwei uint64) *big.Int { return new(big.Int).Mul(wei(gwei), big.NewInt(weiPerGwei)) }

// inGwei converts wei to gwei, rounded up, and limited to the range of the database's column.
func inGwei(amount *big.Int) int64 {
	n := new(big.Int).Add(amount, big.NewInt(weiPerGwei-1))
	n.Quo(n, big.NewInt(weiPerGwei))
	if !n.IsInt64() || n.Int64() > maxGwei {
		return maxGwei
	}
	return n.Int64()
}

// maxGwei bounds the recorded cost of one transaction, so that a thousand of them can be added up.
const maxGwei = 1 << 53

// costOf returns the cost of gas at a price, in wei.
func costOf(gas uint64, price *big.Int) *big.Int { return new(big.Int).Mul(wei(gas), price) }

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greatest(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
