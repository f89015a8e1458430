package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
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
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		expect.OK(t, err)
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
	shop, err := client.New(url, client.WithKey(key))
	expect.OK(t, err)
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
			operator, err := client.New(baseURL(t, text))
			expect.OK(t, err)
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
