package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// quick is the block time of worlds in which a test waits for payments.
const quick = "200ms"

// TestDevFlags starts worlds with invalid flags.
func TestDevFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, says string
		args       []string
	}{
		{"all interfaces", "loopback", []string{"--listen", "0.0.0.0:0"}},
		{"no host", "loopback", []string{"--listen", ":8080"}},
		{"another host", "loopback", []string{"--listen", "192.0.2.1:8080"}},
		{"a name", "IP address", []string{"--listen", "example.com:8080"}},
		{"IPv6", "loopback", []string{"--listen", "[::]:0"}},
		{"no port", "--listen", []string{"--listen", "127.0.0.1"}},
		{"no time", "block-time", []string{"--block-time", "soon"}},
		{"no unit", "block-time", []string{"--block-time", "1"}},
		{"too fast", "block-time", []string{"--block-time", "1ms"}},
		{"negative", "block-time", []string{"--block-time", "-1s"}},
		{"too slow", "block-time", []string{"--block-time", "11m"}},
		{"no URL", "webhook-url", []string{"--webhook-url", "example"}},
		{"wrong scheme", "webhook-url", []string{"--webhook-url", "ftp://example.com/"}},
		{"unknown", "unknown flag: --colour", []string{"--colour"}},
		{"an argument", `unexpected argument "now"`, []string{"now"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			c := launch(t, append([]string{"dev", "--data", data}, test.args...)...)
			if code := c.exit(t, patience); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if got := c.stderr.String(); !strings.Contains(got, test.says) || strings.Count(got, "\n") != 1 || strings.Contains(got, "goroutine") {
				t.Errorf("it said %q; want one line with %q", got, test.says)
			}
			if _, err := os.Stat(data); err == nil {
				t.Error("it made the folder")
			}
		})
	}
}

// TestDevInfo reads the info file as JSON, without the Go types.
func TestDevInfo(t *testing.T) {
	t.Parallel()
	w, c := startWorld(t, "--block-time", quiet)
	raw, err := os.ReadFile(w.file)
	expect.OK(t, err)
	var got map[string]any
	expect.OK(t, json.Unmarshal(raw, &got))
	want := []string{
		"baseUrl", "chain.authorizationRelay", "chain.chainId", "chain.chainKey", "chain.depositFactory", "chain.finality", "chain.registry", "chain.rpcUrl", "chain.token",
		"merchant.address", "merchant.id", "merchant.key", "merchant.name", "merchant.privateKey", "merchant.webhookSecret", "payer.address",
		"payer.privateKey", "provider.name", "provider.webhookSecret",
	}
	expect.NoDiff(t, cmp.Diff(want, paths("", got)), "members")
	entries, err := os.ReadDir(filepath.Dir(w.file))
	if err != nil || len(entries) != 2 {
		t.Errorf("there is more than the file and the folder: %v, %v", entries, err)
	}
	if stat, err := os.Stat(w.file); err != nil || runtime.GOOS != "windows" && stat.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the keys: %v, %v", stat.Mode(), err)
	}
	if out := c.stdout.String(); strings.Contains(out, "\x1b") {
		t.Errorf("escape codes in a pipe:\n%s", out)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		var a answer
		err := await(within(t, patience), func() bool { // the chain's first blocks must be indexed
			a = w.do(http.MethodGet, path, "")
			return a.status == http.StatusOK
		})
		if err != nil {
			t.Errorf("%s answers %d %s", path, a.status, a.body)
		}
	}
}

// paths returns the paths of the members of a JSON object that are neither empty nor zero.
func paths(prefix string, o map[string]any) []string {
	var all []string
	for name, v := range o {
		switch v := v.(type) {
		case map[string]any:
			all = append(all, paths(prefix+name+".", v)...)
		case string:
			if v != "" {
				all = append(all, prefix+name)
			}
		case float64:
			if v > 0 {
				all = append(all, prefix+name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestExtraDevInfoUnwritable checks that the program ends when it cannot write the info file.
func TestExtraDevInfoUnwritable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--info", filepath.Join(t.TempDir(), "missing", "info.json"))
	c := w.begin()
	if code := c.exit(t, patience); code != 1 || !strings.Contains(c.stderr.String(), "info.json") {
		t.Errorf("exit code %d, it said %q", code, c.stderr.String())
	}
}

// TestExtraDevTwice starts a second process on the data of a running world.
func TestExtraDevTwice(t *testing.T) {
	t.Parallel()
	w, c := startWorld(t, "--block-time", quiet)
	second := launch(t, "dev", "--listen", "127.0.0.1:0", "--data", w.dir)
	if code := second.exit(t, patience); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	got := second.stderr.String()
	if !strings.Contains(got, w.dir) || !strings.Contains(got, "use") || strings.Count(got, "\n") != 1 {
		t.Errorf("it said %q; want one line that names the folder and says that it is in use", got)
	}
	if c.ended() || w.do(http.MethodGet, "/healthz", "").status != http.StatusOK {
		t.Error("the first is not well")
	}
	taken := launch(t, "dev", "--listen", strings.TrimPrefix(w.info.Load().BaseURL, "http://"), "--data", t.TempDir())
	if code := taken.exit(t, patience); code != 1 || !strings.Contains(taken.stderr.String(), "in use") {
		t.Errorf("with a taken port: exit code %d, it said %q", code, taken.stderr.String())
	}
}

// TestDevUnknownMerchant sets an endpoint of a merchant that the world does not have, and runs
// the command that the program prints.
func TestDevUnknownMerchant(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, c := startWorld(t, "--block-time", quiet, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	draft := w.draft("1000000")
	draft.MerchantID = "newcomer"
	e := r.await(within(t, patience), webhook.InvoiceCreated, w.create(draft).ID)
	if e.MerchantID != "newcomer" {
		t.Errorf("the event is of merchant %q", e.MerchantID)
	}
	made := w.paste(c)
	if made.Invoice.Amount != "4900000" || made.Invoice.MerchantID != dev.MerchantID {
		t.Errorf("the printed command made %+v", made)
	}
	r.await(within(t, patience), webhook.InvoiceCreated, made.ID)
	r.clean()
}

// paste runs the printed curl command, or sends its request where curl is not installed.
func (w *world) paste(c *child) apitypes.CreateInvoiceResponse {
	w.Helper()
	var command string
	for line := range strings.Lines(c.stdout.String()) {
		if strings.Contains(line, "curl") && strings.Contains(line, "-d ") {
			command = strings.TrimSpace(line)
		}
	}
	if command == "" {
		w.Fatalf("no curl command is printed:\n%s", c.stdout.String())
	}
	var made apitypes.CreateInvoiceResponse
	if _, err := exec.LookPath("curl"); err == nil {
		out, err := exec.CommandContext(w.Context(), "sh", "-c", command).CombinedOutput()
		if err == nil {
			err = json.Unmarshal(out, &made)
		}
		if err != nil {
			w.Fatalf("%s: %v\n%s", command, err, out)
		}
		return made
	}
	_, body, _ := strings.Cut(command, "-d '")
	head, _, _ := strings.Cut(body, "'$((")
	return decoded[apitypes.CreateInvoiceResponse](w, w.post(head+strconv.FormatInt(time.Now().Unix()+3600, 10)+"}"), http.StatusCreated)
}
