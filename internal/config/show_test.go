package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// show returns what Show writes for the content of a file.
func show(t *testing.T, text string) string {
	t.Helper()
	src := secrets
	src.File = func(path string) ([]byte, error) {
		if path == "quittance.yaml" {
			return []byte(text), nil
		}
		return secrets.File(path)
	}
	out, err := config.Show("quittance.yaml", src)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(out)
}

// TestShow shows a configuration twice: the output is a configuration with the same settings in effect.
func TestShow(t *testing.T) {
	shown := show(t, full)
	expect.NoDiff(t, cmp.Diff(shown, show(t, shown)), "what is shown of what is shown differs")
	for _, want := range []string{
		"database: postgres://…\n", "  webhookSecretEnv: SHOP_SECRET\n", "masterKeyEnv: MASTER_KEY\n", "  - urlFile: /run/secrets/node\n",
		"  - https://base.example/…\n", "  chainId: 8453\n", "  finality: safe\n", "  quorum: 2\n", "maxFeeGwei: 2\n",
		"  depositFactory: ", "  authorizationRelay: ",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	for _, secret := range []string{"hunter2", "v1/key", "whsec_", operatorKey, masterKey} {
		if strings.Contains(shown, secret) {
			t.Errorf("it shows %q", secret)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
}

// TestShowStandby shows a standby as it was written, without its account.
func TestShowStandby(t *testing.T) {
	for database, want := range map[string]string{
		"{url: postgres://db/quittance, readOnly: postgres://quittance@db2/quittance}": "database:\n  url: postgres://db/…\n  readOnly: postgres://…\n",
		"{urlEnv: DATABASE_URL, readOnly: {urlEnv: DATABASE_URL}}":                     "database:\n  urlEnv: DATABASE_URL\n  readOnly:\n    urlEnv: DATABASE_URL\n",
	} {
		shown := show(t, strings.Replace(full, "postgres://quittance@db/quittance", database, 1))
		if !strings.Contains(shown, want) || shown != show(t, shown) {
			t.Errorf("%s is shown as\n%s", database, shown)
		}
	}
}

// TestShowFillsDefaults wants each setting with a default in docs/configuration.md to be shown with it
// if the file leaves it out.
func TestShowFillsDefaults(t *testing.T) {
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/configuration.md")))
	shown := show(t, `
merchants: [{id: shop}]
publicUrl: https://pay.example
smtp: {host: mail.example, from: receipts@pay.example}
screening: {url: "https://screening.example", secretEnv: CIRCLE_SECRET, mode: open}
providers: [{name: circle, secretEnv: CIRCLE_SECRET}]
chains: [{chainKey: base, rpc: ["http://127.0.0.1:8545"]}]
`)
	found := 0
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		setting, value := row[1], row[2]
		if strings.Count(row[0], "|") != 3 || setting == "ethereum" {
			continue
		}
		found++
		name := setting[strings.LastIndexByte(setting, '.')+1:]
		if !regexp.MustCompile(`(?m)^[ -]*` + regexp.QuoteMeta(name) + `: "?` + regexp.QuoteMeta(value) + `"?$`).MatchString(shown) {
			t.Errorf("it lacks %s, whose default is %s", setting, value)
		}
	}
	if found < 6 {
		t.Errorf("docs/configuration.md has %d defaults", found)
	}
	if t.Failed() {
		t.Log(shown)
	}
}
