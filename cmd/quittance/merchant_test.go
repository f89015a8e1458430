package main

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestMerchant creates, changes, shows and lists merchants, and creates a key of one.
func TestMerchant(t *testing.T) {
	url := dbtest.SQLite(t)
	config := auditConfig(t, url)
	command := func(wantCode int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs strings.Builder
		args = append(args, "--config", config)
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs}, args); code != wantCode {
			t.Errorf("%v exits %d, want %d: %s", args, code, wantCode, errs.String())
		}
		return out.String(), errs.String()
	}
	logo := filepath.Join(t.TempDir(), "logo.png")
	file, err := os.Create(logo)
	expect.OK(t, err)
	expect.OK(t, png.Encode(file, image.NewGray(image.Rect(0, 0, 30, 20))))
	expect.OK(t, file.Close())
	const home, bank = "base=0x0100000000000000000000000000000000000000", "base=0x0200000000000000000000000000000000000000"
	got, _ := command(0, "merchant", "create", "acme", "--name", "Acme", "--tolerance", "0.5%", "--default-address", home, "--logo", logo)
	const want = `id               acme
source           database
name             Acme
color            -
support contact  -
statement        -
tolerance        0.5%
collection       direct
time zone        UTC
logo             30 × 20 pixels
default address  base=0x0100000000000000000000000000000000000000
`
	if got != want {
		t.Errorf("created:\n%s, want\n%s", got, want)
	}
	if _, errs := command(1, "merchant", "create", "acme", "--name", "Acme"); !strings.Contains(errs, "the merchant exists") {
		t.Errorf("created twice: %s", errs)
	}
	if _, errs := command(1, "merchant", "update", "cafe", "--name", "Café"); !strings.Contains(errs, "set in the configuration") {
		t.Errorf("a configured one: %s", errs)
	}
	if got, _ := command(0, "merchant", "update", "acme", "--allow-address", home); !strings.Contains(got, "allowed address  "+home) {
		t.Errorf("the first list:\n%s", got)
	}
	if got, _ := command(0, "merchant", "update", "acme", "--allow-address", home, "--allow-address", bank); !strings.Contains(got, "allowed from ") {
		t.Errorf("the next list:\n%s", got)
	}
	if got, _ := command(0, "merchant", "update", "acme", "--allow-address", home, "--allow-address", bank, "--now"); !strings.Contains(got, "allowed address  "+bank) {
		t.Errorf("at once:\n%s", got)
	}
	if _, errs := command(1, "merchant", "update", "acme", "--allow-address", bank); !strings.Contains(errs, "--allow-address must contain every default address") {
		t.Errorf("without the default: %s", errs)
	}
	if got, _ := command(0, "merchant", "update", "acme", "--no-logo", "--no-default-addresses"); strings.Contains(got, "logo") || strings.Contains(got, "default address") {
		t.Errorf("without logo and default addresses:\n%s", got)
	}
	if got, _ := command(0, "merchant", "show", "acme"); strings.Contains(got, "logo") || strings.Contains(got, "default address") {
		t.Errorf("shown without logo and default addresses:\n%s", got)
	}
	if got, _ := command(0, "merchant", "update", "acme", "--return-host", "shop.example", "--return-host", "localhost"); !strings.Contains(got, "return host      localhost\nreturn host      shop.example\n") {
		t.Errorf("with return hosts:\n%s", got)
	}
	if got, _ := command(0, "merchant", "update", "acme", "--no-return-hosts"); strings.Contains(got, "return host") {
		t.Errorf("without return hosts:\n%s", got)
	}
	command(1, "merchant", "update", "acme", "--return-host", "https://shop.example")
	command(2, "merchant", "update", "acme", "--no-return-hosts", "--return-host", "shop.example")
	command(0, "merchant", "update", "acme", "--no-logo")
	command(2, "merchant", "update", "acme", "--no-logo", "--logo", logo)
	command(2, "merchant", "update", "acme", "--no-default-addresses", "--default-address", home)
	command(2, "merchant", "update", "acme", "--default-address", home, "--default-address", bank)
	command(1, "merchant", "update", "acme", "--logo", "/dev/zero")
	command(2, "merchant", "update", "acme", "--allow-address", "base:0x1")
	command(2, "merchant", "update", "acme", "--tolerance", "x")
	command(2, "merchant", "show")
	if _, errs := command(1, "merchant", "show", "zeta"); !strings.Contains(errs, "there is no such merchant") {
		t.Errorf("of none: %s", errs)
	}
	if got, _ := command(0, "merchant", "show", "acme", "--json"); !strings.HasPrefix(got, `{"merchant":{"id":"acme","source":"database","name":"Acme"`) {
		t.Errorf("shown: %s", got)
	}
	const all = `ID    SOURCE    NAME  ALLOWED ADDRESSES
acme  database  Acme  2
cafe  config    -     any
`
	if got, _ := command(0, "merchant", "list"); got != all {
		t.Errorf("listed:\n%s, want\n%s", got, all)
	}
	command(0, "key", "create", "--name", "shop", "--merchant", "acme")
	command(1, "key", "create", "--name", "shop", "--merchant", "zeta")

	entries, err := access.NewReader(dbtest.Open(t, url)).AuditEntries(t.Context(), access.AuditFilter{MerchantID: "acme", Action: access.ActionMerchantCreate, Limit: 9})
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Actor, "cli:") {
		t.Errorf("the log: %+v, %v", entries, err)
	}
}

// TestSetup makes a link to the setup page. The audit log names who made it.
func TestSetup(t *testing.T) {
	url := dbtest.SQLite(t)
	config := auditConfig(t, url)
	command := func(args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs, zone: time.UTC}, append(args, "--config", config)); code != 0 {
			t.Errorf("%v exits %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	link := command("setup")
	if !strings.HasPrefix(link, "http://127.0.0.1:1/dashboard/sign-in?link="+access.PrefixLinkToken) || !strings.HasSuffix(link, "&next=%2Fdashboard%2Foperator%2Fsetup\n") {
		t.Errorf("it prints %s", link)
	}
	log := command("audit", "list")
	if strings.Count(log, access.ActorCommand) != 2 || !strings.Contains(log, string(access.ActionKeyCreate)) || !strings.Contains(log, string(access.ActionSignInLink)) {
		t.Errorf("the audit log is\n%s", log)
	}
}
