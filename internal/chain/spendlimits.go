package chain

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
