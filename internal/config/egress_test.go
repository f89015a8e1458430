package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestEgressOfWebhooks reads the private CA, the proxy and the headers of webhooks.
func TestEgressOfWebhooks(t *testing.T) {
	t.Parallel()
	src := withPair(t)
	src.Env = func(name string) (string, bool) {
		return map[string]string{"PROXY": "http://user:hunter2@proxy.internal:3128", "TOKEN": "Bearer hunter2", "HOOK": "whsec_c2hvcCBzaG9wIHNob3AgISE="}[name], name != "NOWHERE"
	}
	text := strings.Replace(minimal, "{id: shop}", "{id: shop, webhookUrl: 'https://shop.example', webhookSecretEnv: HOOK, webhookHeaders: [{name: Authorization, valueEnv: TOKEN}, {name: X-A, value: a}]}", 1)
	cfg, err := config.Parse([]byte(text+"webhooks: {caFile: /tls/cert, proxy: {urlEnv: PROXY}}\n"), src)
	expect.OK(t, err)
	if !strings.Contains(string(cfg.WebhookCA), "CERTIFICATE") || cfg.WebhookProxy == nil || cfg.WebhookProxy.Host != "proxy.internal:3128" {
		t.Errorf("the CA is %q, the proxy %v", cfg.WebhookCA, cfg.WebhookProxy)
	}
	if want := []access.WebhookHeader{{Name: "Authorization", Value: "Bearer hunter2"}, {Name: "X-A", Value: "a"}}; !slices.Equal(cfg.Merchants["shop"].WebhookHeaders, want) {
		t.Errorf("the headers are %v", cfg.Merchants["shop"].WebhookHeaders)
	}
	if cfg, err = config.Parse([]byte(minimal+"webhooks: {proxy: 'http://proxy.internal:3128'}\n"), src); err != nil || cfg.WebhookProxy.String() != "http://proxy.internal:3128" || cfg.WebhookCA != nil {
		t.Errorf("by its URL: %v, %v", cfg.WebhookProxy, err)
	}
	for setting, want := range map[string]string{
		"caFile: /tls/none":                              "webhooks.caFile: ",
		"caFile: /tls/text":                              "webhooks.caFile: /tls/text has no certificate in PEM",
		"proxy: proxy.internal":                          "webhooks.proxy: is \"proxy.internal\"; want a URL that begins with http:// or https://",
		"proxy: 'socks5://proxy.internal'":               "webhooks.proxy: is ",
		"proxy: 'http://proxy.internal:99999'":           "webhooks.proxy: has the port 99999",
		"proxy: 'http://proxy.internal:3128/x'":          "webhooks.proxy: is \"http://proxy.internal:3128/…\"; want the scheme, the host and the port",
		"proxy: 'http://user:hunter2@proxy.internal:80'": "webhooks.proxy: holds an account; secrets are not written here",
		"proxy: {urlEnv: NOWHERE}":                       "webhooks.proxy.urlEnv: ",
	} {
		if _, err := config.Parse([]byte(minimal+"webhooks: {"+setting+"}\n"), src); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
}

// TestWrongHeaders refuses headers that an endpoint must not have.
func TestWrongHeaders(t *testing.T) {
	t.Parallel()
	const hook = "webhookUrl: 'https://shop.example', webhookSecretEnv: SHOP_SECRET, "
	for settings, want := range map[string]string{
		"webhookHeaders: [{name: X-A, value: a}]":                                    "merchants[0].webhookUrl: is missing, but there are webhookHeaders",
		hook + "webhookHeaders: [{name: X-Service-Event, value: a}]":                 "merchants[0].webhookHeaders[0]: must not be X-Service-Event",
		hook + "webhookHeaders: [{name: X-A}]":                                       "merchants[0].webhookHeaders[0]: X-A must have a value",
		hook + "webhookHeaders: [{name: X-A, value: a, valueEnv: SHOP_SECRET}]":      "merchants[0].webhookHeaders[0]: want one of value, valueEnv and valueFile",
		hook + "webhookHeaders: [{name: X-A, valueEnv: NOWHERE}]":                    "merchants[0].webhookHeaders[0].valueEnv: ",
		hook + "webhookHeaders: [{name: X-A, value: a}, {name: x-a, value: hidden}]": "merchants[0].webhookHeaders[1]: x-a is given twice",
	} {
		if _, err := config.Parse(merchantWith(settings), secrets); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}
