package chain

import (
	"cmp"
	"math/big"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// SweepTime is when the transaction manager sweeps deposits.
type SweepTime string

// The times of sweeping.
const (
	SweepAtOnce   SweepTime = "at-once"   // as soon as the payment is final
	SweepAbove    SweepTime = "above"     // deposits that hold at least an amount
	SweepCheapGas SweepTime = "cheap-gas" // while gas costs at most a price
	SweepDaily    SweepTime = "daily"     // once a day
	SweepNever    SweepTime = "never"     // only on command
)

// SweepTimes are all times of sweeping.
var SweepTimes = []SweepTime{SweepAtOnce, SweepAbove, SweepCheapGas, SweepDaily, SweepNever}

// SweepPolicy decides which deposits of a chain are swept without a command, and when.
type SweepPolicy struct {
	When        SweepTime     // empty means SweepDaily
	Amount      uint64        // with SweepAbove: in billionths of a unit of the token
	GasPriceWei uint64        // with SweepCheapGas: the base fee and the tip for a unit of gas
	At          time.Duration // with SweepDaily: the time of day, in UTC
	MaxCost     SweepCost
}

// Time returns when the policy sweeps.
func (p SweepPolicy) Time() SweepTime { return cmp.Or(p.When, SweepDaily) }

// SweepCost bounds what sweeping a deposit may cost. The zero value sets no bound.
type SweepCost struct {
	Percent   uint64 // percentage of the deposit, in billionths of a percent
	CoinPrice uint64 // price of the network's coin, in billionths of a unit of the token
}

// billion is the number of billionths.
const billion = 1_000_000_000

// Least returns the smallest amount of a token that the policy sweeps if a sweep costs costWei. It is zero if there is
// no lower bound, and ok is false if no amount is large enough.
func (p SweepPolicy) Least(t Token, costWei *big.Int) (least invoice.Amount, ok bool) {
	billionths := new(big.Int)
	if p.When == SweepAbove {
		billionths.SetUint64(p.Amount)
	}
	if p.MaxCost != (SweepCost{}) {
		// wei × price is in 10^-18 billionths; a percentage in billionths is in 10^-11.
		bound := new(big.Int).Mul(costWei, new(big.Int).SetUint64(p.MaxCost.CoinPrice))
		bound.Mul(bound, big.NewInt(100*billion))
		bound = ceilQuo(bound, new(big.Int).Mul(new(big.Int).SetUint64(p.MaxCost.Percent), big.NewInt(coin*gwei)))
		if billionths.Cmp(bound) < 0 {
			billionths = bound
		}
	}
	minor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Decimals)), nil)
	minor = ceilQuo(minor.Mul(minor, billionths), big.NewInt(billion))
	if minor.BitLen() > 256 {
		return invoice.Amount{}, false
	}
	return invoice.AmountFromBytes([32]byte(minor.FillBytes(make([]byte, 32)))), true
}

// ceilQuo returns a/b, rounded up.
func ceilQuo(a, b *big.Int) *big.Int {
	q, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// Boundary returns the newest time, not after now, at which daily sweeping began.
func (p SweepPolicy) Boundary(now time.Time) time.Time {
	now = now.UTC()
	at := now.Truncate(24 * time.Hour).Add(p.At)
	if at.After(now) {
		at = at.Add(-24 * time.Hour)
	}
	return at
}
