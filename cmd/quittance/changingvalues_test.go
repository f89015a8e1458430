package main

import (
	"maps"
	"path/filepath"
)

// values are those of a configuration, by the paths of its settings. A path with [] leads to the first entry.
type values map[string]any

// outcomes of a start with a changed configuration.
const (
	serves  = ""        // both invoices are paid
	refuses = "refuses" // it does not start
	waits   = "waits"   // it starts, and the invoices wait for the former configuration
)

// settingChange is a change of one setting, with others that it needs.
type settingChange struct {
	to   values
	then string // the outcome
}

const (
	changingToken   = "0x00000000000000000000000000000000000000c0"
	changingAddress = "0x1100000000000000000000000000000000000000"
)

// changes has one of every setting.
func changes(dir, node string) map[string]settingChange {
	to := func(v values) settingChange { return settingChange{to: v} }
	one := func(path string, v any) settingChange { return to(values{path: v}) }
	key := values{"chains[].registry": "0x00000000000000000000000000000000000000aa", "chains[].operatorKeyEnv": "WRITER"}
	with := func(more values, base values) settingChange {
		all := maps.Clone(base)
		maps.Copy(all, more)
		return to(all)
	}
	smtp := values{"publicUrl": "https://pay.example.com", "smtp.host": "localhost", "smtp.tls": "none", "smtp.from": "A <a@b.example>"}
	account := values{"smtp.tls": "starttls", "smtp.user": "me", "smtp.passwordEnv": "PASSWORD"}
	provider := func(v values) settingChange {
		return with(v, values{"providers[].name": "circle", "providers[].secretEnv": "PROVIDER"})
	}
	acme := func(v values) settingChange {
		return with(v, values{"tls.acme.hosts": []string{"pay.example.com"}, "tls.acme.directory": "https://127.0.0.1:1/dir", "doors.public": "https://127.0.0.1:0"})
	}
	other := "sqlite:" + filepath.Join(dir, "other.db")
	return map[string]settingChange{
		"listen": one("listen", "localhost:0"), "doors.public": one("doors.public", "localhost:0"), "doors.api": one("doors.api", "localhost:0"),
		"doors.operator": one("doors.operator", "localhost:0"), "publicUrl": one("publicUrl", "https://pay.example.com"),
		"tls.certificateFile": {values{"tls.certificateFile": "none.pem", "tls.keyFile": "none.pem", "listen": "https://127.0.0.1:0"}, refuses},
		"tls.keyFile":         {values{"tls.certificateFile": "none.pem", "tls.keyFile": "none.pem", "listen": "https://127.0.0.1:0"}, refuses},
		"tls.acme.hosts":      acme(nil), "tls.acme.directory": acme(nil), "tls.acme.email": acme(values{"tls.acme.email": "a@b.example"}),
		"tls.acme.caFile":      {values{"tls.acme.hosts": []string{"pay.example.com"}, "tls.acme.caFile": "none.pem", "doors.public": "https://127.0.0.1:0"}, refuses},
		"http.trustedProxies":  one("http.trustedProxies", []string{"10.1.0.0/16"}),
		"http.forwardedHeader": to(values{"http.forwardedHeader": "Forwarded", "http.trustedProxies": []string{"10.1.0.0/16"}}),
		"http.hosts":           one("http.hosts", []string{"pay.example.com"}), "http.stopDelay": one("http.stopDelay", "1s"),
		"limits.perOwner": one("limits.perOwner", 10), "limits.perAddress": one("limits.perAddress", 10),
		"log.format": one("log.format", "json"), "log.level": one("log.level", "debug"),
		"database": {values{"database": other}, waits}, "database.readOnly": {values{"database": map[string]any{"url": other, "readOnly": "postgres://127.0.0.1:1/q"}}, refuses},
		"merchants[].id":         {values{"merchants[].id": "cafe"}, serves},
		"merchants[].webhookUrl": one("merchants[].webhookUrl", "https://shop.example/other"), "merchants[].webhookSecretEnv": one("merchants[].webhookSecretEnv", "SECRET2"),
		"merchants[].webhookSecretFile":     to(values{"merchants[].webhookSecretFile": "secret", "merchants[].webhookSecretEnv": nil}),
		"merchants[].webhookHeaders[].name": one("merchants[].webhookHeaders", []any{map[string]any{"name": "X-A", "value": "b"}}), "merchants[].webhookHeaders[].value": one("merchants[].webhookHeaders", []any{map[string]any{"name": "X-A", "value": "c"}}),
		"merchants[].webhookHeaders[].valueEnv":  one("merchants[].webhookHeaders", []any{map[string]any{"name": "X-A", "valueEnv": "PASSWORD"}}),
		"merchants[].webhookHeaders[].valueFile": one("merchants[].webhookHeaders", []any{map[string]any{"name": "X-A", "valueFile": "secret"}}),
		"merchants[].optionalEvents":             one("merchants[].optionalEvents", []string{"payment.unattributed"}),
		"merchants[].tolerance":                  one("merchants[].tolerance", "50%"), "merchants[].collection": {values{"merchants[].collection": "deposit"}, serves},
		"merchants[].allowedAddresses[].chainKey": one("merchants[].allowedAddresses", []any{map[string]any{"chainKey": "house", "address": "0x2200000000000000000000000000000000000000"}}),
		"merchants[].allowedAddresses[].address":  one("merchants[].allowedAddresses", []any{map[string]any{"chainKey": "house", "address": changingAddress}}),
		"merchants[].returnHosts":                 one("merchants[].returnHosts", []string{"shop.example"}), "merchants[].timezone": one("merchants[].timezone", "Europe/Berlin"),
		"merchants[].embedOrigins": one("merchants[].embedOrigins", []string{"https://shop.example"}),
		"webhooks.allow":           one("webhooks.allow", []string{"10.1.0.0/16"}), "webhooks.caFile": {values{"webhooks.caFile": "none.pem"}, refuses},
		"webhooks.proxy": one("webhooks.proxy", "http://127.0.0.1:1"), "webhooks.retention.events": one("webhooks.retention.events", "2d"), "webhooks.retention.attempts": one("webhooks.retention.attempts", "2d"),
		"access.operatorKeyEnv": one("access.operatorKeyEnv", "KEY2"), "access.operatorKeyFile": to(values{"access.operatorKeyFile": "key", "access.operatorKeyEnv": nil}),
		"access.allowListDelay": one("access.allowListDelay", "1h"),
		"smtp.host":             to(smtp), "smtp.port": with(values{"smtp.port": 2525}, smtp), "smtp.tls": to(smtp), "smtp.from": to(smtp),
		"smtp.caFile": {with(values{"smtp.tls": "starttls", "smtp.caFile": "none.pem"}, smtp).to, refuses}, "smtp.user": with(account, smtp), "smtp.passwordEnv": with(account, smtp),
		"smtp.passwordFile": with(values{"smtp.tls": "starttls", "smtp.user": "me", "smtp.passwordFile": "secret"}, smtp),
		"masterKeyEnv":      to(values{"masterKeyEnv": "MASTER2"}), "masterKeyFile": to(values{"masterKeyFile": "master", "masterKeyEnv": nil}),
		"oldMasterKeys[].masterKeyEnv": one("oldMasterKeys", []any{map[string]any{"masterKeyEnv": "MASTER2"}}), "oldMasterKeys[].masterKeyFile": one("oldMasterKeys", []any{map[string]any{"masterKeyFile": "master"}}),
		"providers[].name": provider(nil), "providers[].secretEnv": provider(nil), "providers[].secretFile": to(values{"providers[].name": "circle", "providers[].secretFile": "secret"}),
		"providers[].otherSecretEnv": provider(values{"providers[].otherSecretEnv": "SECRET2"}), "providers[].otherSecretFile": provider(values{"providers[].otherSecretFile": "secret"}),
		"providers[].chains": provider(values{"providers[].chains": map[string]any{"BASE": "house"}}), "providers[].currencies": provider(values{"providers[].currencies": map[string]any{"USDX": "USDC"}}),
		"chains[].chainKey": {values{"chains[].chainKey": "home"}, refuses}, "chains[].chainId": {values{"chains[].chainId": 6}, refuses},
		"chains[].rpc": one("chains[].rpc", []string{"http://127.0.0.1:1", node}), "chains[].rpc[].maxBatch": one("chains[].rpc[].maxBatch", 1), "chains[].rpc[].maxRange": one("chains[].rpc[].maxRange", 1),
		"chains[].rpc[].callsPerSecond": one("chains[].rpc[].callsPerSecond", 1000),
		"chains[].rpc[].headers[].name": one("chains[].rpc[].headers", []any{map[string]any{"name": "X-A", "valueEnv": "PASSWORD"}}), "chains[].rpc[].headers[].valueEnv": one("chains[].rpc[].headers", []any{map[string]any{"name": "X-B", "valueEnv": "PASSWORD"}}),
		"chains[].rpc[].headers[].valueFile": one("chains[].rpc[].headers", []any{map[string]any{"name": "X-A", "valueFile": "secret"}}),
		"chains[].maxAnswerMiB":              one("chains[].maxAnswerMiB", 1), "chains[].requestCallsPerSecond": one("chains[].requestCallsPerSecond", 1), "chains[].compareLogs": one("chains[].compareLogs", "off"),
		"chains[].auditCallsPerMinute": one("chains[].auditCallsPerMinute", 0), "chains[].latency": one("chains[].latency", "200ms"), "chains[].idleInterval": one("chains[].idleInterval", "100ms"),
		"chains[].quorum": {values{"chains[].quorum": 2}, refuses}, "chains[].finality": one("chains[].finality", 1),
		"chains[].tokens[].currency": {values{"chains[].tokens[].currency": "EURC"}, refuses}, "chains[].tokens[].address": one("chains[].tokens[].address", "0x00000000000000000000000000000000000000c1"),
		"chains[].tokens[].decimals": {values{"chains[].tokens[].decimals": 18}, refuses}, "chains[].registry": one("chains[].registry", "0x00000000000000000000000000000000000000aa"),
		"chains[].depositFactory": {values{"chains[].depositFactory": "0x00000000000000000000000000000000000000aa"}, waits}, "chains[].authorizationRelay": {values{"chains[].authorizationRelay": "0x00000000000000000000000000000000000000aa"}, waits},
		"chains[].explorer": one("chains[].explorer", "https://scan.example"), "chains[].startBlock": one("chains[].startBlock", 1),
		"chains[].operatorKeyEnv": to(key), "chains[].operatorKeyFile": to(values{"chains[].registry": key["chains[].registry"], "chains[].operatorKeyFile": "writer"}),
		"chains[].writer.maxFeeGwei": with(values{"chains[].writer.maxFeeGwei": 9}, key), "chains[].writer.minTipGwei": with(values{"chains[].writer.minTipGwei": 0.001}, key),
		"chains[].writer.maxTipGwei": with(values{"chains[].writer.maxTipGwei": 3}, key), "chains[].writer.perTransaction": with(values{"chains[].writer.perTransaction": 0.01}, key),
		"chains[].writer.perDay": with(values{"chains[].writer.perDay": 0.5}, key),
		"chains[].sweep.policy":  one("chains[].sweep.policy", "never"), "chains[].sweep.amount": to(values{"chains[].sweep.policy": "above", "chains[].sweep.amount": 12}),
		"chains[].sweep.gasPriceGwei": to(values{"chains[].sweep.policy": "cheap-gas", "chains[].sweep.gasPriceGwei": 1}), "chains[].sweep.at": to(values{"chains[].sweep.policy": "daily", "chains[].sweep.at": "03:00"}),
		"chains[].sweep.maxCost.percent":   one("chains[].sweep.maxCost", map[string]any{"percent": 1, "coinPrice": 3000}),
		"chains[].sweep.maxCost.coinPrice": one("chains[].sweep.maxCost", map[string]any{"percent": 2, "coinPrice": 2000}),
		"chains[].gasless.enabled":         with(values{"chains[].gasless.enabled": "on"}, key), "chains[].gasless.perMerchant": with(values{"chains[].gasless.enabled": "on", "chains[].gasless.perMerchant": 5}, key),
		"chains[].gasless.perPayer": with(values{"chains[].gasless.enabled": "on", "chains[].gasless.perPayer": 5}, key), "chains[].gasless.perDay": with(values{"chains[].gasless.enabled": "on", "chains[].gasless.perDay": 5}, key),
	}
}
