package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
)

// values are the values of a configuration, by the paths of its settings. A path with [] leads to the first entry. nil removes.
type values map[string]any

// outcomes of a start with a changed configuration.
const (
	serves  = ""        // payments are read, and invoices created
	closed  = "closed"  // payments are read, and no invoice is created
	refuses = "refuses" // it does not start
	waits   = "waits"   // it starts, and payments wait for the former configuration
)

// changeStep is a configuration, by its differences from the first one, and the outcome of a start with it.
type changeStep struct {
	set  values
	then string
}

const (
	changingToken   = "0x00000000000000000000000000000000000000c0"
	otherToken      = "0x00000000000000000000000000000000000000c1"
	changingAddress = "0x1100000000000000000000000000000000000000"
	aContract       = "0x00000000000000000000000000000000000000aa"
	otherContract   = "0x00000000000000000000000000000000000000ab"
)

// to returns a step with one setting.
func to(path string, v any, then ...string) changeStep {
	step := changeStep{set: values{path: v}}
	if len(then) > 0 {
		step.then = then[0]
	}
	return step
}

// optional adds a setting, changes it, and removes it. The last step of every change removes it.
func optional(path string, added, changed any) []changeStep {
	return []changeStep{to(path, added), to(path, changed)}
}

// within adds, changes and removes settings together with others that they need.
func within(base values, all ...values) []changeStep {
	steps := make([]changeStep, len(all))
	for i, more := range all {
		steps[i].set = maps.Clone(base)
		maps.Copy(steps[i].set, more)
	}
	return steps
}

// changes has changes of every setting, one after the other: it is added, changed and removed, or changed, removed and
// added if the first configuration has it. listen is not removed, because another program may use the default address,
// and database is not removed, because the service would use another database.
func changes(s *changingService, fresh func(testing.TB) string) map[string][]changeStep {
	all := make(map[string][]changeStep)
	for _, some := range []map[string][]changeStep{serviceChanges(s, fresh), merchantChanges(), mailChanges(s.secrets), screeningChanges(s.T), providerChanges(), chainChanges(s), writerChanges()} {
		maps.Copy(all, some)
	}
	return all
}

func serviceChanges(s *changingService, fresh func(testing.TB) string) map[string][]changeStep {
	readOnly := to("database", map[string]any{"url": s.database, "readOnly": "postgres://127.0.0.1:1/q"})
	if len(s.replicas) < 2 { // on SQLite
		readOnly.then = refuses
	}
	https := values{"doors.public": "https://127.0.0.1:0", "doors.api": "http://localhost:0"}
	acme := values{"tls.acme.hosts": []string{"pay.example.com"}, "tls.acme.directory": "https://127.0.0.1:1/dir"}
	maps.Copy(acme, https)
	files := func(name string) values {
		return values{"tls.certificateFile": s.secrets.path(name + ".pem"), "tls.keyFile": s.secrets.path(name + ".key")}
	}
	return map[string][]changeStep{
		"listen": {to("listen", "localhost:0")}, "doors.public": optional("doors.public", "localhost:0", "127.0.0.1:0"), "doors.api": optional("doors.api", "localhost:0", "127.0.0.1:0"),
		"doors.operator": optional("doors.operator", "localhost:0", "127.0.0.1:0"), "publicUrl": optional("publicUrl", "https://pay.example.com", "https://pay2.example.com"),
		"dashboardUrl":        optional("dashboardUrl", "https://office.example.com", "https://office2.example.com"),
		"tls.certificateFile": within(https, files("pay"), files("pay2")), "tls.keyFile": within(https, files("pay2"), files("pay")),
		"tls.acme.hosts":     within(acme, nil, values{"tls.acme.hosts": []string{"pay2.example.com"}}),
		"tls.acme.directory": within(acme, nil, values{"tls.acme.directory": "https://127.0.0.1:1/other"}),
		"tls.acme.email":     within(acme, values{"tls.acme.email": "a@b.example"}, values{"tls.acme.email": "b@b.example"}, nil),
		"tls.acme.caFile":    within(acme, values{"tls.acme.caFile": s.secrets.path("pay.pem")}, values{"tls.acme.caFile": s.secrets.path("pay2.pem")}, nil),

		"http.trustedProxies":  optional("http.trustedProxies", []string{"10.1.0.0/16"}, []string{"10.2.0.0/16"}),
		"http.forwardedHeader": within(values{"http.trustedProxies": []string{"10.1.0.0/16"}}, values{"http.forwardedHeader": "Forwarded"}, values{"http.forwardedHeader": "X-Forwarded-For"}, nil),
		"http.hosts":           optional("http.hosts", []string{"pay.example.com"}, []string{"pay2.example.com"}),
		"http.stopDelay":       {to("http.stopDelay", "10ms"), to("http.stopDelay", nil)},
		"limits.perOwner":      optional("limits.perOwner", 100, 200), "limits.perAddress": optional("limits.perAddress", 100, 200),
		"log.format": optional("log.format", "json", "text"), "log.level": optional("log.level", "debug", "error"),
		"database": {to("database", fresh(s.T), waits)}, "database.readOnly": {readOnly},

		"webhooks.allow": optional("webhooks.allow", []string{"10.1.0.0/16"}, []string{"10.2.0.0/16"}), "webhooks.caFile": optional("webhooks.caFile", s.secrets.path("pay.pem"), s.secrets.path("pay2.pem")),
		"webhooks.proxy": {to("webhooks.proxy", "http://127.0.0.1:1"), to("webhooks.proxy", nil)}, "webhooks.retention.events": optional("webhooks.retention.events", "2d", "3d"),
		"webhooks.retention.attempts": optional("webhooks.retention.attempts", "2d", "3d"),

		"access.operatorKeyEnv":  {to("access.operatorKeyEnv", "KEY2"), to("access.operatorKeyEnv", nil, closed)},
		"access.operatorKeyFile": within(values{"access.operatorKeyEnv": nil}, values{"access.operatorKeyFile": "key"}, values{"access.operatorKeyFile": "key2"}),
		"access.allowListDelay":  optional("access.allowListDelay", "1h", "2h"),
		"masterKeyEnv":           {to("masterKeyEnv", "MASTER2"), to("masterKeyEnv", nil)}, "masterKeyFile": within(values{"masterKeyEnv": nil}, values{"masterKeyFile": "master"}, values{"masterKeyFile": "master2"}),
		"oldMasterKeys[].masterKeyEnv":  optional("oldMasterKeys", []any{map[string]any{"masterKeyEnv": "MASTER2"}}, []any{map[string]any{"masterKeyEnv": "MASTER3"}}),
		"oldMasterKeys[].masterKeyFile": optional("oldMasterKeys", []any{map[string]any{"masterKeyFile": "master"}}, []any{map[string]any{"masterKeyFile": "master2"}}),
	}
}

func merchantChanges() map[string][]changeStep {
	header := func(v ...string) []any {
		h := make(map[string]any)
		for i := 0; i < len(v); i += 2 {
			h[v[i]] = v[i+1]
		}
		return []any{h}
	}
	headers := func(a, b []any) []changeStep { return optional("merchants[].webhookHeaders", a, b) }
	allowed := func(addresses ...string) (all []any) {
		for _, a := range addresses {
			all = append(all, map[string]any{"chainKey": "house", "address": a})
		}
		return all
	}
	noURL := values{"merchants[].webhookUrl": nil, "merchants[].webhookSecretEnv": nil}
	withoutURL := within(noURL, values{"merchants[].allowedAddresses": allowed(changingAddress)})[0]
	const another = "0x2200000000000000000000000000000000000000"
	provider := values{"providers[].name": "circle", "providers[].secretEnv": "PROVIDER"}
	providers := func(path string, a, b any) []changeStep {
		return within(provider, values{path: a}, values{path: b}, nil)
	}
	return map[string][]changeStep{
		"merchants[]":    {to("merchants", nil, closed)},
		"merchants[].id": {to("merchants[].id", "cafe", closed)},
		"merchants[].webhookUrl": {
			to("merchants[].webhookUrl", "https://shop.example/other"), {set: noURL, then: refuses}, // it could be another company
			to("merchants[].allowedAddresses", allowed(changingAddress)), withoutURL, to("merchants[].allowedAddresses", allowed(changingAddress)),
		},
		"merchants[].webhookSecretEnv":            {to("merchants[].webhookSecretEnv", "SECRET2"), to("merchants[].webhookSecretEnv", nil, refuses)},
		"merchants[].webhookSecretFile":           within(values{"merchants[].webhookSecretEnv": nil}, values{"merchants[].webhookSecretFile": "secret"}, values{"merchants[].webhookSecretFile": "secret2"}),
		"merchants[].webhookHeaders[].name":       headers(header("name", "X-A", "value", "b"), header("name", "X-B", "value", "b")),
		"merchants[].webhookHeaders[].value":      headers(header("name", "X-A", "value", "c"), header("name", "X-A", "value", "d")),
		"merchants[].webhookHeaders[].valueEnv":   headers(header("name", "X-A", "valueEnv", "PASSWORD"), header("name", "X-A", "valueEnv", "PASSWORD2")),
		"merchants[].webhookHeaders[].valueFile":  headers(header("name", "X-A", "valueFile", "secret"), header("name", "X-A", "valueFile", "secret2")),
		"merchants[].optionalEvents":              {to("merchants[].optionalEvents", []string{"payment.unattributed"})},
		"merchants[].tolerance":                   optional("merchants[].tolerance", "50%", "1%"),
		"merchants[].collection":                  optional("merchants[].collection", "deposit", "direct"),
		"merchants[].allowedAddresses[].chainKey": {to("merchants[].allowedAddresses", allowed(changingAddress)), to("merchants[].allowedAddresses", []any{map[string]any{"chainKey": "home", "address": changingAddress}}, refuses)},
		"merchants[].allowedAddresses[].address":  {to("merchants[].allowedAddresses", allowed(changingAddress, another)), to("merchants[].allowedAddresses", allowed(another), closed)},
		"merchants[].returnHosts":                 optional("merchants[].returnHosts", []string{"shop.example"}, []string{"shop2.example"}),
		"merchants[].timezone":                    optional("merchants[].timezone", "Europe/Berlin", "Asia/Tokyo"),
		"merchants[].reminderHours":               optional("merchants[].reminderHours", []int{-24}, []int{72}),
		"merchants[].embedOrigins":                optional("merchants[].embedOrigins", []string{"https://shop.example"}, []string{"https://shop2.example"}),

		"providers[].name":            within(values{"providers[].secretEnv": "PROVIDER"}, values{"providers[].name": "circle"}, values{"providers[].name": "circle2"}),
		"providers[].secretEnv":       within(values{"providers[].name": "circle"}, values{"providers[].secretEnv": "PROVIDER"}, values{"providers[].secretEnv": "PROVIDER2"}),
		"providers[].secretFile":      within(values{"providers[].name": "circle"}, values{"providers[].secretFile": "secret"}, values{"providers[].secretFile": "secret2"}),
		"providers[].otherSecretEnv":  providers("providers[].otherSecretEnv", "SECRET", "SECRET2"),
		"providers[].otherSecretFile": providers("providers[].otherSecretFile", "secret", "secret2"),
		"providers[].chains":          providers("providers[].chains", map[string]any{"BASE": "house"}, map[string]any{"ETH": "house"}),
		"providers[].currencies":      providers("providers[].currencies", map[string]any{"USDX": "USDC"}, map[string]any{"USDY": "USDC"}),
	}
}

func mailChanges(secrets *changingSecrets) map[string][]changeStep {
	smtp := values{"publicUrl": "https://pay.example.com", "smtp.host": "localhost", "smtp.tls": "none", "smtp.from": "A <a@b.example>"}
	account := maps.Clone(smtp)
	maps.Copy(account, values{"smtp.tls": "starttls", "smtp.user": "me", "smtp.passwordEnv": "PASSWORD"})
	return map[string][]changeStep{
		"smtp.host": within(smtp, nil, values{"smtp.host": "127.0.0.1"}), "smtp.port": within(smtp, values{"smtp.port": 2525}, values{"smtp.port": 2526}, nil),
		"smtp.tls":  within(smtp, nil, values{"smtp.tls": "implicit"}, values{"smtp.tls": nil}),
		"smtp.from": within(smtp, nil, values{"smtp.from": "B <b@b.example>"}),
		"smtp.caFile": within(smtp, values{"smtp.tls": "starttls", "smtp.caFile": secrets.path("pay.pem")}, values{"smtp.tls": "starttls", "smtp.caFile": secrets.path("pay2.pem")},
			values{"smtp.tls": "starttls"}),
		"smtp.user":         within(account, nil, values{"smtp.user": "you"}, values{"smtp.user": nil, "smtp.passwordEnv": nil}),
		"smtp.passwordEnv":  within(account, nil, values{"smtp.passwordEnv": "PASSWORD2"}),
		"smtp.passwordFile": within(account, values{"smtp.passwordEnv": nil, "smtp.passwordFile": "secret"}, values{"smtp.passwordEnv": nil, "smtp.passwordFile": "secret2"}),
	}
}

// screeningChanges has a hook that accepts, so that the payments of the steps count.
func screeningChanges(tb testing.TB) map[string][]changeStep {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"verdict":"accept"}`)) }))
	tb.Cleanup(hook.Close)
	base := values{"screening.url": hook.URL, "screening.secretEnv": "SECRET", "screening.mode": "open", "webhooks.allow": []string{"127.0.0.0/8"}}
	off := values{"screening.url": nil, "screening.secretEnv": nil, "screening.mode": nil, "webhooks.allow": nil}
	return map[string][]changeStep{
		"screening.url":       within(base, nil, values{"screening.url": hook.URL + "/other"}, off),
		"screening.mode":      within(base, nil, values{"screening.mode": "closed"}, off),
		"screening.patience":  within(base, values{"screening.patience": "1m"}, values{"screening.patience": "24h"}, nil),
		"screening.secretEnv": within(base, nil, values{"screening.secretEnv": "SECRET2"}, off),
		"screening.secretFile": within(base, values{"screening.secretEnv": nil, "screening.secretFile": "secret"},
			values{"screening.secretEnv": nil, "screening.secretFile": "secret2"}),
	}
}

func providerChanges() map[string][]changeStep {
	oidc := values{"dashboardUrl": "https://office.example.com", "access.oidc.issuer": "https://id.example.com", "access.oidc.clientId": "shop"}
	changed := func(setting string, first, second any) []changeStep {
		return within(oidc, values{setting: first}, values{setting: second})
	}
	return map[string][]changeStep{
		"access.oidc.issuer": changed("access.oidc.issuer", "https://id2.example.com", "https://id3.example.com"), "access.oidc.clientId": changed("access.oidc.clientId", "a", "b"),
		"access.oidc.name":             changed("access.oidc.name", "Example", "Example 2"),
		"access.oidc.clientSecretEnv":  changed("access.oidc.clientSecretEnv", "PASSWORD", "PASSWORD2"),
		"access.oidc.clientSecretFile": changed("access.oidc.clientSecretFile", "secret", "secret2"),
	}
}

func chainChanges(s *changingService) map[string][]changeStep {
	two := values{"chains[].rpc": s.nodes}
	header := func(name, from, value string) []any { return []any{map[string]any{"name": name, from: value}} }
	token := func(currency, address string) map[string]any {
		return map[string]any{"currency": currency, "address": address}
	}
	usdc := token("USDC", changingToken)
	elsewhere := map[string]any{"chainKey": "elsewhere", "chainId": 6, "rpc": []string{"http://127.0.0.1:1"}, "finality": 1, "tokens": []any{usdc}}
	return map[string][]changeStep{
		"chains[]":          {to("chains", []any{elsewhere}, waits)},
		"chains[].tokens[]": {to("chains[].tokens", []any{usdc, token("EURC", otherToken)}), to("chains[].tokens", []any{token("EURC", otherToken)}, closed)},

		"chains[].name":     optional("chains[].name", "Home", "House"),
		"chains[].chainKey": {to("chains[].chainKey", "home", refuses), to("chains[].chainKey", nil, refuses)}, "chains[].chainId": {to("chains[].chainId", 6, refuses), to("chains[].chainId", nil, refuses)},
		"chains[].rpc":            {to("chains[].rpc", []string{"http://127.0.0.1:1", s.nodes[0]}), to("chains[].rpc", s.nodes[1:]), to("chains[].rpc", nil, refuses)},
		"chains[].rpc[].maxBatch": optional("chains[].rpc[].maxBatch", 1, 50), "chains[].rpc[].maxRange": optional("chains[].rpc[].maxRange", 1, 50),
		"chains[].rpc[].callsPerSecond":      optional("chains[].rpc[].callsPerSecond", 1000, 900),
		"chains[].rpc[].headers[].name":      optional("chains[].rpc[].headers", header("X-A", "valueEnv", "PASSWORD"), header("X-B", "valueEnv", "PASSWORD")),
		"chains[].rpc[].headers[].valueEnv":  optional("chains[].rpc[].headers", header("X-A", "valueEnv", "PASSWORD2"), header("X-A", "valueEnv", "PASSWORD")),
		"chains[].rpc[].headers[].valueFile": optional("chains[].rpc[].headers", header("X-A", "valueFile", "secret"), header("X-A", "valueFile", "secret2")),
		"chains[].maxAnswerMiB":              optional("chains[].maxAnswerMiB", 1, 2), "chains[].requestCallsPerSecond": optional("chains[].requestCallsPerSecond", 1, 2),
		"chains[].compareLogs": optional("chains[].compareLogs", "off", "on"), "chains[].auditCallsPerMinute": optional("chains[].auditCallsPerMinute", 0, 1),
		"chains[].latency": {to("chains[].latency", "200ms"), to("chains[].latency", nil)}, "chains[].idleInterval": optional("chains[].idleInterval", "100ms", "1s"),
		"chains[].quorum":   within(two, values{"chains[].quorum": 2}, values{"chains[].quorum": 1}, nil),
		"chains[].finality": {to("chains[].finality", 1), to("chains[].finality", nil, refuses)},

		"chains[].tokens[].currency": {to("chains[].tokens[].currency", "EURC", refuses), to("chains[].tokens[].currency", nil, refuses)},
		"chains[].tokens[].address":  {to("chains[].tokens[].address", otherToken), to("chains[].tokens[].address", nil, refuses)},
		"chains[].tokens[].decimals": {to("chains[].tokens[].decimals", 18, refuses), to("chains[].tokens[].decimals", nil)},

		"chains[].registry":           optional("chains[].registry", aContract, otherContract),
		"chains[].depositFactory":     {to("chains[].depositFactory", aContract, waits), to("chains[].depositFactory", otherContract, waits)},
		"chains[].authorizationRelay": {to("chains[].authorizationRelay", aContract, waits), to("chains[].authorizationRelay", otherContract, waits)},
		"chains[].explorer":           optional("chains[].explorer", "https://scan.example", "none"), "chains[].startBlock": optional("chains[].startBlock", 1, 2),
	}
}

func writerChanges() map[string][]changeStep {
	key := values{"chains[].registry": aContract, "chains[].operatorKeyEnv": "WRITER"}
	writer := func(name string, a, b any) []changeStep {
		return within(key, values{"chains[].writer." + name: a}, values{"chains[].writer." + name: b}, nil)
	}
	gasless := func(name string, a, b any) []changeStep {
		on := values{"chains[].gasless.enabled": "on"}
		maps.Copy(on, key)
		return within(on, values{"chains[].gasless." + name: a}, values{"chains[].gasless." + name: b}, nil)
	}
	sweep := func(policy, name string, a, b any) []changeStep {
		return within(values{"chains[].sweep.policy": policy}, values{"chains[].sweep." + name: a}, values{"chains[].sweep." + name: b})
	}
	cost := func(percent, price int) map[string]any { return map[string]any{"percent": percent, "coinPrice": price} }
	return map[string][]changeStep{
		"chains[].operatorKeyEnv":    within(values{"chains[].registry": aContract}, values{"chains[].operatorKeyEnv": "WRITER"}, values{"chains[].operatorKeyEnv": "WRITER2"}, nil),
		"chains[].operatorKeyFile":   within(values{"chains[].registry": aContract}, values{"chains[].operatorKeyFile": "writer"}, values{"chains[].operatorKeyFile": "writer2"}, nil),
		"chains[].writer.maxFeeGwei": writer("maxFeeGwei", 9, 8), "chains[].writer.minTipGwei": writer("minTipGwei", 0.001, 0.002), "chains[].writer.maxTipGwei": writer("maxTipGwei", 3, 4),
		"chains[].writer.perTransaction": writer("perTransaction", 0.01, 0.02), "chains[].writer.perDay": writer("perDay", 0.4, 0.3),
		"chains[].sweep.policy": optional("chains[].sweep.policy", "never", "at-once"), "chains[].sweep.amount": sweep("above", "amount", 12, 13),
		"chains[].sweep.gasPriceGwei": sweep("cheap-gas", "gasPriceGwei", 1, 2), "chains[].sweep.at": sweep("daily", "at", "03:00", "04:00"),
		"chains[].sweep.maxCost.percent":   optional("chains[].sweep.maxCost", cost(1, 3000), cost(2, 3000)),
		"chains[].sweep.maxCost.coinPrice": optional("chains[].sweep.maxCost", cost(2, 2000), cost(2, 1000)),
		"chains[].gasless.enabled":         within(key, values{"chains[].gasless.enabled": "on"}, values{"chains[].gasless.enabled": "off"}, nil),
		"chains[].gasless.perMerchant":     gasless("perMerchant", 5, 6), "chains[].gasless.perPayer": gasless("perPayer", 5, 6), "chains[].gasless.perDay": gasless("perDay", 5, 6),
	}
}
