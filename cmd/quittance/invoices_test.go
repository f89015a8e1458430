package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/expect"
)

// sampleInvoice returns an invoice of 4.90 USDC.
func sampleInvoice(status apitypes.InvoiceStatus) apitypes.Invoice {
	return apitypes.Invoice{
		ID: "inv_" + eventKey + "0", MerchantID: "acme", MerchantAddress: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		Amount: "4900000", Currency: "USDC", ChainKey: "base", Status: status, CreatedAt: 1764000000, ExpiresAt: 1764003600,
		LineItems: []apitypes.LineItem{{Label: "Coffee", Amount: "4900000"}}, AmountPaid: "0", AmountRefunded: "0",
	}
}

func TestInvoicesList(t *testing.T) {
	t.Parallel()
	url, asked := service(t, map[string]any{"/api/invoices": apitypes.InvoiceList{Invoices: []apitypes.Invoice{sampleInvoice(apitypes.StatusOpen)}}})
	code, stdout, stderr := call(t, url, "invoices", "list", "--merchant", "acme", "--status", "open", "--limit", "3")
	want := `INVOICE                         STATUS  AMOUNT     PAID       MERCHANT  REFERENCE  CREATED                  EXCEPTION
inv_06ajrm4k5xwqz8v3d0n7c2b9h0  open    4.90 USDC  0.00 USDC  acme      -          2025-11-24 16:00:00 UTC  -
`
	if code != 0 || stdout != want {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, stderr, stdout, want)
	}
	if want := "GET /api/invoices?limit=3&merchantId=acme&status=open"; len(*asked) != 1 || (*asked)[0] != want {
		t.Errorf("asked %q, want %q", *asked, want)
	}
	var out strings.Builder
	narrow := environment{stdout: &out, stderr: &out, width: 40, zone: time.FixedZone("CET", 3600)}
	if code := run(t.Context(), narrow, []string{"invoices", "list", "--url", url}); code != 0 {
		t.Errorf("exit code %d: %s", code, &out)
	}
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) != 40 || !strings.HasSuffix(line, "…") {
			t.Errorf("%q does not fill 40 columns", line)
		}
	}
}

func TestInvoicesShow(t *testing.T) {
	t.Parallel()
	i := sampleInvoice(apitypes.StatusPaid)
	url, _ := service(t, map[string]any{"/api/invoices/" + i.ID: apitypes.InvoiceResponse{Invoice: i}})
	code, stdout, stderr := call(t, url, "invoices", "show", i.ID)
	if code != 0 || !strings.Contains(stdout, "amount    4.90 USDC\n") || !strings.Contains(stdout, "item      Coffee: 4.90 USDC\n") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if code, _, stderr := call(t, url, "invoices", "show", "inv_1"); code != 1 || !strings.Contains(stderr, "Nothing has this id") {
		t.Errorf("an unknown invoice: exit code %d, %s", code, stderr)
	}
}

func TestInvoicesCreate(t *testing.T) {
	t.Parallel()
	made := apitypes.CreateInvoiceResponse{
		ID: "inv_" + eventKey + "0", OnChainInvoiceID: "0x" + strings.Repeat("ab", 32), CheckoutURL: "/checkout/inv_" + eventKey + "0",
		Invoice: sampleInvoice(apitypes.StatusOpen),
	}
	url, asked := service(t, map[string]any{"/api/invoices": made})
	code, stdout, _ := call(t, url, "invoices", "create", "--amount", "4.90", "--chain", "base", "--item", "Coffee=4.9", "--reference", "A-17",
		"--metadata", "table=7", "--json")
	if len(*asked) != 1 || !strings.Contains((*asked)[0], `"amount":"4900000"`) || !strings.Contains((*asked)[0], `"lineItems":[{"label":"Coffee","amount":"4900000"}]`) ||
		!strings.Contains((*asked)[0], `"reference":"A-17"`) || !strings.Contains((*asked)[0], `"metadata":{"table":"7"}`) {
		t.Errorf("exit code %d, asked %q, got %s", code, *asked, stdout)
	}
	for _, wrong := range [][]string{
		{"--amount", "4,90", "--chain", "base"},
		{"--amount", "4.9000001", "--chain", "base"},
		{"--amount", "-1", "--chain", "base"},
		{"--amount", "1", "--chain", "base", "--currency", "EUR"},
		{"--amount", "1", "--chain", "base", "--item", "Coffee"},
		{"--amount", "1"},
	} {
		if code, _, stderr := call(t, url, append([]string{"invoices", "create"}, wrong...)...); code != 2 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, %s", wrong, code, stderr)
		}
	}
	if len(*asked) != 1 {
		t.Errorf("wrong command lines asked the service: %q", *asked)
	}
}

// TestErrorsNameFlags expects errors about fields of the interface as errors about flags.
func TestErrorsNameFlags(t *testing.T) {
	t.Parallel()
	var problem apitypes.Problem
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		expect.NoError(t, json.NewEncoder(w).Encode(problem))
	}))
	t.Cleanup(server.Close)
	create := []string{"invoices", "create", "--amount", "1", "--chain", "base", "--item", "Coffee=1"}
	for _, test := range []struct {
		args                []string
		code                apitypes.ErrorCode
		field, detail, want string
	}{
		{create, apitypes.CodeInvalidField, "merchantAddress", "merchantAddress is required: no default.", "--to is required: no default"},
		{create, apitypes.CodeInvalidField, "lineItems[0].label", "lineItems[0].label must not be empty.", "--item must not be empty"},
		{create, apitypes.CodeInvalidField, "collection", "collection cannot be deposit: merchantAddress differs.", "collection cannot be deposit: merchantAddress differs"},
		{create, apitypes.CodeInvalidField, "chainKey", "chainKey cannot be that with expiresAt 7.", "--chain cannot be that with --expires-in 7"},
		{[]string{"payments", "list", "--chain", "bas"}, apitypes.CodeInvalidChain, "", "chainKey is not a chain; did you mean base?", "--chain is not a chain; did you mean base?"},
		{[]string{"links", "create", "--title", "x", "--chain", "base"}, apitypes.CodeInvalidField, "minAmount", "minAmount must be less.", "--min must be less"},
	} {
		problem = apitypes.Problem{Type: "https://x.example/", Title: "Wrong", Status: 400, Code: test.code, Field: test.field, Detail: test.detail}
		if code, _, stderr := call(t, server.URL, test.args...); code != 1 || !strings.HasSuffix(strings.TrimSuffix(stderr, ".\n"), test.want) && !strings.HasSuffix(stderr, test.want+"\n") {
			t.Errorf("%q: exit code %d, %s", test.args, code, stderr)
		}
	}
}

// TestHelpAligns expects the descriptions of all commands in one column.
func TestHelpAligns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if code := run(t.Context(), environment{stdout: &out, stderr: &out}, []string{"help"}); code != 0 {
		t.Fatal(&out)
	}
	columns := make(map[int]string)
	for line := range strings.Lines(out.String()) {
		if command := regexp.MustCompile(`^  quittance( [a-z-]+)* +`).FindString(line); command != "" {
			columns[len(command)] = line
		}
	}
	if len(columns) != 1 {
		t.Errorf("the descriptions begin in several columns: %v", columns)
	}
}

func TestInvoicesWatch(t *testing.T) {
	t.Parallel()
	for status, want := range map[apitypes.InvoiceStatus]int{apitypes.StatusPaid: 0, apitypes.StatusExpired: 1, apitypes.StatusVoid: 1} {
		i := sampleInvoice(status)
		url, _ := service(t, map[string]any{"/api/invoices/" + i.ID: apitypes.InvoiceResponse{Invoice: i}})
		code, stdout, stderr := call(t, url, "invoices", "watch", i.ID)
		if code != want || !strings.Contains(stdout, string(status)+"  paid 0.00 USDC of 4.90 USDC\n") {
			t.Errorf("%s: exit code %d, %s%s", status, code, stdout, stderr)
		}
	}
}

func TestPayments(t *testing.T) {
	t.Parallel()
	p := apitypes.Payment{
		ID: "pay_" + eventKey + "0", ChainKey: "base", TxHash: "0x" + strings.Repeat("ab", 32), Amount: "4900000", Currency: "USDC",
		From: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", To: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", BlockNumber: 7,
		ConfirmedAt: 1764000000, Status: apitypes.PaymentConfirmed,
	}
	url, asked := service(t, map[string]any{
		"/api/payments":                          apitypes.PaymentList{Payments: []apitypes.Payment{p}},
		"/api/payments/" + p.ID:                  apitypes.PaymentResponse{Payment: p},
		"/api/payments/" + p.ID + "/attribution": apitypes.PaymentResponse{Payment: p},
	})
	if code, stdout, stderr := call(t, url, "payments", "list", "--unattributed"); code != 0 || !strings.Contains(stdout, p.ID+"  4.90 USDC  -        confirmed  2025-11-24 16:00:00 UTC") {
		t.Errorf("list: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, url, "payments", "show", p.ID); code != 0 || !strings.Contains(stdout, "block        7\n") {
		t.Errorf("show: exit code %d, %s%s", code, stdout, stderr)
	}
	code, _, stderr := call(t, url, "payments", "attribute", p.ID, "--invoice", "inv_"+eventKey+"0", "--by", "maria")
	if want := `POST /api/payments/` + p.ID + `/attribution {"invoiceId":"inv_` + eventKey + `0","by":"maria"}`; code != 0 || (*asked)[len(*asked)-1] != want {
		t.Errorf("attribute: exit code %d, %s\nasked %q\nwant %q", code, stderr, *asked, want)
	}
}

// keyed returns the URL of a service that takes one key, and the keys that were sent to it.
func keyed(t *testing.T, key string) (url string, sent *[]string) {
	t.Helper()
	sent = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		*sent = append(*sent, got)
		w.Header().Set("Content-Type", "application/json")
		if got != key {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"type":"about:blank","title":"Unauthorized","status":401,"detail":"The key is wrong.","code":"unauthorized"}`))
			return
		}
		_, _ = w.Write([]byte(`{"invoices":[]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

func TestLogin(t *testing.T) {
	t.Parallel()
	const key = "qk_live_secret"
	url, sent := keyed(t, key)
	other, sentToOther := keyed(t, key)
	path := filepath.Join(t.TempDir(), "new", "profile.json")
	command := func(stdin string, args ...string) (code int, output string) {
		var out strings.Builder
		env := environment{stdin: strings.NewReader(stdin), stdout: &out, stderr: &out, profile: path}
		code = run(t.Context(), env, args)
		if strings.Contains(out.String(), key) {
			t.Errorf("%q shows the key: %s", args, &out)
		}
		return code, out.String()
	}
	for _, wrong := range []struct{ stdin, url string }{{"", url}, {"qk_live_other\n", url}, {key, "http://pay.example.com"}, {key, "ftp://127.0.0.1"}} {
		if code, out := command(wrong.stdin, "login", "--url", wrong.url); code == 0 {
			t.Errorf("login with %q at %s: %s", wrong.stdin, wrong.url, out)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a failed login left a profile")
	}
	if code, out := command(key+"\n", "login", "--url", url); code != 0 {
		t.Fatalf("login: exit code %d, %s", code, out)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the profile has the mode %v: %v", info.Mode(), err)
	}
	*sent = nil
	if code, out := command("", "invoices", "list"); code != 0 || len(*sent) != 1 || (*sent)[0] != key {
		t.Errorf("with the profile: exit code %d, sent %q, %s", code, *sent, out)
	}
	if code, out := command("", "invoices", "list", "--url", other); code != 1 || len(*sentToOther) != 1 || (*sentToOther)[0] != "" {
		t.Errorf("another service: exit code %d, sent %q, %s", code, *sentToOther, out)
	}
	expect.OK(t, os.Chmod(path, 0o640))
	if code, out := command("", "invoices", "list"); code != 1 || !strings.Contains(out, "chmod 600") {
		t.Errorf("a profile that others can read: exit code %d, %s", code, out)
	}
	if code, out := command("", "logout"); code != 0 {
		t.Errorf("logout: exit code %d, %s", code, out)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("logout left the profile")
	}
}
