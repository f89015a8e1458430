package config_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/config"
)

// merchantWith is a configuration with other settings of the merchant.
func merchantWith(settings string) []byte {
	return []byte(strings.Replace(minimal, "{id: shop}", "{id: shop, "+settings+"}", 1))
}

// TestWebhookURLs refuses URLs to which events cannot be sent.
func TestWebhookURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://shop.example/hook ": "merchants[0].webhookUrl: has a blank", "https://shop.example:99999/hook": "merchants[0].webhookUrl: has the port 99999; want 1 to 65535",
	} {
		if _, err := config.Parse(merchantWith("webhookUrl: '"+url+"', webhookSecretEnv: SHOP_SECRET"), secrets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	if _, err := config.Parse([]byte(minimal+"publicUrl: https://pay.example.com:99999\n"), secrets); err == nil || !strings.Contains(err.Error(), "publicUrl: has the port 99999") {
		t.Errorf("a public URL: %v", err)
	}
}
