package txmgr

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/quittance/quittance/internal/chain"
)

// fees are what EIP-1559 has a transaction offer, in wei for a unit of gas.
type fees struct {
	cap *big.Int // at most, in all
	tip *big.Int // at most, above the base fee
}

// poolTipWei is the least tip that go-ethereum's pool takes, in wei for a unit of
// gas, however calm the chain is.
const poolTipWei = 1

// marketFees returns a tip within the limits, and a fee cap that suffices until the
// base fee has doubled, within the limits' maximum. It fails when even the base
// fee is above that.
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

// stuckLimit returns the highest fee cap for a transaction that is stuck at market
// fees f: twice their cap.
func (f fees) stuckLimit() *big.Int { return new(big.Int).Lsh(f.cap, 1) }

// bump returns fees that replace a transaction with the old ones in every node's pool,
// or the market's if they are higher. ok is false when that exceeds the limits.
func bump(old, market, limit fees) (fees, bool) {
	f := fees{cap: minReplacement(old.cap), tip: minReplacement(old.tip)}
	if f.cap.Cmp(limit.cap) > 0 || f.tip.Cmp(limit.tip) > 0 {
		return old, false
	}
	f.cap = least(greatest(f.cap, market.cap), limit.cap)
	f.tip = least(least(greatest(f.tip, market.tip), limit.tip), f.cap)
	return f, true
}

// minReplacement returns the least fee that replaces another everywhere: nodes want a
// tenth more of both fees, some an eighth, some strictly more.
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

// median returns the median of some numbers, or nil for none.
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

// inWei returns so many gwei in wei.
func inWei(gwei uint64) *big.Int { return new(big.Int).Mul(wei(gwei), big.NewInt(weiPerGwei)) }

// inGwei returns so many wei in gwei, rounded up, and at most what the database
// holds.
func inGwei(amount *big.Int) int64 {
	n := new(big.Int).Add(amount, big.NewInt(weiPerGwei-1))
	n.Quo(n, big.NewInt(weiPerGwei))
	if !n.IsInt64() || n.Int64() > maxGwei {
		return maxGwei
	}
	return n.Int64()
}

// maxGwei bounds what is recorded of one transaction's cost: a thousand of them
// can be added up.
const maxGwei = 1 << 53

// costOf returns what so much gas costs, in wei.
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
