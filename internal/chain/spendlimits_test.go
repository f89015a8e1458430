package chain_test

import (
	"testing"

	"github.com/quittance/quittance/internal/chain"
)

// TestSpendLimits compares the limits of the built-in networks with each other.
func TestSpendLimits(t *testing.T) {
	all := chain.Builtin()
	all = append(all, chain.Chain{Key: "of one's own", Limits: chain.DefaultSpendLimits()})
	for _, c := range all {
		p := c.Limits
		if p != p.OrDefault() {
			t.Errorf("%s lacks a limit: %+v", c.Key, p)
		}
		if p.MinTipWei > p.MaxTipWei || p.MaxTipWei > p.MaxFeeWei || p.PerTxGwei > p.PerDayGwei || p.PerTxGwei > chain.MaxPerTxGwei {
			t.Errorf("%s has limits out of order: %+v", c.Key, p)
		}
		// 200 commitments take 5,000,000 gas.
		if most := 5_000_000 * (p.MaxFeeWei / 100); most > 1_000_000_000*p.PerDayGwei && c.Key != chain.Local {
			t.Errorf("%s: at a hundredth of the highest fee a transaction is above the daily budget", c.Key)
		}
	}
}
