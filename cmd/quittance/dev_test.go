package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

// startDev runs a development world until the test ends, and returns what it printed once it was ready.
func startDev(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	said, stdout := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, environment{stdout: stdout, stderr: &stderr}, append([]string{"dev", "--listen", "127.0.0.1:0"}, args...))
		_ = stdout.Close() // a pipe's never fails
		ended <- code
	}()
	printed := &bytes.Buffer{}
	for !strings.Contains(printed.String(), "Stop with Ctrl-C.\n") {
		if _, err := io.CopyN(printed, said, 1); err != nil {
			t.Fatalf("it ended: %v\n%s%s", err, printed, &stderr)
		}
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, said) // as above
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d: %s", code, &stderr)
		}
		<-rest
	})
	return printed.String()
}

// block returns the indented lines beneath the line that ends in a title.
func block(t *testing.T, text, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, title+"\n\n")
	if !found {
		t.Fatalf("nothing is titled %q in:\n%s", title, text)
	}
	lines, _, _ := strings.Cut(rest, "\n\n")
	return lines
}

// paste runs lines as a shell does and returns what they print.
func paste(t *testing.T, lines string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", lines).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, lines, out)
	}
	return string(out)
}

// TestExtraDevGuide pastes the commands that the program prints.
func TestExtraDevGuide(t *testing.T) {
	for _, program := range []string{"curl", "openssl"} {
		expect.Success(t)(testdeps.Program(t.Context(), "cmd/quittance", program))
	}
	text := startDev(t, "--data", t.TempDir(), "--block-time", "10m")
	for title, want := range map[string]string{
		"Create an invoice over 4.90 USDC that expires in an hour:":               `"status":"open"`,
		"Announce a transfer as the provider does, with a notice that is signed:": `{"ok":true}`,
		"and press the button. Then look:":                                        `"payments":[]`,
	} {
		if got := paste(t, block(t, text, title)); !strings.Contains(got, want) {
			t.Errorf("%s\n%s\nwant %s", title, got, want)
		}
	}
	look := block(t, text, "and press the button. Then look:")
	if got := paste(t, strings.ReplaceAll(look, "curl ", "curl -H 'Host: evil.example' ")); strings.Count(got, `"code":"forbidden"`) != 2 {
		t.Errorf("to another host it answers %s", got)
	}
	refund := block(t, text, "from the merchant's account to the payer's:")
	for _, want := range []string{"cast send --rpc-url 'http://127.0.0.1:", "'transfer(address,uint256)'"} {
		if !strings.Contains(refund, want) {
			t.Errorf("the refund is %q; want %q in it", refund, want)
		}
	}
}

// enterDev follows the links that a world prints, as a browser does, and uses its merchant with the key that it prints,
// which it returns.
func enterDev(t *testing.T, text string) (key string) {
	t.Helper()
	url := baseURL(t, text)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "quittance ") && strings.HasPrefix(line, "  ") && !strings.Contains(line, "--url "+url) {
			t.Errorf("a command lacks the address: %s", line)
		}
	}
	jar, err := cookiejar.New(nil)
	expect.OK(t, err)
	browser := http.Client{Jar: jar, Timeout: time.Minute}
	get := func(path, site string) (status int, at, body string) {
		t.Helper()
		r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil))
		r.Header.Set("Sec-Fetch-Site", site)
		answer, err := browser.Do(r)
		expect.OK(t, err)
		page, err := io.ReadAll(answer.Body)
		expect.OK(t, errors.Join(err, answer.Body.Close()))
		return answer.StatusCode, answer.Request.URL.Path, string(page)
	}
	_, _, front := get("/", "none")
	for path, want := range map[string]struct{ at, shows string }{
		"/dev/merchant":  {"/dashboard", "sign-out"},
		"/dev/operator":  {"/dashboard", "/dashboard/scenarios"},
		"/dev/scenarios": {"/dashboard/scenarios", "provider-outage"},
		"/dev/checkout":  {"/checkout/", "4.90"},
	} {
		if !strings.Contains(text, url+path) || !strings.Contains(front, `href="`+path+`"`) {
			t.Errorf("%s is not in the output or not on the page", path)
		}
		if status, at, body := get(path, "none"); status != http.StatusOK || !strings.HasPrefix(at, want.at) || !strings.Contains(body, want.shows) {
			t.Errorf("%s leads to %s: %d\n%s", path, at, status, body)
		}
		if status, _, _ := get(path, "cross-site"); status != http.StatusForbidden {
			t.Errorf("another site uses %s: %d", path, status)
		}
	}
	if !strings.Contains(front, "0s ahead of real time") {
		t.Errorf("the page does not show the clock:\n%s", front)
	}
	key = regexp.MustCompile(`QUITTANCE_API_KEY=(\S+)`).FindStringSubmatch(text)[1]
	shop := expect.Must(client.New(url, client.WithKey(key)))
	made, err := shop.CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{
		Amount: "4900000", Currency: "USDC", ChainKey: dev.ChainKey, ExpiresAt: time.Now().Add(time.Hour).Unix(),
	})
	if err != nil || made.Invoice.MerchantID != dev.MerchantID {
		t.Errorf("the merchant creates %+v: %v", made.Invoice, err)
	}
	return key
}

// TestDevRPCListen asks for a port of the chain, and later starts without the flag. Its merchant can be changed, and a
// revoked key is replaced.
func TestDevRPCListen(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	addr, dir := taken.Addr().String(), t.TempDir()
	_, port, err := net.SplitHostPort(addr)
	expect.OK(t, err)
	var stderr bytes.Buffer
	code := run(t.Context(), environment{stdout: io.Discard, stderr: &stderr},
		[]string{"dev", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--rpc-listen", addr})
	if code != 1 || !strings.Contains(stderr.String(), addr) {
		t.Errorf("with a taken port: exit code %d: %s", code, &stderr)
	}
	expect.OK(t, taken.Close())
	keys, name := make(map[string]bool), "Renamed"
	for i, args := range [][]string{{"--rpc-listen", "localhost:" + port}, nil, nil} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			text := startDev(t, append([]string{"--data", dir, "--block-time", "10m"}, args...)...)
			if want := "JSON-RPC at http://" + addr + "\n"; !strings.Contains(text, want) {
				t.Errorf("it does not say %q:\n%s", want, text)
			}
			keys[enterDev(t, text)] = true
			operator := expect.Must(client.New(baseURL(t, text)))
			merchants, err := client.Collect(operator.Merchants(t.Context(), 0), 10)
			if err != nil || len(merchants) != 1 || merchants[0].ID != dev.MerchantID || i > 0 && merchants[0].Name != name {
				t.Errorf("there are %+v: %v", merchants, err)
			}
			if _, err := operator.UpdateMerchant(t.Context(), dev.MerchantID, apitypes.UpdateMerchantRequest{Name: &name}); err != nil {
				t.Error(err)
			}
			for key, err := range operator.Keys(t.Context(), dev.MerchantID) {
				expect.OK(t, err)
				if i == 1 {
					expect.NoError(t, operator.RevokeKey(t.Context(), key.ID))
				}
			}
		})
	}
	if len(keys) != 2 {
		t.Errorf("the worlds had %d keys, want 2: the second run keeps the first's, the third has a new one", len(keys))
	}
}

// baseURL finds the address of a development world in its output.
func baseURL(t *testing.T, guide string) string {
	t.Helper()
	found := regexp.MustCompile(`API +(http://127\.0\.0\.1:\d+)`).FindStringSubmatch(guide)
	if found == nil {
		t.Fatalf("it does not say where it is:\n%s", guide)
	}
	return found[1]
}

// TestTriggerAndListen triggers every event in a development world, and has each forwarded to a
// receiver that verifies it.
func TestTriggerAndListen(t *testing.T) {
	t.Parallel()
	url := baseURL(t, startDev(t, "--data", t.TempDir(), "--block-time", "50ms"))

	var secret atomic.Pointer[string]
	forwarded := make(chan string, 100)
	verifier := webhook.Verifier{Lookup: func(*http.Request) ([]string, error) { return []string{*secret.Load()}, nil }}
	receiver := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forwarded <- r.Header.Get(webhook.HeaderEvent)
		if r.Header.Get(webhook.HeaderEvent) == webhook.InvoiceExpired {
			w.WriteHeader(http.StatusTeapot)
		}
	})))
	t.Cleanup(receiver.Close)

	printed, stdout := io.Pipe()
	var stderr bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, environment{stdout: stdout, stderr: &stderr}, []string{"listen", "--url", url, "--forward-to", receiver.URL})
		_ = stdout.Close() // a pipe's never fails
		ended <- code
	}()
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(printed); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	var said strings.Builder
	// upTo takes lines until one matches, and returns the match.
	upTo := func(pattern string) string {
		t.Helper()
		for line := range lines {
			said.WriteString(line + "\n")
			if found := regexp.MustCompile(pattern).FindString(line); found != "" {
				return found
			}
		}
		t.Fatalf("listen ended without %q:\n%s%s", pattern, &said, &stderr)
		return ""
	}
	made := upTo(`whsec_\S+`)
	secret.Store(&made)

	for _, typ := range dev.Types {
		var out, errs bytes.Buffer
		code := run(t.Context(), environment{stdout: &out, stderr: &errs}, []string{"trigger", string(typ), "--url", url})
		if code != 0 || !strings.Contains(out.String(), `"type":"`+string(typ)+`"`) || !strings.Contains(out.String(), "events show evt_") {
			t.Errorf("trigger %s: exit code %d\n%s%s", typ, code, &out, &errs)
		}
	}
	// One is created for each type; three are paid, and one of them refunded.
	want := map[string]int{
		webhook.InvoiceCreated: 5, webhook.PaymentReceived: 3, webhook.InvoicePaid: 3,
		webhook.PaymentRefunded: 1, webhook.InvoiceExpired: 1,
	}
	for range 13 {
		want[<-forwarded]--
	}
	for typ, n := range want {
		if n != 0 {
			t.Errorf("%s is missing %d times", typ, n)
		}
	}
	upTo(`invoice\.expired +4\.90 USDC +inv_\S+ +evt_\S+ +→ failed in \d+ ms: answered 418`)
	if line := regexp.MustCompile(`payment\.refunded +4\.90\d* USDC +inv_\S+ +evt_\S+ +→ 200 in \d+ ms`); !line.MatchString(said.String()) {
		t.Errorf("listen does not print %s:\n%s", line, &said)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("listen: exit code %d: %s", code, &stderr)
	}
}

// TestTriggerElsewhere asks a server that is not a development world.
func TestTriggerElsewhere(t *testing.T) {
	t.Parallel()
	url, _ := service(t, nil)
	var stderr bytes.Buffer
	code := run(t.Context(), environment{stdout: io.Discard, stderr: &stderr}, []string{"trigger", "invoice.paid", "--url", url})
	if code != 1 || !strings.Contains(stderr.String(), "is not a development world of quittance dev") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

// TestTriggerTimeout gives up if the event does not come in time. The state of the development world
// is not shown to requests for another host.
func TestTriggerTimeout(t *testing.T) {
	t.Parallel()
	url := baseURL(t, startDev(t, "--data", t.TempDir(), "--block-time", "10m"))
	if got := paste(t, "curl -s -H 'Host: evil.example' "+url+"/dev/world"); !strings.Contains(got, `"code":"forbidden"`) {
		t.Errorf("to another host it answers %s", got)
	}
	var stdout, stderr bytes.Buffer
	code := 0
	for _, timeout := range []string{"1s", "10s", "100s"} { // a busy machine takes longer to get this far
		stdout.Reset()
		stderr.Reset()
		code = run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, []string{"trigger", "invoice.paid", "--url", url, "--timeout", timeout})
		if strings.Contains(stderr.String(), "was not mined") {
			break
		}
	}
	if code != 1 || !strings.Contains(stderr.String(), "was not mined") || !strings.Contains(stdout.String(), "invoice created") {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}

// scenarioEvents are the events of each scenario, in their order.
var scenarioEvents = map[string]string{
	"underpaid":          "invoice.created payment.received invoice.expired",
	"overpaid":           "invoice.created payment.received invoice.paid",
	"late":               "invoice.created invoice.expired payment.received",
	"duplicate":          "invoice.created payment.received invoice.paid payment.received",
	"reorg":              "invoice.created payment.received payment.received invoice.paid",
	"refund":             "invoice.created payment.received invoice.paid payment.refunded",
	"expired":            "invoice.created invoice.expired",
	"slow-confirm":       "invoice.created payment.received invoice.paid",
	"provider-outage":    "invoice.created payment.received invoice.paid",
	"out-of-order":       "invoice.created payment.received invoice.paid payment.received invoice.created",
	"duplicate-delivery": "invoice.created payment.received invoice.paid invoice.paid",
}

// TestScenarios plays every scenario. They wait for blocks most of the time, so three worlds share them.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for group := range scenarioGroups {
		var scenarios []dev.Scenario
		for i, s := range dev.Scenarios {
			if i%scenarioGroups == group {
				scenarios = append(scenarios, s)
			}
		}
		t.Run(scenarios[0].Name, func(t *testing.T) {
			t.Parallel()
			playScenarios(t, scenarios)
		})
	}
}

// scenarioGroups is the number of worlds.
const scenarioGroups = 3

// playScenarios plays scenarios in one world. Its receiver verifies and gets each event that a
// scenario shows. The receiver's clock is not advanced.
func playScenarios(t *testing.T, scenarios []dev.Scenario) {
	t.Helper()
	type post struct{ delivery, typ string }
	posts := make(chan post, 100)
	var secret atomic.Pointer[string]
	verifier := webhook.Verifier{Lookup: func(*http.Request) ([]string, error) { return []string{*secret.Load()}, nil }}
	receiver := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		posts <- post{r.Header.Get(webhook.HeaderDelivery), r.Header.Get(webhook.HeaderEvent)}
	})))
	t.Cleanup(receiver.Close)
	guide := startDev(t, "--data", t.TempDir(), "--block-time", "50ms", "--webhook-url", receiver.URL)
	url := baseURL(t, guide)
	secret.Store(&regexp.MustCompile(`secret +(whsec_\S+)`).FindStringSubmatch(guide)[1])

	for _, s := range scenarios {
		var out, errs bytes.Buffer
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs}, []string{"trigger", "--scenario", s.Name, "--url", url, "--json"}); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", s.Name, code, &out, &errs)
		}
		var played dev.Played
		if err := json.Unmarshal(out.Bytes(), &played); err != nil {
			t.Fatalf("%s: %v in %s", s.Name, err, &out)
		}
		var shown, posted []string
		ids := make(map[post]int)
		for _, e := range played.Events {
			shown = append(shown, string(e.Envelope().Type))
			p := <-posts
			ids[p]++
			posted = append(posted, p.typ)
		}
		if got := strings.Join(shown, " "); got != scenarioEvents[s.Name] {
			t.Errorf("%s: it shows %s\nwant %s\n%s", s.Name, got, scenarioEvents[s.Name], &errs)
		}
		redelivered := slices.IndexFunc(played.Events, func(e dev.Came) bool { return e.Redelivered })
		if redelivered >= 0 { // the order is not guaranteed before
			if !slices.Equal(posted[redelivered:], shown[redelivered:]) {
				t.Errorf("%s: the receiver got %q, want %q", s.Name, posted, shown)
			}
			for _, e := range played.Events[redelivered:] {
				if p := (post{e.Delivery.ID, string(e.Envelope().Type)}); ids[p] != 2 {
					t.Errorf("%s: %v came %d times, want 2", s.Name, p, ids[p])
				}
			}
		}
		slices.Sort(posted)
		slices.Sort(shown)
		if !slices.Equal(posted, shown) {
			t.Errorf("%s: the receiver got %q, want %q", s.Name, posted, shown)
		}
	}
	if len(posts) > 0 {
		t.Errorf("the receiver got %v once more", <-posts)
	}
}

// TestScenarioHelp lists and completes scenarios, refuses unknown ones, and explains what is missing
// if no endpoint receives events.
func TestScenarioHelp(t *testing.T) {
	t.Parallel()
	url := baseURL(t, startDev(t, "--data", t.TempDir(), "--block-time", "50ms"))
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"trigger --list", "--scenario slow-confirm", 0},
		{"trigger --scenario lost", "there is underpaid, overpaid, late", 2},
		{"trigger --scenario reorg invoice.paid", "unexpected argument", 2},
		{"__complete trigger --scenario ", "duplicate-delivery\tan event arrives twice", 0},
		{"trigger --scenario expired --url " + url, "The events, in the order in which they came:", 0},
		{"trigger --scenario duplicate-delivery --url " + url, "start quittance dev with --webhook-url", 1},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), environment{stdout: &out, stderr: &out}, strings.Split(c.args, " ")); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.want, &out)
		}
	}
}
