package config_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

const operatorKey = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"

const (
	masterKey      = "8c3f1d5e9ab2047c6e11f0d93b58a7c42d7e9016fb83c5aa4e6d2719b0cf3e84"
	providerSecret = "secret of the provider"
)

// secrets is a source with one variable and one file of each kind.
var secrets = config.Source{
	Env: func(name string) (string, bool) {
		v, ok := map[string]string{
			"SHOP_SECRET": "whsec_c2hvcCBzaG9wIHNob3AgISE=", "CIRCLE_SECRET": providerSecret, "OPERATOR_KEY": operatorKey, "EMPTY": "",
			"MASTER_KEY": masterKey, "OLD_KEY": strings.Repeat("b2", 32), "OLDER_KEY": strings.Repeat("C3", 32),
			"NOT_A_KEY": "hunter2", "ZERO_KEY": strings.Repeat("0", 64), "ONE": "x", "NODE_URL": "https://me:hunter2@base.example/key", "DATABASE_URL": "postgres://me:hunter2@db/quittance", "UNREADABLE_URL": "postgres://me:hunter2/@db/quittance",
		}[name]
		return v, ok
	},
	File: func(path string) ([]byte, error) {
		switch path {
		case "/run/secrets/shop":
			return []byte("whsec_from_the_file\n"), nil
		case "/run/secrets/node":
			return []byte("https://base.example/ws\n"), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	},
}

const full = `
listen: 127.0.0.1:9000
database: postgres://quittance@db/quittance
merchants:
  - id: shop
    webhookUrl: https://shop.example/webhooks
    webhookSecretEnv: SHOP_SECRET
    tolerance: 0.5%
    returnHosts: [shop.example, localhost]
  - id: other.shop
    webhookUrl: http://127.0.0.1:9999/
    webhookSecretFile: /run/secrets/shop
    tolerance: 500000
    collection: deposit
  - id: third
    allowedAddresses:
      - {chainKey: base, address: 0x00000000000000000000000000000000000000a1}
      - {chainKey: base, address: 0x00000000000000000000000000000000000000b2}
webhooks:
  allow: [10.1.0.0/16, 127.0.0.1, fd00::/8]
  retention: {events: 90d, attempts: 14d}
masterKeyEnv: MASTER_KEY
oldMasterKeys: [{masterKeyEnv: OLD_KEY}, {masterKeyEnv: OLDER_KEY}]
providers:
  - name: circle
    secretEnv: CIRCLE_SECRET
    otherSecretFile: /run/secrets/shop
    chains: {BASE: base}
    currencies: {USD: USDC}
chains:
  - chainKey: base
    rpc: [https://base.example/v1/key, {urlFile: /run/secrets/node}, {urlEnv: NODE_URL}]
    quorum: 2
    registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3
    depositFactory: 0x00000000000000000000000000000000000000d1
    explorer: https://scan.example/
    authorizationRelay: 0x00000000000000000000000000000000000000e1
    startBlock: 0
    operatorKeyEnv: OPERATOR_KEY
  - chainKey: house
    chainId: 31337
    name: House chain
    rpc: [http://127.0.0.1:8545]
    finality: 3
    tokens:
      - {currency: USDC, address: 0x5FbDB2315678afecb367f032d93F642f64180aa3, decimals: 6}
`

func TestParse(t *testing.T) {
	cfg, err := config.Parse([]byte(full), secrets)
	expect.OK(t, err)
	if diff := cmp.Diff("[10.1.0.0/16 127.0.0.1/32 fd00::/8]", fmt.Sprint(cfg.WebhookAllow)); diff != "" {
		t.Error(diff)
	}
	if cfg.KeepEvents != 90*24*time.Hour || cfg.KeepAttempts != 14*24*time.Hour {
		t.Errorf("events are kept for %s, attempts for %s", cfg.KeepEvents, cfg.KeepAttempts)
	}
	base, house := cfg.Chains[0], cfg.Chains[1]
	if base.Name != "Base" || house.Name != "House chain" {
		t.Errorf("the chains are called %s and %s", base.Name, house.Name)
	}
	if base.ID != 8453 || base.Finality != (chain.Finality{Tag: chain.TagSafe}) || base.OperatorKey == nil {
		t.Errorf("base = %+v; what is left out should be filled in", base)
	}
	if diff := cmp.Diff([]string{"https://base.example/v1/key", "https://base.example/ws", "https://me:hunter2@base.example/key"}, base.RPC); diff != "" {
		t.Error(diff)
	}
	if !base.CompareLogs || !house.CompareLogs || base.AuditCallsPerMinute != 4 {
		t.Errorf("by default, logs are compared %t and %t, and the audit makes %d calls", base.CompareLogs, house.CompareLogs, base.AuditCallsPerMinute)
	}
	if base.Quorum != 2 || house.Quorum != 0 {
		t.Errorf("quorum is %d and %d", base.Quorum, house.Quorum)
	}
	if base.StartBlock == nil || *base.StartBlock != 0 {
		t.Errorf("startBlock 0 should be kept apart from none")
	}
	if usdc, ok := base.Token("USDC"); !ok || usdc.Decimals != 6 {
		t.Errorf("base has no built-in USDC")
	}
	if house.ID != 31337 || house.Finality.Depth != 3 || house.OperatorKey != nil || house.StartBlock != nil {
		t.Errorf("house = %+v", house)
	}
	expect.Equal(t, house.Tokens[0].Address, base.Registry, "an address without quotes was read as")
	if base.DepositFactory != (invoice.Address{19: 0xd1}) || base.AuthorizationRelay != (invoice.Address{19: 0xe1}) {
		t.Errorf("depositFactory is %s, authorizationRelay %s", base.DepositFactory, base.AuthorizationRelay)
	}
	if !house.DepositFactory.IsZero() || !house.AuthorizationRelay.IsZero() {
		t.Errorf("depositFactory and authorizationRelay are %s and %s by default", house.DepositFactory, house.AuthorizationRelay)
	}
	want := map[string]access.MerchantSettings{
		"shop": {
			Merchant: invoice.Merchant{
				Tolerance: invoice.Tolerance{BasisPoints: 50}, Collection: invoice.Direct, ReturnHosts: []string{"shop.example", "localhost"},
			},
			WebhookURL: "https://shop.example/webhooks", WebhookSecret: "whsec_c2hvcCBzaG9wIHNob3AgISE=",
		},
		"other.shop": {
			Merchant:   invoice.Merchant{Tolerance: invoice.Tolerance{Amount: invoice.NewAmount(500_000)}, Collection: invoice.Deposit},
			WebhookURL: "http://127.0.0.1:9999/", WebhookSecret: "whsec_from_the_file",
		},
		"third": {Merchant: invoice.Merchant{Collection: invoice.Direct, Allowed: []invoice.AllowedAddress{
			{ChainKey: "base", Address: invoice.Address{19: 0xa1}}, {ChainKey: "base", Address: invoice.Address{19: 0xb2}},
		}}},
	}
	if diff := cmp.Diff(want, cfg.Merchants, cmp.Comparer(func(a, b invoice.Amount) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]config.Provider{{
		Name: "circle", Secret: providerSecret, OtherSecret: "whsec_from_the_file", Chains: map[string]string{"BASE": "base"}, Currencies: map[string]string{"USD": "USDC"},
	}}, cfg.Providers); diff != "" {
		t.Error(diff)
	}
}

// TestMasterKeys opens with each key what was sealed under it.
func TestMasterKeys(t *testing.T) {
	cfg, err := config.Parse([]byte(full), secrets)
	expect.OK(t, err)
	for i, text := range []string{masterKey, strings.Repeat("b2", 32), strings.Repeat("c3", 32)} {
		key := expect.Must(access.ParseMasterKey(text))
		if got, err := cfg.Keyring.Open("shop", 1, access.NewKeyring(key).Seal("shop", 1, "s")); err != nil || got != "s" {
			t.Errorf("key %d opens %q, %v", i, got, err)
		}
		if newest := i == 0; (cfg.Keyring.KeyID() == key.ID) != newest {
			t.Errorf("it seals under %s; key %d is %s", cfg.Keyring.KeyID(), i, key.ID)
		}
	}
	for n := config.MaxMasterKeys - 1; n <= config.MaxMasterKeys; n++ {
		many := make([]string, n)
		for i := range many {
			many[i] = fmt.Sprintf("{masterKeyEnv: KEY_%d}", i)
		}
		_, err := config.Parse([]byte(strings.Replace(full, "{masterKeyEnv: OLD_KEY}, {masterKeyEnv: OLDER_KEY}", strings.Join(many, ", "), 1)), config.Source{
			Env: func(name string) (string, bool) {
				if i := 0; strings.HasPrefix(name, "KEY_") {
					_, err := fmt.Sscanf(name, "KEY_%d", &i)
					return fmt.Sprintf("%064x", i), err == nil
				}
				return secrets.Env(name)
			},
			File: secrets.File,
		})
		if (err != nil) != (n == config.MaxMasterKeys) {
			t.Errorf("%d old keys: %v", n, err)
		}
	}
}

// TestRetention reads days.
func TestRetention(t *testing.T) {
	for text, ok := range map[string]bool{"2d": true, "1d": false, "3650d": true, "3651d": false, "90": false, "90 d": false, "-3d": false, "1.5d": false, "48h": false, "[2d]": false} {
		_, err := config.Parse([]byte(strings.Replace(full, "events: 90d", "events: "+text, 1)), secrets)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "webhooks.retention.events: is ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestRelativePaths expects paths to be relative to the folder of the file.
func TestRelativePaths(t *testing.T) {
	files := map[string]string{"/etc/q/new.yaml": "masterKeyFile: keys/master\nchains: [{chainKey: base, rpc: [{urlFile: ../node}]}]\n", "/etc/node": "https://node.example"}
	var read []string
	src := config.Source{Env: secrets.Env, File: func(path string) ([]byte, error) {
		read = append(read, path)
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}}
	_, err := config.Load("/etc/q/new.yaml", src)
	if want := []string{"/etc/q/new.yaml", "/etc/node", "/etc/q/keys/master"}; err == nil || !slices.Equal(slices.Sorted(slices.Values(read)), slices.Sorted(slices.Values(want))) {
		t.Errorf("it read %q, want %q: %v", read, want, err)
	}
	for database, want := range map[string]string{"": "sqlite:/etc/q/quittance.db", "database: sqlite:data/x.db\n": "sqlite:/etc/q/data/x.db", "database: sqlite:/x.db\n": "sqlite:/x.db"} {
		files["/etc/q/new.yaml"] = database + "chains: [{chainKey: base, rpc: [https://node.example]}]\n"
		if cfg, err := config.Load("/etc/q/new.yaml", src); err != nil || cfg.Database != want {
			t.Errorf("%q: the database is %s, want %s: %v", database, cfg.Database, want, err)
		}
	}
}

// TestURLsByReference keeps the secrets of URLs outside the file, in each permitted form.
func TestURLsByReference(t *testing.T) {
	for _, test := range []struct{ database, want string }{
		{"{urlEnv: DATABASE_URL}", "postgres://me:hunter2@db/quittance"},
		{"{urlEnv: NODE_URL}", ""},
		{"postgres://quittance@db/quittance", "postgres://quittance@db/quittance"},
		{"postgres://me:hunter2@db/quittance", ""},
		{"postgres://db/quittance?password=hunter2", ""},
		{"postgres://me:hunter2%zz@db/quittance", ""},
		{"postgres://quittance@db1:5432,db2:5432/quittance?target_session_attrs=read-write", "postgres://quittance@db1:5432,db2:5432/quittance?target_session_attrs=read-write"},
		{"postgres://db1:5432,db2:5432/quittance", "postgres://db1:5432,db2:5432/quittance"},
		{"postgres://me:hunter2@db1:5432,db2:5432/quittance", ""},
		{"postgres://me@db1:5432,db2:5432/quittance?password=hunter2", ""},
		{"postgres://me:@hunter2@db1:5432,db2:5432/quittance", ""},
		{"sqlite:/var/lib/quit@tance.db", "sqlite:/var/lib/quit@tance.db"},
	} {
		text := strings.Replace(full, "postgres://quittance@db/quittance", test.database, 1)
		cfg, err := config.Parse([]byte(text), secrets)
		if (err != nil) != (test.want == "") || err == nil && cfg.Database != test.want {
			t.Errorf("database %s is read as %q, %v", test.database, cfg.Database, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "  database: ")) {
			t.Errorf("database %s: the error is %q", test.database, err)
		}
	}
}

// TestStandbyOfDatabase reads the URL of a standby in each form, and refuses wrong ones.
func TestStandbyOfDatabase(t *testing.T) {
	for text, want := range map[string]string{
		"{url: postgres://quittance@db/quittance, readOnly: postgres://quittance@db2/quittance}": "postgres://quittance@db2/quittance",
		"{urlEnv: DATABASE_URL, readOnly: {urlEnv: DATABASE_URL}}":                               "postgres://me:hunter2@db/quittance",
		"{urlEnv: DATABASE_URL}": "",
		"{url: postgres://db/quittance, readOnly: postgres://me:hunter2@db2/quittance}": "error: database.readOnly: holds a password",
		"{url: postgres://me:hunter2@db/quittance}":                                     "error: database: holds a password",
		"{url: postgres://db/quittance, urlEnv: DATABASE_URL}":                          "error: database: want one of url, urlEnv and urlFile",
		"{url: postgres://db/quittance, readOnly: sqlite:copy.db}":                      "error: database.readOnly: is no standby's URL",
		"{url: sqlite:quittance.db, readOnly: postgres://db2/quittance}":                "error: database.readOnly: is for PostgreSQL alone",
		"{readOnly: postgres://db2/quittance}":                                          "error: database.readOnly: is for PostgreSQL alone",
		"{url: postgres://db/quittance, readOnly: {urlEnv: NONE}}":                      "error: database.readOnly.urlEnv: the environment variable NONE is not set",
		"{url: postgres://db/quittance, readonly: postgres://db2/quittance}":            "error: ",
		"{url: postgres://db/quittance, readOnly: {urlEnv: EMPTY}}":                     "error: database.readOnly.urlEnv: the environment variable EMPTY is empty",
		"{url: sqlite:quittance.db?password=hunter2}":                                   "error: database: holds a password",
		`{url: postgres://db/quittance, readOnly: ""}`:                                  "error: database.readOnly: is empty",
		"{url: postgres://db/quittance, readOnly: postgres://db2:port/quittance}":       "error: database.readOnly: cannot be read",
		`{url: postgres://db/quittance, readOnly: "postgres://[::1:bad/q"}`:             "error: database.readOnly: cannot be read",
		"{url: postgres://db/quittance, readOnly: postgres://db2/q?sslmode=bogus}":      "error: database.readOnly: cannot be read",
		"{url: postgres://db/quittance?sslmode=bogus}":                                  "error: database: cannot be read",
		"{urlEnv: UNREADABLE_URL}":                                                      "error: database: cannot be read",
	} {
		cfg, err := config.Parse([]byte(strings.Replace(full, "postgres://quittance@db/quittance", text, 1)), secrets)
		message, refused := strings.CutPrefix(want, "error: ")
		switch {
		case refused != (err != nil), !refused && cfg.ReadOnly != want, refused && !strings.Contains(err.Error(), message):
			t.Errorf("database %s has the standby %q, %v; want %s", text, cfg.ReadOnly, err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("database %s: the error shows the password: %v", text, err)
		}
	}
}

// TestNodes counts them.
func TestNodes(t *testing.T) {
	nodes := make([]string, config.MaxNodes+1)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("http://127.0.0.1:%d", 8545+i)
	}
	for _, n := range []int{1, config.MaxNodes, config.MaxNodes + 1} {
		text := strings.Replace(full, "[http://127.0.0.1:8545]", "["+strings.Join(nodes[:n], ", ")+"]", 1)
		cfg, err := config.Parse([]byte(text), secrets)
		if (err != nil) != (n > config.MaxNodes) || err == nil && len(cfg.Chains[1].RPC) != n {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
}

// TestAllowedAddresses counts them.
func TestAllowedAddresses(t *testing.T) {
	for n := invoice.MaxAllowedAddresses; n <= invoice.MaxAllowedAddresses+1; n++ {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("{chainKey: base, address: 0x%040x}", i+1)
		}
		text := strings.Replace(full, "    tolerance: 500000\n", "    allowedAddresses: ["+strings.Join(list, ", ")+"]\n", 1)
		cfg, err := config.Parse([]byte(text), secrets)
		if (err != nil) != (n > invoice.MaxAllowedAddresses) || err == nil && len(cfg.Merchants["other.shop"].Allowed) != n {
			t.Errorf("%d addresses: %v", n, err)
		}
	}
}

// TestKnownTokens names a built-in token again: its counting rules stay.
func TestKnownTokens(t *testing.T) {
	arc, ok := chain.Lookup("arc")
	if !ok {
		t.Fatal("arc is not built in")
	}
	text := strings.NewReplacer("chainKey: house\n    chainId: 31337\n", "chainKey: arc\n", "finality: 3", "finality: 1",
		"{currency: USDC, address: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "{currency: USDC, address: "+chain.Checksum(arc.Tokens[0].Address)).Replace(full)
	cfg, err := config.Parse([]byte(text), secrets)
	expect.OK(t, err)
	if got := cfg.Chains[1].Tokens[0]; len(got.Movements) == 0 || len(got.Movements) != len(arc.Tokens[0].Movements) {
		t.Errorf("arc's token is read as %+v; want it as %+v", got, arc.Tokens[0])
	}
}

// TestAddresses writes addresses in every form that YAML has for them.
func TestAddresses(t *testing.T) {
	const usual = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	for _, address := range []string{usual, "0x0000000000000000000000000000000000001010", "0x000000000000000000000000000000000000dEaD"} {
		for _, form := range []string{"%s", `"%s"`, "'%s'", "%s # a note"} {
			text := strings.Replace(full, "registry: "+usual, "registry: "+fmt.Sprintf(form, address), 1)
			cfg, err := config.Parse([]byte(text), secrets)
			if err != nil {
				t.Errorf(form+": %v", address, err)
			} else if got := cfg.Chains[0].Registry; got != chain.MustAddress(address) {
				t.Errorf(form+" was read as %s", address, got)
			}
		}
	}
}

func TestParseJSON(t *testing.T) {
	cfg, err := config.Parse([]byte(`{"merchants": [{"id": "shop", "webhookUrl": "https://shop.example/", "webhookSecretEnv": "SHOP_SECRET"}],
		"chains": [{"chainKey": "polygon", "rpc": ["https://node.example"], "finality": "finalized+64"}]}`), secrets)
	expect.OK(t, err)
	addresses := []config.Address{{Listen: config.DefaultListen, Doors: []string{"public", "api", "operator"}}}
	if diff := cmp.Diff(addresses, cfg.Addresses); diff != "" || cfg.Database != config.DefaultDatabase {
		t.Errorf("defaults: %s, %q", diff, cfg.Database)
	}
	if cfg.KeepEvents != config.DefaultRetention || cfg.KeepAttempts != config.DefaultRetention || cfg.Keyring != nil {
		t.Errorf("defaults: %s, %s, %v", cfg.KeepEvents, cfg.KeepAttempts, cfg.Keyring)
	}
	if want := (chain.Finality{Tag: chain.TagFinalized, Depth: 64}); cfg.Chains[0].Finality != want {
		t.Errorf("finality = %v", cfg.Chains[0].Finality)
	}
}

func TestProviderDefaults(t *testing.T) {
	cfg, err := config.Parse([]byte(strings.Replace(full, "    chains: {BASE: base}\n    currencies: {USD: USDC}\n", "", 1)), secrets)
	expect.OK(t, err)
	p := cfg.Providers[0]
	for name, key := range map[string]string{"ETH": "ethereum", "MATIC": "polygon", "POLY": "polygon", "AVAX": "avalanche", "BASE-SEPOLIA": "base-sepolia"} {
		expect.Equal(t, p.Chains[name], key, "%s is", name)
		if _, ok := chain.Lookup(key); !ok {
			t.Errorf("%q is not built in", key)
		}
	}
	expect.Equal(t, p.Currencies["USD"], "USDC", "USD is")
}

// TestWrong breaks one setting at a time and expects the error to name it.
func TestWrong(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown setting":        {"listen:", "listn:", "there is no setting \"listn\" here; did you mean listen?"},
		"unknown in a list":      {"    webhookUrl: https", "    webhookURL: https", "\"webhookURL\" here; did you mean webhookUrl?"},
		"in another place":       {"listen: 127.0.0.1:9000", "finality: 3", "\"finality\" here; did you mean chains[].finality?"},
		"nothing is near":        {"listen: 127.0.0.1:9000", "somethingElse: 3", "\"somethingElse\" here"},
		"a secret in the file":   {"    webhookSecretEnv: SHOP_SECRET", "    webhookSecret: hunter2", "webhookSecret"},
		"duplicate setting":      {"listen: 127.0.0.1:9000", "listen: 127.0.0.1:9000\nlisten: 127.0.0.1:9001", "listen"},
		"not a text":             {"listen: 127.0.0.1:9000", "listen: [1]", "line 2, column 9: listen: want a text"},
		"not a list":             {"rpc: [http://127.0.0.1:8545]", "rpc: http://127.0.0.1:8545", "rpc: want a list"},
		"not settings":           {"{BASE: base}", "[base]", "chains: want settings, each as NAME: VALUE"},
		"finality, a list":       {"finality: 3", "finality: [1]", "chains[1].finality: is"},
		"chain id, a text":       {"chainId: 31337", "chainId: mine", "chains[1].chainId: is \"mine\"; want a whole number"},
		"chain id 0":             {"chainId: 31337", "chainId: 0", "chains[1].chainId: is \"0\"; want a whole number of 1"},
		"start block, a part":    {"startBlock: 0", "startBlock: 1.5", "chains[0].startBlock: is \"1.5\"; want a whole number"},
		"decimals, a part":       {"decimals: 6", "decimals: 5.9", "chains[1].tokens[0].decimals: is \"5.9\""},
		"listens to all":         {"127.0.0.1:9000", "0.0.0.0:9000", "listen: is \"0.0.0.0:9000\", which others can reach"},
		"no port":                {"127.0.0.1:9000", "127.0.0.1", "want an address and a port"},
		"database":               {"postgres://quittance@db/quittance", "mysql://db", "database: is mysql:…; want sqlite:PATH or postgres://"},
		"merchant id":            {"id: shop", "id: the shop", "merchants[0].id"},
		"merchant twice":         {"id: other.shop", "id: shop", "merchants[1].id: \"shop\" is given twice"},
		"webhook URL":            {"https://shop.example/webhooks", "shop.example", "merchants[0].webhookUrl"},
		"variable not set":       {"SHOP_SECRET", "NOWHERE", "the environment variable NOWHERE is not set"},
		"variable empty":         {"SHOP_SECRET", "EMPTY", "merchants[0].webhookSecretEnv: the environment variable EMPTY is empty"},
		"both secrets":           {"webhookSecretEnv: SHOP_SECRET", "webhookSecretEnv: SHOP_SECRET\n    webhookSecretFile: /run/secrets/shop", "merchants[0].webhookSecret: want either"},
		"two other secrets":      {"otherSecretFile: /run/secrets/shop", "otherSecretFile: /run/secrets/shop\n    otherSecretEnv: SHOP_SECRET", "providers[0].otherSecret: want either"},
		"short other secret":     {"otherSecretFile: /run/secrets/shop", "otherSecretEnv: ONE", "providers[0].otherSecret: is too short"},
		"no secret":              {"    webhookSecretEnv: SHOP_SECRET\n", "", "merchants[0].webhookSecret: want either"},
		"file missing":           {"/run/secrets/shop", "/nowhere", "merchants[1].webhookSecretFile: open /nowhere"},
		"allowed, no range":      {"10.1.0.0/16", "10.1.0.0/33", "webhooks.allow[0]: is \"10.1.0.0/33\"; want a range"},
		"allowed, a host's":      {"10.1.0.0/16", "10.1.2.3/16", "webhooks.allow[0]: is \"10.1.2.3/16\"; want a range of addresses such as 10.1.0.0/16 or fd00::/8, with zeros"},
		"allowed, every address": {"10.1.0.0/16", "0.0.0.0/0", "webhooks.allow[0]: is \"0.0.0.0/0\", which would let every merchant reach this machine"},
		"allowed, a name":        {"127.0.0.1, fd00", "localhost, fd00", "webhooks.allow[1]: is \"localhost\""},
		"allowed, with a zone":   {"127.0.0.1, fd00", "fe80::1%eth0, fd00", "webhooks.allow[1]"},
		"secret without URL":     {"    webhookUrl: https://shop.example/webhooks\n", "", "merchants[0].webhookUrl: is missing, but the secret is there"},
		"retention":              {"attempts: 14d", "attempts: 1d", "webhooks.retention.attempts: is \"1d\"; want a number of days of 2d to 3650d"},
		"master key":             {"masterKeyEnv: MASTER_KEY", "masterKeyEnv: NOT_A_KEY", "masterKey: is no master key; want 64 hex digits"},
		"master key of zeros":    {"masterKeyEnv: MASTER_KEY", "masterKeyEnv: ZERO_KEY", "masterKey: is too regular to be random"},
		"provider's secret":      {"secretEnv: CIRCLE_SECRET", "secretEnv: ONE", "providers[0].secret: is too short"},
		"master key missing":     {"masterKeyEnv: MASTER_KEY\n", "", "oldMasterKeys: are given without the key that replaces them"},
		"master key twice":       {"OLDER_KEY", "MASTER_KEY", "oldMasterKeys[1].masterKey: is the same as one before it"},
		"master key, no file":    {"masterKeyEnv: MASTER_KEY", "masterKeyFile: /nowhere", "masterKeyFile: open /nowhere"},
		"old master key, both":   {"{masterKeyEnv: OLD_KEY}", "{masterKeyEnv: OLD_KEY, masterKeyFile: /x}", "oldMasterKeys[0].masterKey: want either masterKeyEnv"},
		"provider's chain":       {"{BASE: base}", "{BASE: bass}", "providers[0].chains.BASE: is \"bass\""},
		"provider's name":        {"name: circle", "name: a/b", "providers[0].name"},
		"chain key missing":      {"chainKey: base\n", "chainId: 8453\n", "chains[0].chainKey"},
		"latency":                {"    quorum: 2", "    quorum: 2\n    latency: 50ms", "chains[0].latency: is \"50ms\"; want a duration of 100ms to 1m0s, such as 1s"},
		"idle interval":          {"    quorum: 2", "    quorum: 2\n    idleInterval: 1h", "chains[0].idleInterval: is \"1h\"; want a duration of 100ms to 10m0s, such as 2m0s"},
		"calls of requests":      {"    quorum: 2", "    quorum: 2\n    requestCallsPerSecond: 0", "chains[0].requestCallsPerSecond: is \"0\"; want a whole number of 1 to 10000"},
		"calls of an audit":      {"    quorum: 2", "    quorum: 2\n    auditCallsPerMinute: 6001", "chains[0].auditCallsPerMinute: is \"6001\"; want a whole number of 0 to 6000"},
		"comparison":             {"    quorum: 2", "    quorum: 2\n    compareLogs: yes", "chains[0].compareLogs: is \"yes\"; want on or off"},
		"size of an answer":      {"    quorum: 2", "    quorum: 2\n    maxAnswerMiB: 0", "chains[0].maxAnswerMiB: is \"0\"; want a whole number of 1 to 1024"},
		"one chain, two keys":    {"chainId: 31337", "chainId: 8453", "chains[1].chainId: the chains base and house have one chain id, 8453"},
		"chain twice":            {"chainKey: house", "chainKey: base", "chains[1].chainKey: \"base\" is given twice"},
		"chain id differs":       {"chainKey: base\n", "chainKey: base\n    chainId: 1\n", "chains[0].chainId: is 1; base has 8453"},
		"chain id missing":       {"    chainId: 31337\n", "", "chains[1].chainId: is missing"},
		"no node":                {"rpc: [http://127.0.0.1:8545]", "rpc: []", "chains[1].rpc: has 0; want 1 to 16 URLs"},
		"node's URL":             {"http://127.0.0.1:8545", "127.0.0.1:8545", "chains[1].rpc[0]"},
		"finality missing":       {"    finality: 3\n", "", "chains[1].finality: is missing"},
		"finality":               {"finality: 3", "finality: soon", "\n  chains[1].finality: is \"soon\"; want a number of blocks"},
		"finality too deep":      {"finality: 3", "finality: 10001", "chains[1].finality: is \"10001\"; at most 10000"},
		"finality negative":      {"finality: 3", "finality: -1", "chains[1].finality: is \"-1\""},
		"no token":               {"    tokens:\n      - {currency: USDC, address: 0x5FbDB2315678afecb367f032d93F642f64180aa3, decimals: 6}\n", "", "chains[1].tokens: want at least one"},
		"token's checksum":       {"address: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "address: 0x5fbDB2315678afecb367f032d93F642f64180aa3", "chains[1].tokens[0].address"},
		"decimals":               {"decimals: 6", "decimals: 37", "chains[1].tokens[0].decimals: is \"37\"; this version takes only tokens with 6 decimals"},
		"decimals, 0":            {"decimals: 6", "decimals: 0", "chains[1].tokens[0].decimals: is \"0\"; this version takes only tokens with 6 decimals"},
		"decimals, 18":           {"decimals: 6", "decimals: 18", "chains[1].tokens[0].decimals: is \"18\"; this version takes only tokens with 6 decimals"},
		"registry, a list":       {"registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "registry: [1]", "chains[0].registry"},
		"registry":               {"registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "registry: 0x12", "chains[0].registry"},
		"name":                   {"name: House chain", "name: " + strings.Repeat("a", config.MaxChainName+1), "chains[1].name: is"},
		"name, unprintable":      {"name: House chain", `name: "a\u202e"`, "chains[1].name: is"},
		"explorer":               {"explorer: https://scan.example/", "explorer: scan.example", "chains[0].explorer"},
		"deposit factory":        {"depositFactory: 0x00", "depositFactory: 0x0000", "chains[0].depositFactory"},
		"authorization relay":    {"authorizationRelay: 0x00", "authorizationRelay: 0x0000", "chains[0].authorizationRelay"},
		"operator, no registry":  {"    registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3\n    depositFactory: 0x00000000000000000000000000000000000000d1\n", "", "chains[0].registry: is missing"},
		"gasless, neither":       {"    startBlock: 0\n", "    startBlock: 0\n    gasless: {enabled: perhaps}\n", "chains[0].gasless.enabled: is \"perhaps\"; want on or off"},
		"gasless, no key":        {"    startBlock: 0\n    operatorKeyEnv: OPERATOR_KEY\n", "    startBlock: 0\n    gasless: {enabled: on}\n", "chains[0].gasless.enabled: is on; it needs an operator key"},
		"gasless, no payer":      {"    startBlock: 0\n", "    startBlock: 0\n    gasless: {perPayer: 0}\n", "chains[0].gasless.perPayer: is \"0\"; want a whole number of 1 to 1000000"},
		"gasless, many":          {"    startBlock: 0\n", "    startBlock: 0\n    gasless: {perDay: 1000001}\n", "chains[0].gasless.perDay"},
		"operator key":           {"OPERATOR_KEY", "NOT_A_KEY", "chains[0].operatorKey: is not a private key"},
		"node's account":         {"https://base.example/v1/key", "https://me:hunter2@base.example/", "chains[0].rpc[0]: holds an account; secrets are not written here: write {urlEnv: NAME}"},
		"node twice":             {"{urlEnv: NODE_URL}", "https://base.example/v1/key", "chains[0].rpc[2]: is the same as one before it"},
		"node's variable":        {"NODE_URL", "NOWHERE", "chains[0].rpc[2].urlEnv: the environment variable NOWHERE is not set"},
		"node in a wrong place":  {"urlEnv: NODE_URL", "urlEnv: SHOP_SECRET", "chains[0].rpc[2]: refers to what is no URL"},
		"node, other settings":   {"urlEnv: NODE_URL", "env: NODE_URL", "there is no setting \"env\" here"},
		"node, both":             {"urlEnv: NODE_URL", "urlEnv: NODE_URL, urlFile: /x", "chains[0].rpc[2].url: want either"},
		"node, a list":           {"{urlEnv: NODE_URL}", "[x]", "want a text"},
		"quorum of one node":     {"finality: 3", "finality: 3\n    quorum: 2", "chains[1].quorum: is 2, but rpc names 1"},
		"quorum, three":          {"quorum: 2", "quorum: 3", "chains[0].quorum: is \"3\"; want a whole number of 1 to 2"},
		"allowed on no chain":    {"{chainKey: base, address: 0x00000000000000000000000000000000000000b2}", "{chainKey: home, address: 0xb2}", "merchants[2].allowedAddresses[1].chainKey: is \"home\", which is not among the chains"},
		"allowed nowhere":        {", address: 0x00000000000000000000000000000000000000b2}", "}", "merchants[2].allowedAddresses[1].address: "},
		"allowed twice":          {"0x00000000000000000000000000000000000000b2", "0x00000000000000000000000000000000000000a1", "merchants[2].allowedAddresses[1]: is given twice"},
		"the zero address":       {"0x00000000000000000000000000000000000000b2", "0x0000000000000000000000000000000000000000", "merchants[2].allowedAddresses[1].address: must not be the zero address"},
		"allowed by mistake":     {"{chainKey: base, address: 0x00000000000000000000000000000000000000b2}", "{chain: base}", "there is no setting \"chain\" here"},
		"none allowed":           {"\n      - {chainKey: base, address: 0x00000000000000000000000000000000000000a1}\n      - {chainKey: base, address: 0x00000000000000000000000000000000000000b2}", " []", "merchants[2].allowedAddresses: has 0; want 1 to 50 addresses"},
		"return host":            {"[shop.example, localhost]", "[shop.example, https://shop.example]", "merchants[0].returnHosts[1]: must be a host name"},
		"collection":             {"collection: deposit", "collection: escrow", "merchants[1].collection: is \"escrow\"; want direct or deposit"},
		"tolerance":              {"tolerance: 0.5%", "tolerance: a bit", "merchants[0].tolerance: is \"a bit\"; "},
		"start block":            {"startBlock: 0", "startBlock: -1", "chains[0].startBlock: is \"-1\"; want a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(full, c.old) {
				t.Fatalf("the configuration has no %q to break", c.old)
			}
			_, err := config.Parse([]byte(strings.Replace(full, c.old, c.new, 1)), secrets)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.Contains("\n"+err.Error(), c.want) {
				t.Errorf("the error is %q; it should name %q", err, c.want)
			}
			for _, internal := range []string{"Go ", "unmarshal", "interface", "uint64"} {
				if strings.Contains(err.Error(), internal) {
					t.Errorf("the error speaks of the program's own types: %q", err)
				}
			}
			for _, secret := range []string{"whsec_c2hvcCBzaG9wIHNob3AgISE=", providerSecret, operatorKey[2:], "whsec_from_the_file", masterKey, strings.Repeat("b2", 32)} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows a secret: %q", err)
				}
			}
			if name == "operator key" && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows what should have been a key: %q", err)
			}
		})
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, err := config.Parse([]byte("listen: 0.0.0.0:1\ndatabase: none\n"), secrets)
	for _, want := range []string{"listen", "database", "chains"} {
		if err == nil || !strings.Contains(err.Error(), "  "+want+":") {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestEmptyAndTooLong(t *testing.T) {
	for _, text := range []string{"", "# nothing\n"} {
		if _, err := config.Parse([]byte(text), secrets); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	comment := full + "#" + strings.Repeat("x", config.MaxSize-len(full)-1)
	expect.OK(t, os.WriteFile(path, []byte(comment), 0o600))
	if raw := expect.Must(config.ReadFile(path)); string(raw) != comment {
		t.Errorf("%d bytes of a file of the largest size were read", len(raw))
	}
	expect.OK(t, os.WriteFile(path, []byte(comment+"x"), 0o600))
	for _, path := range []string{path, "/dev/zero"} {
		if _, err := config.Load(path, config.System); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
			t.Errorf("of %s: %v", path, err)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	expect.Error(t, fs.ErrNotExist, "a missing file gives")(config.Load(path, config.System))
	t.Setenv("SHOP_SECRET", "whsec_c2hvcCBzaG9wIHNob3AgISE=")
	text := "merchants: [{id: a, webhookUrl: 'https://a.example', webhookSecretEnv: SHOP_SECRET}]\nchains: [{chainKey: base, rpc: ['https://b.example']}]\n"
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	cfg, err := config.Load(path, config.System)
	if err != nil || cfg.Merchants["a"].WebhookSecret != "whsec_c2hvcCBzaG9wIHNob3AgISE=" {
		t.Errorf("Load = %+v, %v", cfg, err)
	}
}

func TestCheckLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:0": true, "127.9.9.9:80": true, "[::1]:8080": true, "localhost:8080": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "192.168.1.2:80": false, "example.com:80": false,
		"127.0.0.1:65535": true, "127.0.0.1:65536": false, "127.0.0.1:-1": false, "127.0.0.1:": false, "127.0.0.1:http": false,
		"127.0.0.1": false, "": false, "127.0.0.1.example.com:80": false,
	} {
		expect.Equal(t, config.CheckLoopback(listen) == nil, want, "CheckLoopback(%q) accepts:", listen)
	}
}

// TestURLErrorsShowNoCredentials checks that the error for a refused URL shows the URL only up to its host.
func TestURLErrorsShowNoCredentials(t *testing.T) {
	for text, shown := range map[string]string{
		"": `is ""`, "shop.example": `is "shop.example"`, "ws://node.example": `is "ws://node.example"`, "ftp://shop.example": `is "ftp://shop.example"`,
		"shop.example/hunter2": `is "shop.example/…"`, "ftp://shop.example?k=hunter2": `is "ftp://shop.example?…"`,
		"shop.example#hunter2":            `is "shop.example#…"`,
		"ftp://me:hunter2@shop.example/x": `is "ftp://…"`, "me:hunter2@shop.example": `is "…"`, "hunter2://@": `is "hunter2://…"`,
		"ftp://me:hun/ter2@shop.example": `is "ftp://…"`, "hun ter2://me@shop.example": `is "…"`,
		"https://me:hunter2@shop.example:port": `is "https://…"`, "http:///hunter2": `is "http:///…"`,
	} {
		err := config.CheckWebhookURL(text)
		if err == nil || !strings.HasPrefix(err.Error(), shown+"; want ") {
			t.Errorf("%q: %v; want it shown as %s", text, err, shown)
		}
		if err := config.CheckNodeURL(text); err == nil {
			t.Errorf("%q is accepted as a node's", text)
		}
	}
	expect.NoError(t, config.CheckNodeURL("https://node.example/key"))
	for text, shown := range map[string]string{
		"postgresqls://me:hunter2@db": "is postgresqls:…;", "host=db password=hunter2": "names no kind", "password=hunter2:x": "names no kind", "hunter2": "names no kind",
	} {
		_, err := config.Parse([]byte(strings.Replace(full, "postgres://quittance@db/quittance", fmt.Sprintf("%q", text), 1)), secrets)
		if err == nil || !strings.Contains(err.Error(), "database: "+shown) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("database %q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add(`{"listen": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := config.Parse([]byte(text), secrets)
		if err != nil {
			return
		}
		if len(cfg.Addresses) == 0 || len(cfg.Merchants) == 0 || len(cfg.Chains) == 0 {
			t.Errorf("%q was accepted as %+v", text, cfg)
		}
		for id, m := range cfg.Merchants {
			if !invoice.ValidMerchantID(id) || (m.WebhookSecret == "") != (m.WebhookURL == "") {
				t.Errorf("merchant %+v was accepted", m)
			}
		}
		for _, c := range cfg.Chains {
			if c.ID == 0 || len(c.RPC) == 0 || len(c.Tokens) == 0 || (c.OperatorKey != nil && c.Registry.IsZero()) {
				t.Errorf("chain %+v was accepted", c.Chain)
			}
		}
	})
}

// TestHTTP reads the public names and the stop delay.
func TestHTTP(t *testing.T) {
	for text, ok := range map[string]bool{
		"{hosts: [pay.example.com, Pay2.Example.com, localhost], stopDelay: 10s}": true,
		"{stopDelay: 0s}": true, "{stopDelay: 25s}": true, "{}": true,
		"{stopDelay: 26s}": false, "{stopDelay: -1s}": false, "{stopDelay: 10}": false, "{stopDelay: soon}": false,
		"{hosts: [https://pay.example.com]}": false, "{hosts: ['pay.example.com:443']}": false, "{hosts: ['*.example.com']}": false,
		"{hosts: ['']}": false, "{hosts: [a.example, A.example]}": false, "{hosts: [a.example/path]}": false, "{hosts: [-a.example]}": false,
	} {
		cfg, err := config.Parse([]byte(full+"http: "+text+"\n"), secrets)
		if (err == nil) != ok {
			t.Errorf("%s: %v, want accepted %t", text, err, ok)
		}
		if strings.Contains(text, "Pay2") && (err != nil || cfg.StopDelay != 10*time.Second || cfg.Hosts[1] != "pay2.example.com") {
			t.Errorf("%s is read as %v, %s", text, cfg.Hosts, cfg.StopDelay)
		}
	}
	if cfg, err := config.Parse([]byte(full), secrets); err != nil || cfg.StopDelay != config.DefaultStopDelay || len(cfg.Hosts) > 0 {
		t.Errorf("the defaults are %v, %s, %v", cfg.Hosts, cfg.StopDelay, err)
	}
}

// TestModes warns of a secret's file that others may read, and refuses one that others may write.
func TestModes(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o600: "", 0o400: "", 0o700: "", 0o640: "warning", 0o644: "warning", 0o444: "warning", 0o604: "warning",
		0o620: "error", 0o602: "error", 0o666: "error", 0o777: "error",
	} {
		src := secrets
		src.Mode = func(string) (fs.FileMode, error) { return mode, nil }
		cfg, err := config.Parse([]byte(full), src)
		text := strings.Join(cfg.Warnings, "\n")
		if (err != nil) != (want == "error") || (text != "") != (want == "warning") {
			t.Errorf("mode %#o: %v, warnings %q; want %q", mode, err, text, want)
		}
		if err != nil {
			text = err.Error()
		}
		if want != "" && (!strings.Contains(text, fmt.Sprintf("%#o", mode)) || !strings.Contains(text, "/run/secrets/shop") || strings.Contains(text, "whsec_")) {
			t.Errorf("mode %#o: it says %s", mode, text)
		}
	}
}

// TestAcceptedButWrong refuses settings that would be read otherwise than they look, or can never work.
func TestAcceptedButWrong(t *testing.T) {
	t.Parallel()
	const minimal = "chains: [{chainKey: base, rpc: [https://node.example]}]\n"
	merchant := func(url string) string {
		return minimal + "merchants: [{id: shop, webhookUrl: \"" + url + "\", webhookSecretEnv: SHOP_SECRET}]\n"
	}
	hook := func(url string) string {
		return minimal + "screening: {url: \"" + url + "\", secretEnv: SHOP_SECRET, mode: closed}\n"
	}
	const allow = "webhooks: {allow: [10.0.0.0/8]}\n"
	for text, want := range map[string]string{
		minimal:                                   "",
		minimal + "---\n":                         "",
		minimal + "---\nlimits: {perOwner: 1}\n":  "it has a second document behind ---",
		minimal + "limits: {perOwner: 10}\n":      "",
		minimal + "limits: {perOwner: 010}\n":     `limits.perOwner: is "010"`,
		"\ufeff" + minimal:                        "",
		minimal + "database: 'sqlite:'\n":         "database: names no file",
		minimal + "database: 'sqlite::memory:'\n": "database: names no file",
		minimal + "database: sqlite:a?mode=ro\n":  "database: names no file",
		merchant("https://shop.example/"):         "",
		merchant("http://shop.example/"):          "merchants[0].webhookUrl: is \"http://shop.example/…\"; want https://",
		merchant("http://10.0.0.1/") + allow:      "",
		hook("https://hook.example/"):             "",
		hook("http://hook.example/"):              "screening.url: is \"http://hook.example/…\"; want https://",
		hook("http://hook.example/") + allow:      "",
	} {
		if _, err := config.Parse([]byte(text), secrets); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	src := config.Source{Env: func(string) (string, bool) { return "whsec_c2hvcCBzaG9wIHNob3AgISE=\n", true }}
	cfg, err := config.Parse([]byte(merchant("https://shop.example/")), src)
	if got := cfg.Merchants["shop"].WebhookSecret; err != nil || got != "whsec_c2hvcCBzaG9wIHNob3AgISE=" {
		t.Errorf("the secret of the environment is %q, %v", got, err)
	}
}
