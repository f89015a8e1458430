package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
)

const operatorKey = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"

// secrets is a world with one variable and one file of each kind.
var secrets = config.Source{
	Env: func(name string) (string, bool) {
		v, ok := map[string]string{
			"SHOP_SECRET": "whsec_shop", "CIRCLE_SECRET": "provider-secret", "OPERATOR_KEY": operatorKey, "EMPTY": "",
			"NOT_A_KEY": "hunter2",
		}[name]
		return v, ok
	},
	File: func(path string) ([]byte, error) {
		if path == "/run/secrets/shop" {
			return []byte("whsec_from_file\n"), nil
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
  - id: other.shop
    webhookUrl: http://127.0.0.1:9999/
    webhookSecretFile: /run/secrets/shop
providers:
  - name: circle
    secretEnv: CIRCLE_SECRET
    chains: {BASE: base}
    currencies: {USD: USDC}
chains:
  - chainKey: base
    rpc: [https://base.example/v1/key, wss://base.example/ws]
    registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3
    startBlock: 0
    operatorKeyEnv: OPERATOR_KEY
  - chainKey: house
    chainId: 31337
    rpc: [http://127.0.0.1:8545]
    finality: 3
    tokens:
      - {currency: USDC, address: 0x5FbDB2315678afecb367f032d93F642f64180aa3, decimals: 6}
`

func TestParse(t *testing.T) {
	cfg, err := config.Parse([]byte(full), secrets)
	if err != nil {
		t.Fatal(err)
	}
	base, house := cfg.Chains[0], cfg.Chains[1]
	if base.ID != 8453 || base.Finality != (chain.Finality{Tag: chain.TagSafe}) || base.OperatorKey == nil {
		t.Errorf("base = %+v; what is left out should be filled in", base)
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
	if want := house.Tokens[0].Address; want != base.Registry {
		t.Errorf("an address without quotes was read as %s", want)
	}
	want := []config.Merchant{
		{ID: "shop", WebhookURL: "https://shop.example/webhooks", WebhookSecret: "whsec_shop"},
		{ID: "other.shop", WebhookURL: "http://127.0.0.1:9999/", WebhookSecret: "whsec_from_file"},
	}
	if diff := cmp.Diff(want, cfg.Merchants); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]config.Provider{{
		Name: "circle", Secret: "provider-secret", Chains: map[string]string{"BASE": "base"}, Currencies: map[string]string{"USD": "USDC"},
	}}, cfg.Providers); diff != "" {
		t.Error(diff)
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
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != config.DefaultListen || cfg.Database != config.DefaultDatabase {
		t.Errorf("defaults: %q, %q", cfg.Listen, cfg.Database)
	}
	if want := (chain.Finality{Tag: chain.TagFinalized, Depth: 64}); cfg.Chains[0].Finality != want {
		t.Errorf("finality = %v", cfg.Chains[0].Finality)
	}
}

func TestProviderDefaults(t *testing.T) {
	cfg, err := config.Parse([]byte(strings.Replace(full, "    chains: {BASE: base}\n    currencies: {USD: USDC}\n", "", 1)), secrets)
	if err != nil {
		t.Fatal(err)
	}
	p := cfg.Providers[0]
	for name, key := range map[string]string{"ETH": "ethereum", "MATIC": "polygon", "POLY": "polygon", "AVAX": "avalanche", "BASE-SEPOLIA": "base-sepolia"} {
		if p.Chains[name] != key {
			t.Errorf("%s is %q; want %q", name, p.Chains[name], key)
		}
		if _, ok := chain.Lookup(key); !ok {
			t.Errorf("%q is not built in", key)
		}
	}
	if p.Currencies["USD"] != "USDC" {
		t.Errorf("USD is %q", p.Currencies["USD"])
	}
}

// TestWrong breaks one setting at a time and expects the error to name it.
func TestWrong(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown setting":       {"listen:", "listn:", "there is no setting \"listn\" here"},
		"unknown in a list":     {"    webhookUrl: https", "    webhookURL: https", "webhookURL"},
		"a secret in the file":  {"    webhookSecretEnv: SHOP_SECRET", "    webhookSecret: hunter2", "webhookSecret"},
		"duplicate setting":     {"listen: 127.0.0.1:9000", "listen: 127.0.0.1:9000\nlisten: 127.0.0.1:9001", "listen"},
		"not a text":            {"listen: 127.0.0.1:9000", "listen: [1]", "line 2, column 9: listen: want a text"},
		"not a list":            {"rpc: [http://127.0.0.1:8545]", "rpc: http://127.0.0.1:8545", "rpc: want a list"},
		"not settings":          {"{BASE: base}", "[base]", "chains: want settings, each as NAME: VALUE"},
		"finality, a list":      {"finality: 3", "finality: [1]", "chains[1].finality: is"},
		"chain id, a text":      {"chainId: 31337", "chainId: mine", "chains[1].chainId: is \"mine\"; want a whole number"},
		"chain id 0":            {"chainId: 31337", "chainId: 0", "chains[1].chainId: is \"0\"; want a whole number of 1"},
		"start block, a part":   {"startBlock: 0", "startBlock: 1.5", "chains[0].startBlock: is \"1.5\"; want a whole number"},
		"decimals, a part":      {"decimals: 6", "decimals: 5.9", "chains[1].tokens[0].decimals: is \"5.9\""},
		"listens to all":        {"127.0.0.1:9000", "0.0.0.0:9000", "listen: is \"0.0.0.0:9000\", which others can reach"},
		"no port":               {"127.0.0.1:9000", "127.0.0.1", "want an address and a port"},
		"database":              {"postgres://quittance@db/quittance", "mysql://db", "database: is mysql:…; want sqlite:PATH or postgres://"},
		"merchant id":           {"id: shop", "id: the shop", "merchants[0].id"},
		"merchant twice":        {"id: other.shop", "id: shop", "merchants[1].id: \"shop\" stands there twice"},
		"webhook URL":           {"https://shop.example/webhooks", "shop.example", "merchants[0].webhookUrl"},
		"variable not set":      {"SHOP_SECRET", "NOWHERE", "the environment variable NOWHERE is not set"},
		"variable empty":        {"SHOP_SECRET", "EMPTY", "merchants[0].webhookSecret: is empty"},
		"both secrets":          {"webhookSecretEnv: SHOP_SECRET", "webhookSecretEnv: SHOP_SECRET\n    webhookSecretFile: /run/secrets/shop", "merchants[0].webhookSecret: want either"},
		"no secret":             {"    webhookSecretEnv: SHOP_SECRET\n", "", "merchants[0].webhookSecret: want either"},
		"file missing":          {"/run/secrets/shop", "/nowhere", "merchants[1].webhookSecretFile: open /nowhere"},
		"provider's chain":      {"{BASE: base}", "{BASE: bass}", "providers[0].chains.BASE: is \"bass\""},
		"provider's name":       {"name: circle", "name: a/b", "providers[0].name"},
		"chain key missing":     {"chainKey: base\n", "chainId: 8453\n", "chains[0].chainKey"},
		"chain twice":           {"chainKey: house", "chainKey: base", "chains[1].chainKey: \"base\" stands there twice"},
		"chain id differs":      {"chainKey: base\n", "chainKey: base\n    chainId: 1\n", "chains[0].chainId: is 1; base has 8453"},
		"chain id missing":      {"    chainId: 31337\n", "", "chains[1].chainId: is missing"},
		"no node":               {"rpc: [http://127.0.0.1:8545]", "rpc: []", "chains[1].rpc: want at least one"},
		"node's URL":            {"http://127.0.0.1:8545", "127.0.0.1:8545", "chains[1].rpc[0]"},
		"finality missing":      {"    finality: 3\n", "", "chains[1].finality: is missing"},
		"finality":              {"finality: 3", "finality: soon", "\n  chains[1].finality: is \"soon\"; want a number of blocks"},
		"finality too deep":     {"finality: 3", "finality: 10001", "chains[1].finality: is \"10001\"; at most 10000"},
		"finality negative":     {"finality: 3", "finality: -1", "chains[1].finality: is \"-1\""},
		"no token":              {"    tokens:\n      - {currency: USDC, address: 0x5FbDB2315678afecb367f032d93F642f64180aa3, decimals: 6}\n", "", "chains[1].tokens: want at least one"},
		"token's checksum":      {"address: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "address: 0x5fbDB2315678afecb367f032d93F642f64180aa3", "chains[1].tokens[0].address"},
		"decimals":              {"decimals: 6", "decimals: 37", "chains[1].tokens[0].decimals: is \"37\"; want a whole number of 0 to 36"},
		"registry, a list":      {"registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "registry: [1]", "chains[0].registry"},
		"registry":              {"registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3", "registry: 0x12", "chains[0].registry"},
		"operator, no registry": {"    registry: 0x5FbDB2315678afecb367f032d93F642f64180aa3\n", "", "chains[0].registry: is missing"},
		"operator key":          {"OPERATOR_KEY", "NOT_A_KEY", "chains[0].operatorKey: is not a private key"},
		"start block":           {"startBlock: 0", "startBlock: -1", "chains[0].startBlock: is \"-1\"; want a whole number"},
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
			for _, secret := range []string{"whsec_shop", "provider-secret", operatorKey[2:], "whsec_from_file"} {
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
	for _, want := range []string{"listen", "database", "merchants", "chains"} {
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
	comment := full + "#" + strings.Repeat("x", config.MaxSize-len(full)-1)
	if _, err := config.Parse([]byte(comment), secrets); err != nil {
		t.Errorf("a file of the largest size is refused: %v", err)
	}
	if _, err := config.Parse([]byte(comment+"x"), secrets); err == nil {
		t.Error("a file over the largest size is accepted")
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	if _, err := config.Load(path, config.System); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	t.Setenv("SHOP_SECRET", "whsec_shop")
	text := "merchants: [{id: a, webhookUrl: 'https://a.example', webhookSecretEnv: SHOP_SECRET}]\nchains: [{chainKey: base, rpc: ['https://b.example']}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, config.System)
	if err != nil || cfg.Merchants[0].WebhookSecret != "whsec_shop" {
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
		if got := config.CheckLoopback(listen) == nil; got != want {
			t.Errorf("CheckLoopback(%q) accepts: %v; want %v", listen, got, want)
		}
	}
}

// TestURLErrorsShowNoCredentials has each URL refused, shown up to its host.
func TestURLErrorsShowNoCredentials(t *testing.T) {
	for text, shown := range map[string]string{
		"": `is ""`, "shop.example": `is "shop.example"`, "ftp://shop.example": `is "ftp://shop.example"`,
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
	if err := config.CheckNodeURL("wss://node.example/key"); err != nil {
		t.Error(err)
	}
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
		if config.CheckLoopback(cfg.Listen) != nil || len(cfg.Merchants) == 0 || len(cfg.Chains) == 0 {
			t.Errorf("%q was accepted as %+v", text, cfg)
		}
		for _, m := range cfg.Merchants {
			if !invoice.ValidMerchantID(m.ID) || m.WebhookSecret == "" {
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
