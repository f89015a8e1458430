package config_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/config"
)

// TestAllowListDelay reads the delay of a change of allowed addresses.
func TestAllowListDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"{}": config.DefaultAllowListDelay, "{allowListDelay: 1h}": time.Hour, "{allowListDelay: 720h}": 720 * time.Hour, "{allowListDelay: 90m}": 90 * time.Minute,
		"{allowListDelay: 59m}": 0, "{allowListDelay: 721h}": 0, "{allowListDelay: 0s}": 0, "{allowListDelay: -24h}": 0, "{allowListDelay: 24}": 0,
	} {
		cfg, err := config.Parse([]byte(full+"access: "+text+"\n"), secrets)
		if (err == nil) != (want != 0) || err == nil && cfg.AllowListDelay != want {
			t.Errorf("%s: %s, %v; want %s", text, cfg.AllowListDelay, err, want)
		}
	}
}
