package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
)

// sweepFile configures when the deposits of a chain are swept.
type sweepFile struct {
	Policy   scalar        `yaml:"policy"`
	Amount   scalar        `yaml:"amount"`
	GasPrice scalar        `yaml:"gasPriceGwei"`
	At       scalar        `yaml:"at"`
	MaxCost  sweepCostFile `yaml:"maxCost"`
}

// sweepCostFile bounds the cost of sweeping a deposit.
type sweepCostFile struct {
	Percent   scalar `yaml:"percent"`
	CoinPrice scalar `yaml:"coinPrice"`
}

// Limits of these settings, in billionths.
const (
	// maxSweepAmount bounds the amount of the policy above: 9,000,000 units.
	maxSweepAmount = 9_000_000_000_000_000
	// maxSweepPercent bounds the part of a deposit that sweeping it may cost, which may be all of it.
	maxSweepPercent = 100_000_000_000
	// maxCoinPrice bounds the price of a network's coin: 9,000,000 units.
	maxCoinPrice = 9_000_000_000_000_000
)

// defaultSweepTime is the time of day of the policy daily by default.
const defaultSweepTime = "00:00"

// sweepPolicy reads a policy; its default is unset. Each policy refuses the settings of other
// policies.
func (r *resolver) sweepPolicy(path string, f *sweepFile, unset chain.SweepTime) chain.SweepPolicy {
	f.Policy = cmp.Or(f.Policy, scalar(unset))
	p := chain.SweepPolicy{When: chain.SweepTime(f.Policy)}
	if !slices.Contains(chain.SweepTimes, p.When) {
		r.fail(path+".policy", "is %q; want at-once, above, cheap-gas, daily or never", f.Policy)
		return p
	}
	for _, setting := range []struct {
		name string
		text scalar
		of   chain.SweepTime
	}{{"amount", f.Amount, chain.SweepAbove}, {"gasPriceGwei", f.GasPrice, chain.SweepCheapGas}, {"at", f.At, chain.SweepDaily}} {
		if setting.text != "" && p.When != setting.of {
			r.fail(path+"."+setting.name, "is a setting of the policy %s, and the policy is %s", setting.of, p.When)
		}
	}
	switch p.When {
	case chain.SweepAbove:
		p.Amount = r.billionths(path+".amount", f.Amount, maxSweepAmount)
	case chain.SweepCheapGas:
		p.GasPriceWei = r.billionths(path+".gasPriceGwei", f.GasPrice, maxFeeWei)
	case chain.SweepDaily:
		f.At = cmp.Or(f.At, defaultSweepTime)
		p.At = r.timeOfDay(path+".at", f.At)
	case chain.SweepAtOnce, chain.SweepNever: // have no setting
	}
	if f.MaxCost != (sweepCostFile{}) {
		if p.When == chain.SweepNever {
			r.fail(path+".maxCost", "is no setting of the policy never")
		}
		p.MaxCost = chain.SweepCost{
			Percent:   r.billionths(path+".maxCost.percent", f.MaxCost.Percent, maxSweepPercent),
			CoinPrice: r.billionths(path+".maxCost.coinPrice", f.MaxCost.CoinPrice, maxCoinPrice),
		}
	}
	return p
}

// timeOfDay reads a time of day, such as 03:30, as the time since midnight.
func (r *resolver) timeOfDay(path string, text scalar) time.Duration {
	at, err := time.Parse("15:04", string(text))
	if err != nil || clock.Format(at, time.UTC, "15:04") != string(text) { // Parse also takes 3:30
		r.fail(path, "is %q; want a time of day in UTC, such as \"03:30\"", text)
		return 0
	}
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
}
