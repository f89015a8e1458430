package config_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/webhook"
)

// A secret whose key can be guessed is as good as none.
func TestShortSecret(t *testing.T) {
	bytes := func(n int) []byte { return []byte(strings.Repeat("k", n)) }
	for name, c := range map[string]struct {
		secret string
		ok     bool
	}{
		"the prefix alone":       {webhook.SecretPrefix, false},
		"base64, too short":      {webhook.SecretPrefix + base64.StdEncoding.EncodeToString(bytes(config.MinSecret-1)), false},
		"base64, long enough":    {webhook.SecretPrefix + base64.StdEncoding.EncodeToString(bytes(config.MinSecret)), true},
		"no base64, too short":   {webhook.SecretPrefix + strings.Repeat("-", config.MinSecret-1-len(webhook.SecretPrefix)), false},
		"no base64, long enough": {webhook.SecretPrefix + strings.Repeat("-", config.MinSecret-len(webhook.SecretPrefix)), true},
		"bytes, too short":       {string(bytes(config.MinSecret - 1)), false},
		"bytes, long enough":     {string(bytes(config.MinSecret)), true},
	} {
		src := secrets
		src.Env = func(name string) (string, bool) {
			if name == "SHOP_SECRET" {
				return c.secret, true
			}
			return secrets.Env(name)
		}
		_, err := config.Parse([]byte(full), src)
		if c.ok != (err == nil) || !c.ok && !strings.Contains(err.Error(), "merchants[0].webhookSecret: is too short: its key has ") {
			t.Errorf("%s: %v, want accepted %t", name, err, c.ok)
		}
	}
}
