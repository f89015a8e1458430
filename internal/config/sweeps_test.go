package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
)

// sweeping is a configuration of the chain base with a sweep policy.
func sweeping(policy string) string {
	return "merchants: [{id: shop}]\nchains: [{chainKey: base, rpc: [\"http://127.0.0.1:8545\"], sweep: " + policy + "}]\n"
}

func TestSweepPolicy(t *testing.T) {
	for policy, want := range map[string]chain.SweepPolicy{
		"{}":                                                   {When: chain.SweepDaily},
		"{policy: at-once}":                                    {When: chain.SweepAtOnce},
		"{policy: above, amount: 12.5}":                        {When: chain.SweepAbove, Amount: 12_500_000_000},
		"{policy: above, amount: 9000000}":                     {When: chain.SweepAbove, Amount: 9_000_000_000_000_000},
		"{policy: cheap-gas, gasPriceGwei: 0.02}":              {When: chain.SweepCheapGas, GasPriceWei: 20_000_000},
		"{policy: daily, at: \"23:59\"}":                       {When: chain.SweepDaily, At: 24*time.Hour - time.Minute},
		"{policy: daily, at: 03:30}":                           {When: chain.SweepDaily, At: 3*time.Hour + 30*time.Minute},
		"{policy: never}":                                      {When: chain.SweepNever},
		"{maxCost: {percent: 0.5, coinPrice: 2500}}":           {When: chain.SweepDaily, MaxCost: chain.SweepCost{Percent: 500_000_000, CoinPrice: 2_500_000_000_000}},
		"{maxCost: {percent: 100, coinPrice: 9e0}}":            {},
		"{policy: weekly}":                                     {},
		"{policy: above}":                                      {},
		"{policy: above, amount: 0}":                           {},
		"{policy: above, amount: 9000000.1}":                   {},
		"{policy: above, amount: 1, at: \"03:00\"}":            {},
		"{policy: at-once, amount: 1}":                         {},
		"{policy: cheap-gas}":                                  {},
		"{policy: daily, at: \"24:00\"}":                       {},
		"{policy: daily, at: \"3:00\"}":                        {},
		"{policy: daily, gasPriceGwei: 1}":                     {},
		"{policy: never, maxCost: {percent: 1, coinPrice: 1}}": {},
		"{maxCost: {percent: 1}}":                              {},
		"{maxCost: {coinPrice: 1}}":                            {},
		"{maxCost: {percent: 100.1, coinPrice: 1}}":            {},
		"{every: hour}":                                        {},
	} {
		cfg, err := config.Parse([]byte(sweeping(policy)), secrets)
		switch {
		case want == chain.SweepPolicy{}:
			if err == nil || !strings.Contains(err.Error(), "sweep") && !strings.Contains(err.Error(), "every") {
				t.Errorf("%s: %v, want an error that names the setting", policy, err)
			}
		case err != nil:
			t.Errorf("%s: %v", policy, err)
		case cfg.Chains[0].Sweep != want:
			t.Errorf("%s: %+v, want %+v", policy, cfg.Chains[0].Sweep, want)
		}
	}
}

// TestOperatorKeyForDepositsAlone configures an operator key together with the contracts that use it.
func TestOperatorKeyForDepositsAlone(t *testing.T) {
	const contract = "0x82308126a502b20c413D6e288B00f5E16005b1DA"
	for contracts, ok := range map[string]bool{"registry: " + contract: true, "depositFactory: " + contract: true, "authorizationRelay: " + contract: false} {
		text := "merchants: [{id: shop}]\nchains: [{chainKey: base, rpc: [\"http://127.0.0.1:8545\"], operatorKeyEnv: OPERATOR_KEY, " + contracts + "}]\n"
		_, err := config.Parse([]byte(text), secrets)
		if ok && err != nil || !ok && (err == nil || !strings.Contains(err.Error(), "chains[0].registry")) {
			t.Errorf("%s: %v", contracts, err)
		}
	}
}
