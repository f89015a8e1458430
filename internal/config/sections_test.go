package config_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/test/expect"
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

func TestLog(t *testing.T) {
	for text, want := range map[string]config.Log{
		"{}":                           {Format: config.LogText, Level: slog.LevelInfo},
		"{format: text, level: debug}": {Format: config.LogText, Level: slog.LevelDebug},
		"{format: json, level: warn}":  {Format: config.LogJSON, Level: slog.LevelWarn},
		"{level: error}":               {Format: config.LogText, Level: slog.LevelError},
	} {
		cfg, err := config.Parse([]byte(full+"\nlog: "+text), secrets)
		if err != nil || cfg.Log != want {
			t.Errorf("%s is read as %+v, %v; want %+v", text, cfg.Log, err, want)
		}
	}
	for _, text := range []string{"{format: xml}", "{format: JSON}", "{level: trace}", "{level: 4}", "{levels: info}"} {
		if cfg, err := config.Parse([]byte(full+"\nlog: "+text), secrets); err == nil {
			t.Errorf("%s is read as %+v; want an error", text, cfg.Log)
		}
	}
}

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

// TestGasless wants authorizations to be off by default, and the default limits if the file has no limits.
func TestGasless(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]*config.Gasless{
		"":                        nil,
		"gasless: {perPayer: 5}":  nil,
		"gasless: {enabled: off}": nil,
		"gasless: {enabled: on}":  {PerMerchant: 1000, PerPayer: 20, PerDay: 5000},
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

func TestOIDC(t *testing.T) {
	t.Parallel()
	const office = "publicUrl: https://pay.example\n"
	for setting, want := range map[string]identity.Config{
		"{issuer: 'https://id.example/realm/', clientId: shop}":                                      {Issuer: "https://id.example/realm/", ClientID: "shop", Name: "id.example"},
		"{issuer: 'http://localhost:9998', clientId: shop, clientSecretEnv: ONE, name: 'Our staff'}": {Issuer: "http://localhost:9998", ClientID: "shop", ClientSecret: "x", Name: "Our staff"},
	} {
		cfg, err := config.Parse([]byte(minimal+office+"access: {oidc: "+setting+"}\n"), secrets)
		if err != nil {
			t.Errorf("%s: %v", setting, err)
		} else if diff := cmp.Diff(&want, cfg.OIDC); diff != "" {
			t.Errorf("%s:\n%s", setting, diff)
		}
	}
	for setting, want := range map[string]string{
		"{clientId: shop}": "access.oidc.issuer: is \"\"",
		"{issuer: 'http://id.example', clientId: shop}":                          "access.oidc.issuer: is \"http://id.example\"; want an https URL",
		"{issuer: 'https://me:hunter2@id.example', clientId: shop}":              "access.oidc.issuer: is",
		"{issuer: 'https://id.example?a=b', clientId: shop}":                     "access.oidc.issuer: is",
		"{issuer: 'https://id.example'}":                                         "access.oidc.clientId: want",
		"{issuer: 'https://id.example', clientId: shop, clientSecretEnv: EMPTY}": "access.oidc.clientSecretEnv: the environment variable EMPTY is empty",
		"{issuer: 'https://id.example', clientId: shop, name: \"a\\u202eb\"}":    "access.oidc.name",
		"{issuer: 'https://id.example', clientId: shop, secret: x}":              "there is no setting",
	} {
		_, err := config.Parse([]byte(minimal+office+"access: {oidc: "+setting+"}\n"), secrets)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
	if _, err := config.Parse([]byte(minimal+"access: {oidc: {issuer: 'https://id.example', clientId: shop}}\n"), secrets); err == nil || !strings.Contains(err.Error(), "needs dashboardUrl") {
		t.Errorf("without dashboardUrl: %v", err)
	}
}

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

func TestSMTP(t *testing.T) {
	t.Parallel()
	from := mail.Address{Name: "Acme receipts", Address: "receipts@pay.example"}
	for setting, want := range map[string]config.SMTP{
		"{host: mail.example, from: Acme receipts <receipts@pay.example>}": {Host: "mail.example", Port: 587, TLS: config.TLSStart, From: from},
		"{host: mail.example, tls: implicit, user: ann, passwordEnv: CIRCLE_SECRET, from: Acme receipts <receipts@pay.example>}": {
			Host: "mail.example", Port: 465, TLS: config.TLSImplicit, User: "ann", Password: providerSecret, From: from},
		"{host: 127.0.0.1, port: 2525, tls: none, from: receipts@pay.example}": {Host: "127.0.0.1", Port: 2525, TLS: config.TLSNone, From: mail.Address{Address: from.Address}},
		"{host: localhost, tls: none, from: receipts@pay.example}":             {Host: "localhost", Port: 25, TLS: config.TLSNone, From: mail.Address{Address: from.Address}},
	} {
		cfg, err := config.Parse([]byte(full+"publicUrl: https://pay.example\nsmtp: "+setting+"\n"), secrets)
		if err != nil {
			t.Errorf("%s: %v", setting, err)
			continue
		}
		expect.NoDiff(t, cmp.Diff(&want, cfg.SMTP), "%s", setting)
	}
	if cfg, err := config.Parse([]byte(full), secrets); err != nil || cfg.SMTP != nil {
		t.Errorf("without the setting: %+v, %v", cfg.SMTP, err)
	}
	for setting, want := range map[string]string{
		"{from: a@b.example}":                                                         "smtp.host: want the name",
		"{host: mail.example}":                                                        "smtp.from: is \"\"; want an address",
		"{host: mail.example, from: pay.example}":                                     "smtp.from: is \"pay.example\"",
		"{host: mail.example, tls: maybe, from: a@b.example}":                         "smtp.tls: is \"maybe\"; want starttls, implicit or none",
		"{host: mail.example, tls: none, from: a@b.example}":                          "smtp.tls: is none, which is for localhost alone",
		"{host: mail.example, port: 0, from: a@b.example}":                            "smtp.port: is \"0\"",
		"{host: mail.example, port: 65536, from: a@b.example}":                        "smtp.port: is \"65536\"",
		"{host: mail.example, user: ann, from: a@b.example}":                          "smtp.password: want either passwordEnv",
		"{host: mail.example, passwordEnv: CIRCLE_SECRET, from: a@b.example}":         "smtp.user: want the name",
		"{host: mail.example, caFile: /none, from: a@b.example}":                      "smtp.caFile: open /none",
		"{host: mail.example, caFile: /run/secrets/node, from: a@b.example}":          "smtp.caFile: /run/secrets/node has no certificate",
		"{host: mail.example, user: ann, passwordEnv: UNSET_NAME, from: a@b.example}": "smtp.passwordEnv: the environment variable UNSET_NAME is not set",
	} {
		_, err := config.Parse([]byte(full+"publicUrl: https://pay.example\nsmtp: "+setting+"\n"), secrets)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), providerSecret) {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
	_, err := config.Parse([]byte(full+"smtp: {host: mail.example, from: a@b.example}\n"), secrets)
	if err == nil || !strings.Contains(err.Error(), "smtp: needs publicUrl") {
		t.Errorf("without publicUrl: %v", err)
	}
}

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

// withNode returns the full configuration with other settings of its last node.
func withNode(node string) string {
	return strings.Replace(full, "[http://127.0.0.1:8545]", "[https://first.example, "+node+"]", 1)
}

// TestNodeSettings reads the properties of a node, and shows it without its secrets.
func TestNodeSettings(t *testing.T) {
	text := withNode("{url: 'https://second.example/hunter2', maxBatch: 7, maxRange: 500, callsPerSecond: 25, headers: [{name: authorization, valueEnv: NOT_A_KEY}, {name: X-Plan, valueFile: /run/secrets/shop}]}")
	cfg, err := config.Parse([]byte(text), secrets)
	expect.OK(t, err)
	want := []chain.NodeSettings{{}, {MaxBatch: 7, MaxRange: 500, CallsPerSecond: 25, Headers: http.Header{"Authorization": {"hunter2"}, "X-Plan": {"whsec_from_the_file"}}}}
	if diff := cmp.Diff(want, cfg.Chains[1].Nodes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"https://first.example", "https://second.example/hunter2"}, cfg.Chains[1].RPC); diff != "" {
		t.Error(diff)
	}
	shown := show(t, text)
	for _, want := range []string{"url: https://second.example/…\n", "maxBatch: 7\n", "maxRange: 500\n", "callsPerSecond: 25\n", "name: authorization\n", "valueEnv: NOT_A_KEY\n", "valueFile: /run/secrets/shop\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it lacks %q:\n%s", want, shown)
		}
	}
	for _, secret := range []string{"hunter2", "whsec_from"} {
		if strings.Contains(shown, secret) {
			t.Errorf("it shows %q:\n%s", secret, shown)
		}
	}
}

// TestNodeSettingsRefuses tries settings just beyond their limits.
func TestNodeSettingsRefuses(t *testing.T) {
	src := secrets
	values := map[string]string{"LONG": strings.Repeat("x", config.MaxHeaderValue), "TOO_LONG": strings.Repeat("x", config.MaxHeaderValue+1), "LINES": "a\r\nHost: b", "TAB": "a\tb"}
	src.Env = func(name string) (string, bool) {
		if v, ok := values[name]; ok {
			return v, true
		}
		return secrets.Env(name)
	}
	headers := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("{name: X-%d, valueEnv: ONE}", i))
		}
		return "headers: [" + strings.Join(all, ", ") + "]"
	}
	header := func(name, env string) string { return "headers: [{name: '" + name + "', valueEnv: " + env + "}]" }
	for settings, want := range map[string]string{
		"callsPerSecond: 1": "", fmt.Sprint("callsPerSecond: ", config.MaxCallsPerSecond): "",
		"callsPerSecond: 0": "rpc[1].callsPerSecond: is \"0\"; want a whole number of 1 to 10000",
		fmt.Sprint("callsPerSecond: ", config.MaxCallsPerSecond+1): "rpc[1].callsPerSecond: is \"10001\"; want a whole number of 1 to 10000",
		"maxBatch: 1": "", fmt.Sprint("maxBatch: ", chain.MaxBatch): "", "maxRange: 1": "", fmt.Sprint("maxRange: ", chain.MaxRange): "",
		"maxBatch: 0": "rpc[1].maxBatch: is \"0\"; want a whole number of 1 to 100",
		fmt.Sprint("maxBatch: ", chain.MaxBatch+1): "rpc[1].maxBatch: is \"101\"; want a whole number of 1 to 100",
		"maxRange: 0": "rpc[1].maxRange: is \"0\"; want a whole number of 1 to 8192",
		fmt.Sprint("maxRange: ", chain.MaxRange+1): "rpc[1].maxRange: is \"8193\"; want a whole number of 1 to 8192",
		headers(config.MaxNodeHeaders):             "",
		headers(config.MaxNodeHeaders + 1):         "rpc[1].headers: has 11; want at most 10",
		header("X-Key", "LONG"):                    "",
		header("X-Key", "TOO_LONG"):                "headers[0].value: is refused",
		header("X-Key", "LINES"):                   "headers[0].value: is refused",
		header("X-Key", "TAB"):                     "headers[0].value: is refused",
		header("X-Key", "NOWHERE"):                 "headers[0].valueEnv: the environment variable NOWHERE is not set",
		header("", "ONE"):                          "headers[0].name: is \"\"; want the name of a header",
		header("X Key", "ONE"):                     "headers[0].name: is \"X Key\"",
		header("X-Key:", "ONE"):                    "headers[0].name: is \"X-Key:\"",
		header("host", "ONE"):                      "headers[0].name: is Host, which the service",
		header("content-type", "ONE"):              "headers[0].name: is Content-Type, which",
		header("proxy-authorization", "ONE"):       "headers[0].name: is Proxy-Authorization, which",
		header("sec-websocket-key", "ONE"):         "headers[0].name: is Sec-Websocket-Key, which",
		"headers: [{name: X-A, valueEnv: ONE}, {name: x-a, valueEnv: ONE}]": "headers[1].name: is X-A, as one before it",
		"headers: [{name: X-A}]":                "headers[0].value: want either valueEnv",
		"headers: [{name: X-A, value: secret}]": "there is no setting \"value\" here",
		"urlEnv: NODE_URL":                      "want one of url, urlEnv and urlFile",
		"unknown: 1":                            "there is no setting \"unknown\" here",
		"maxRangee: 1":                          "there is no setting \"maxRangee\" here; did you mean maxRange?",
	} {
		_, err := config.Parse([]byte(withNode("{url: 'https://second.example', "+settings+"}")), src)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v; want %q", settings, err, want)
		}
	}
}
