package chain

// SpendLimits bound what the writer of a chain may spend, in its native coin. A
// limit that is 0 is that of DefaultSpendLimits.
type SpendLimits struct {
	MaxFeeWei  uint64 // for a unit of gas, tip included; never exceeded
	MinTipWei  uint64 // for a unit of gas: what is offered at least above the base fee
	MaxTipWei  uint64 // for a unit of gas: what is offered at most above the base fee
	PerTxGwei  uint64 // what one transaction may cost at most, in billionths of the coin
	PerDayGwei uint64 // what all transactions of any 24 hours may cost together, in billionths of the coin
}

// Units of spend limits.
const (
	gwei = 1_000_000_000 // in wei
	coin = 1_000_000_000 // in gwei
)

// MaxPerTxGwei is the most that a transaction may be allowed to cost: nodes of
// go-ethereum's family refuse to take one that could cost a whole coin
// (--rpc.txfeecap).
const MaxPerTxGwei = 9 * coin / 10

// DefaultSpendLimits returns the limits of a network that is not built in.
func DefaultSpendLimits() SpendLimits {
	return SpendLimits{MaxFeeWei: 100 * gwei, MaxTipWei: 2 * gwei, PerTxGwei: coin / 10, PerDayGwei: coin / 2}
}

// The limits of the networks that are built in: several times of what is usual
// there, so that a commitment waits out the dearest hours, and a budget that an
// operator can lose without regret.
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

	// Money is worth nothing there.
	Local: {MaxFeeWei: 1000 * gwei, MinTipWei: gwei, MaxTipWei: 200 * gwei, PerTxGwei: MaxPerTxGwei, PerDayGwei: 1000 * coin},
}

// rollup are the limits of a rollup whose fees are paid in ether.
func rollup(minTipWei, maxTipWei uint64) SpendLimits {
	return SpendLimits{MaxFeeWei: 2 * gwei, MinTipWei: minTipWei, MaxTipWei: maxTipWei, PerTxGwei: coin / 50, PerDayGwei: coin / 20}
}

// testnet are the limits of a network whose ether comes from a faucet.
func testnet(minTipWei uint64) SpendLimits {
	return SpendLimits{MaxFeeWei: 100 * gwei, MinTipWei: minTipWei, MaxTipWei: 2 * gwei, PerTxGwei: coin / 2, PerDayGwei: 2 * coin}
}

// OrDefault returns the limits with those of DefaultSpendLimits in place of 0,
// except for MinTipWei.
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
