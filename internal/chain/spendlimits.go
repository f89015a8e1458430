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

// The limits of the built-in networks: several times the usual fees there, so that a commitment only waits during the
// most expensive hours, and a daily budget that an operator can afford to lose.
var spendLimits = map[string]SpendLimits{
	"ethereum":  {MaxFeeWei: 50 * gwei, MinTipWei: gwei / 100, MaxTipWei: 2 * gwei, PerTxGwei: coin / 10, PerDayGwei: coin / 5},
	"base":      rollup(gwei/1000, gwei/10),
	"arbitrum":  rollup(0, gwei/100), // its sequencer ignores tips
	"optimism":  rollup(gwei/1000, gwei/10),
	"polygon":   {MaxFeeWei: 1000 * gwei, MinTipWei: 25 * gwei, MaxTipWei: 200 * gwei, PerTxGwei: MaxPerTxGwei, PerDayGwei: 20 * coin},
	"avalanche": {MaxFeeWei: 100 * gwei, MaxTipWei: 5 * gwei, PerTxGwei: coin / 4, PerDayGwei: 2 * coin},
	"arc":       {MaxFeeWei: 2000 * gwei, MinTipWei: gwei, MaxTipWei: 100 * gwei, PerTxGwei: MaxPerTxGwei, PerDayGwei: 25 * coin},

	"ethereum-sepolia": testnet(gwei / 100),
	"base-sepolia":     testnet(gwei / 1000),
	"arbitrum-sepolia": testnet(0),
	"optimism-sepolia": testnet(gwei / 1000),
	"polygon-amoy":     {MaxFeeWei: 1000 * gwei, MinTipWei: 25 * gwei, MaxTipWei: 200 * gwei, PerTxGwei: MaxPerTxGwei, PerDayGwei: 20 * coin},
	"avalanche-fuji":   {MaxFeeWei: 100 * gwei, MaxTipWei: 5 * gwei, PerTxGwei: coin / 4, PerDayGwei: 2 * coin},
	"arc-testnet":      {MaxFeeWei: 2000 * gwei, MinTipWei: gwei, MaxTipWei: 100 * gwei, PerTxGwei: MaxPerTxGwei, PerDayGwei: 25 * coin},

	// The development chain's money has no value.
	Local: {MaxFeeWei: 1000 * gwei, MinTipWei: gwei, MaxTipWei: 200 * gwei, PerTxGwei: MaxPerTxGwei, PerDayGwei: 1000 * coin},
}

// rollup returns the limits of a rollup with fees in ether.
func rollup(minTipWei, maxTipWei uint64) SpendLimits {
	return SpendLimits{MaxFeeWei: 2 * gwei, MinTipWei: minTipWei, MaxTipWei: maxTipWei, PerTxGwei: coin / 50, PerDayGwei: coin / 20}
}

// testnet returns the limits of a network with ether from a faucet.
func testnet(minTipWei uint64) SpendLimits {
	return SpendLimits{MaxFeeWei: 100 * gwei, MinTipWei: minTipWei, MaxTipWei: 2 * gwei, PerTxGwei: coin / 2, PerDayGwei: 2 * coin}
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
