// Package examples_test runs the programs in the README against a development world.
package examples_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// maxLines is the maximum number of lines, without blank ones, for creating an invoice and handling invoice.paid.
const maxLines = 20

// TestExtraReadmeProgram builds the README's program, pays its invoice, and waits until it has
// handled the webhook.
func TestExtraReadmeProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	text := devtest.Block(t, testdeps.Repo("README.md"), "go")
	if n := devtest.Lines(text); n > maxLines {
		t.Errorf("the program has %d lines, want at most %d", n, maxLines)
	}
	if same, err := os.ReadFile("quickstart/main.go"); err != nil || string(same) != text {
		t.Errorf("examples/quickstart/main.go is not the README's program (%v)", err)
	}
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	world := devtest.Start(t)
	address := devtest.FreeAddress(t)
	merchant := world.Merchant(t, "shop", "http://"+address+"/webhooks")
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "QUITTANCE_URL="+world.Info.BaseURL, "QUITTANCE_API_KEY="+merchant.Key, "WEBHOOK_SECRET="+merchant.Secret, "ADDR="+address)
	invoice := devtest.Run(t, cmd).Await(`pay at \S+/checkout/(inv_\w+)`)
	world.Pay(t, invoice)
	world.AwaitDelivery(t, invoice, apitypes.EventInvoicePaid)
	if _, err := os.Stat(filepath.Join(dir, invoice+".paid")); err != nil {
		t.Error(err)
	}
}

// TestExtraQuickstart runs the script of the quickstart.
func TestExtraQuickstart(t *testing.T) {
	t.Parallel()
	if _, err := testdeps.Program(t.Context(), "examples", "curl"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "examples/quickstart/run.sh")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	for _, name := range []string{"API_PORT", "SHOP_PORT"} {
		_, port, err := net.SplitHostPort(devtest.FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+port)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"status":"paid"`) {
		t.Errorf("%v: %s", err, out)
	}
}
