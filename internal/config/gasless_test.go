package config_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/config"
)

// TestGasless wants authorizations to be off by default, and the default limits if the file has no limits.
func TestGasless(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]*config.Gasless{
		"":                         nil,
		"gasless: {perPayer: 5}":   nil,
		"gasless: {enabled: off}":  nil,
		"gasless: {enabled: on}":   {PerMerchant: 1000, PerPayer: 20, PerDay: 5000},
		"gasless: {enabled: true}": {PerMerchant: 1000, PerPayer: 20, PerDay: 5000},
		"gasless: {enabled: on, perMerchant: 1, perPayer: 1000000, perDay: 3}": {PerMerchant: 1, PerPayer: 1_000_000, PerDay: 3},
	} {
		cfg, err := config.Parse([]byte(strings.Replace(full, "    startBlock: 0\n", "    startBlock: 0\n    "+setting+"\n", 1)), secrets)
		if err != nil {
			t.Errorf("%s: %v", setting, err)
			continue
		}
		got := cfg.Chains[0].Gasless
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v, want %+v", setting, got, want)
		}
	}
}
