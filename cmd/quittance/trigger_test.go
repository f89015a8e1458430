package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/webhook"
)

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
