// Package examples_test runs the programs in the README against a development world.
package examples_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// maxLines is the maximum number of lines, without blank ones, for creating an invoice and handling invoice.paid.
const maxLines = 20

// TestExtraReadmeProgram builds the README's program, pays its invoice, and waits until it has handled the webhook.
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
	expect.OK(t, os.WriteFile(source, []byte(text), 0o600))
	program := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	world := devtest.Start(t)
	address := devtest.FreeAddress(t)
	_, secret, err := world.Operator.PutWebhook(t.Context(), world.Info.Merchant.ID, "http://"+address+"/webhooks")
	expect.OK(t, err)
	variables := []string{"QUITTANCE_URL=" + world.Info.BaseURL, "QUITTANCE_API_KEY=" + world.Info.Merchant.Key, "WEBHOOK_SECRET=" + secret, "ADDR=" + address}
	start := func(variables ...string) *devtest.Program {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = variables
		return devtest.Run(t, cmd)
	}
	for i, missing := range variables {
		name, _, _ := strings.Cut(missing, "=")
		start(slices.Delete(slices.Clone(variables), i, i+1)...).Await(`the environment variable (` + name + `) is not set`)
	}
	running := start(variables...)
	invoice := running.Await(`pay at \S+/checkout/(inv_\w+)`)
	world.Pay(t, invoice)
	if paid := running.Await(`paid (inv_\w+)`); paid != invoice {
		t.Errorf("it handled %s, want %s", paid, invoice)
	}
}

// TestExtraQuickstart runs the script of the quickstart.
func TestExtraQuickstart(t *testing.T) {
	t.Parallel()
	expect.Success(t)(testdeps.Program(t.Context(), "examples", "curl"))
	cmd := exec.CommandContext(t.Context(), "sh", "examples/quickstart/run.sh")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	for _, name := range []string{"API_PORT", "SHOP_PORT"} {
		_, port, err := net.SplitHostPort(devtest.FreeAddress(t))
		expect.OK(t, err)
		cmd.Env = append(cmd.Env, name+"="+port)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"status":"paid"`) {
		t.Errorf("%v: %s", err, out)
	}
}
