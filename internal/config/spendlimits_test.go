package config_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
)

// writing is a configuration of the chain base with settings of its writer.
func writing(settings string) string {
	return "merchants: [{id: shop}]\nchains: [{chainKey: base, rpc: [\"http://127.0.0.1:8545\"], writer: " + settings + "}]\n"
}

func TestSpendLimits(t *testing.T) {
	base, _ := chain.Lookup("base")
	for settings, change := range map[string]func(*chain.SpendLimits){
		"{}":                func(*chain.SpendLimits) {},
		"{maxFeeGwei: 1.5}": func(p *chain.SpendLimits) { p.MaxFeeWei = 1_500_000_000 },
		"{perDay: 0.25}":    func(p *chain.SpendLimits) { p.PerDayGwei = 250_000_000 },
		"{perDay: 1000000}": func(p *chain.SpendLimits) { p.PerDayGwei = 1_000_000_000_000_000 },
		"{minTipGwei: 0.000000001, maxTipGwei: 0.02}": func(p *chain.SpendLimits) { p.MinTipWei, p.MaxTipWei = 1, 20_000_000 },
		"{perTransaction: 0.9, perDay: 2}":            func(p *chain.SpendLimits) { p.PerTxGwei, p.PerDayGwei = 900_000_000, 2_000_000_000 },
	} {
		want := base.Limits
		change(&want)
		cfg, err := config.Parse([]byte(writing(settings)), secrets)
		if err != nil {
			t.Errorf("%s: %v", settings, err)
		} else if got := cfg.Chains[0].Limits; got != want {
			t.Errorf("%s: %+v, want %+v", settings, got, want)
		}
	}
	for settings, want := range map[string]string{
		"{maxFeeGwei: 0}":        "writer.maxFeeGwei: is \"0\"; want a number above 0",
		"{maxFeeGwei: 1e3}":      "writer.maxFeeGwei",
		"{maxFeeGwei: 1000001}":  "up to 1000000.0",
		"{perDay: -1}":           "writer.perDay",
		"{perDay: .5}":           "writer.perDay",
		"{perDay: 0.0000000001}": "at most 9 decimals",
		"{perTransaction: 1}":    "up to 0.9",
		"{perTransaction: 0.5}":  "perTransaction at most perDay",
		"{minTipGwei: 1}":        "out of order",
		"{maxTipGwei: 3}":        "out of order",
		"{perWeek: 1}":           "perWeek",
	} {
		if _, err := config.Parse([]byte(writing(settings)), secrets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %s", settings, err, want)
		}
	}
}
