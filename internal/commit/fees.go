package commit

import (
	"fmt"
	"math/big"
)

// fees are what EIP-1559 has a transaction offer, in wei for a unit of gas.
type fees struct {
	cap *big.Int // at most, in all
	tip *big.Int // at most, above the base fee
}

// marketFees returns the suggested tip, and a cap that holds while the base fee
// doubles, both within most. It fails when even the base fee is above that.
func marketFees(base, tip, most *big.Int) (fees, error) {
	if base.Cmp(most) > 0 {
		return fees{}, fmt.Errorf("%w: the base fee is %s wei for a unit of gas, and at most %s is paid", errDear, base, most)
	}
	f := fees{cap: new(big.Int).Lsh(base, 1), tip: tip}
	f.cap = least(f.cap.Add(f.cap, tip), most)
	f.tip = least(tip, f.cap)
	return f, nil
}

// raised returns fees that replace a transaction with the old ones in every
// node's pool, or better ones where the market has them, and false when that
// takes more than most.
func raised(old, market fees, most *big.Int) (fees, bool) {
	f := fees{cap: replacing(old.cap), tip: replacing(old.tip)}
	if f.cap.Cmp(most) > 0 {
		return old, false
	}
	f.cap = least(greatest(f.cap, market.cap), most)
	f.tip = least(greatest(f.tip, market.tip), f.cap)
	return f, true
}

// replacing returns the least that counts as a higher fee everywhere: nodes
// want a tenth more of both fees, some want an eighth, some strictly more.
func replacing(old *big.Int) *big.Int {
	eighth := new(big.Int).Add(old, big.NewInt(7))
	eighth.Rsh(eighth, 3)
	return eighth.Add(old, greatest(eighth, big.NewInt(1)))
}

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
