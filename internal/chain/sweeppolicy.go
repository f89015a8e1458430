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

// SpendLimits bound the transaction manager's spending on a chain, in its native coin. A limit of 0 means the limit of
// DefaultSpendLimits.
type SpendLimits struct {
	MaxFeeWei  uint64 // per unit of gas, tip included; never exceeded
	MinTipWei  uint64 // per unit of gas: the lowest offer above the base fee
	MaxTipWei  uint64 // per unit of gas: the highest offer above the base fee
	PerTxGwei  uint64 // highest cost of one transaction, in billionths of the coin
	PerDayGwei uint64 // highest cost of all transactions in any 24 hours, in billionths of the coin
}

// Units of spend limits.
const (
	gwei = 1_000_000_000 // in wei
	coin = 1_000_000_000 // in gwei
)

// MaxPerTxGwei is the highest limit of a transaction's cost: go-ethereum and its forks refuse a transaction that could
// cost a whole coin (--rpc.txfeecap).
const MaxPerTxGwei = 9 * coin / 10

// DefaultSpendLimits returns the limits of networks that are not built in.
func DefaultSpendLimits() SpendLimits {
	return SpendLimits{MaxFeeWei: 100 * gwei, MaxTipWei: 2 * gwei, PerTxGwei: coin / 10, PerDayGwei: coin / 2}
}

// OrDefault returns the limits, with a limit of DefaultSpendLimits for each 0 except MinTipWei.
func (l SpendLimits) OrDefault() SpendLimits {
	d := DefaultSpendLimits()
	for _, limit := range []struct{ is, or *uint64 }{
		{&l.MaxFeeWei, &d.MaxFeeWei}, {&l.MaxTipWei, &d.MaxTipWei}, {&l.PerTxGwei, &d.PerTxGwei}, {&l.PerDayGwei, &d.PerDayGwei},
	} {
		if *limit.is == 0 {
			*limit.is = *limit.or
		}
	}
	return l
}
