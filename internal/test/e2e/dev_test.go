package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	raw := expect.Must(os.ReadFile(w.file))
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

// TestExtraDevClock advances the clock of a world by an hour. An invoice that lives for an hour expires at once, and a
// failed delivery is retried at once. The receiver's clock is not advanced, and it accepts the delivery.
func TestExtraDevClock(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	failed := make(chan struct{})
	var once sync.Once
	r.behave(func(w http.ResponseWriter, _ *http.Request, _ event) {
		code := http.StatusNoContent
		once.Do(func() {
			code = http.StatusServiceUnavailable
			close(failed)
		})
		w.WriteHeader(code)
	})
	w, _ := startWorld(t, "--block-time", quick, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	ctx := within(t, patience)
	base := w.info.Load().BaseURL
	before, err := dev.Clock(ctx, base)
	if err != nil || before.AheadSeconds != 0 {
		t.Fatalf("the clock is %+v: %v", before, err)
	}
	draft := w.draft("4900000")
	draft.ExpiresAt = before.Now + 3600
	made := w.create(draft)
	select {
	case <-failed:
	case <-ctx.Done():
		t.Fatal("no delivery was attempted")
	}
	after, err := dev.Advance(ctx, base, time.Hour)
	if err != nil || after.AheadSeconds != 3600 || after.Now < before.Now+3600 {
		t.Fatalf("the clock is %+v after it was %+v: %v", after, before, err)
	}
	r.await(ctx, webhook.InvoiceCreated, made.ID)
	r.await(ctx, webhook.InvoiceExpired, made.ID)
	r.clean()
	if got, err := w.api().Invoice(ctx, made.ID); err != nil || got.Status != apitypes.StatusExpired {
		t.Errorf("the invoice is %s: %v", got.Status, err)
	}
	if head := w.newWallet("").head(ctx); head == nil || int64(head.Time) < after.Now {
		t.Errorf("the chain's head is %+v, want one dated %d or later", head, after.Now)
	}
	ready := string(w.do(http.MethodGet, "/readyz", "").body)
	if !strings.Contains(ready, `"ready":true`) || strings.Contains(ready, "skewSeconds") {
		t.Errorf("/readyz is %s", ready)
	}
}

// TestExtraDevControl calls each route that changes a world with values at and beyond its
// limits, and from another origin.
func TestExtraDevControl(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
	for _, c := range []struct{ path, body, want string }{
		{"clock/advance", `{"seconds":0}`, `"field":"seconds"`},
		{"clock/advance", `{"seconds":1}`, `"aheadSeconds":1}`},
		{"clock/advance", `{"seconds":2592000}`, `"aheadSeconds":2592001}`},
		{"clock/advance", `{"seconds":2592001}`, `"field":"seconds"`},
		{"clock/advance", `{"second":1}`, `unknown field \"second\"`},
		{"clock/advance", `{"seconds":1.5}`, `"code":"invalid_json"`},
		{"chain/hold", `{"seconds":601}`, `"field":"seconds"`},
		{"chain/hold", `{"seconds":600}`, `"head":`},
		{"chain/hold", `{"seconds":-1}`, `"field":"seconds"`},
		{"chain/hold", `{"seconds":0}`, `"head":`},
		{"chain/mine", `{"blocks":0}`, `"field":"blocks"`},
		{"chain/mine", `{"blocks":10}`, `"head":`},
		{"chain/mine", `{"blocks":11}`, `"field":"blocks"`},
		{"chain/reorg", `{"depth":0}`, `"field":"depth"`},
		{"chain/reorg", `{"depth":3}`, `"field":"depth"`},
		{"chain/reorg", `{"depth":2,"drop":true}`, `"head":`},
		{"chain/outage", `{"seconds":0}`, `"field":"seconds"`},
		{"chain/outage", `{"seconds":61}`, `"field":"seconds"`},
		{"chain/outage", `{"seconds":60}`, `"head":`},
		{"chain/outage", `{"seconds":1}`, `refuses requests already`},
	} {
		if got := string(w.do(http.MethodPost, "/dev/"+c.path, c.body).body); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, got, c.want)
		}
		if got := string(w.do(http.MethodPost, "/dev/"+c.path, c.body, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").body); !strings.Contains(got, "forbidden") {
			t.Errorf("%s from another origin: %s", c.path, got)
		}
	}
}

// TestExtraDevClockAfterRestart checks that the clock does not go back when a world restarts,
// nor the clock of deliveries.
func TestExtraDevClockAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--block-time", quick)
	for i := range int64(3) {
		c := w.start()
		at, err := dev.Clock(t.Context(), w.info.Load().BaseURL)
		if err != nil || at.AheadSeconds != i*7200 {
			t.Fatalf("the clock is %d s ahead, want %d: %v", at.AheadSeconds, i*7200, err)
		}
		expect.Success(t)(dev.Advance(t.Context(), w.info.Load().BaseURL, 2*time.Hour))
		if code := c.stop(t, os.Interrupt, patience); code != 0 {
			t.Errorf("it ended with %d", code)
		}
	}
}

// TestDemo runs the demo with its output in a pipe.
func TestDemo(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	c := launchWith(t, []string{"TMPDIR=" + tmp}, "demo")
	if code := c.exit(t, 60*time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	out := c.stdout.String()
	if strings.ContainsAny(out, "\x1b\r") {
		t.Error("it writes escape codes or progress into a pipe")
	}
	for typ, want := range map[string]int{
		webhook.InvoiceCreated: 6, webhook.InvoicePaid: 5, webhook.InvoiceExpired: 1, webhook.PaymentReceived: 6, webhook.PaymentRefunded: 1,
	} {
		if got := strings.Count(out, typ+" evt_"); got != want {
			t.Errorf("%d steps with %s, want %d", got, typ, want)
		}
	}
	for pattern, want := range map[string]int{
		`(?m)^inv_\w+ .* paid .* 3$`:    3,
		`(?m)^inv_\w+ .* expired .* 2$`: 1,
		`(?m)^inv_\w+ .* paid .* 4$`:    2,
		`19 events`:                     1,
		`\b0x[0-9a-f]{64}\b`:            8 + 3, // six payments, a refund, a sweep, and the commitments that it reads
	} {
		if got := len(regexp.MustCompile(pattern).FindAllString(out, -1)); got < want || pattern[0] == '(' && got != want {
			t.Errorf("%d times %s, want %d", got, pattern, want)
		}
	}
	if c.stderr.String() != "" {
		t.Errorf("it complained: %s", c.stderr.String())
	}
	empty(t, tmp)
}

// TestExtraDemoInterrupted interrupts the demo.
func TestExtraDemoInterrupted(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	c := launchWith(t, []string{"TMPDIR=" + tmp}, "demo")
	expect.OK(t, await(within(t, patience), func() bool { return c.ended() || strings.Contains(c.stdout.String(), "inv_") }))
	if code := c.stop(t, syscall.SIGINT, 12*time.Second); code == 0 {
		t.Error("exit code 0, though not all was observed")
	}
	if got := c.stderr.String(); got == "" || strings.Contains(got, "goroutine") {
		t.Errorf("it said %q", got)
	}
	empty(t, tmp)
}

// empty fails the test unless the folder is empty.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Error(fmt.Errorf("left behind: %v, %w", left, err))
	}
}
