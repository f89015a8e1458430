package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

var invoice = apitypes.Invoice{
	ID: "inv_06ajrm4k5xwqz8v3d0n7c2b9hr", MerchantID: "acme", MerchantAddress: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
	Amount: "4900000", Currency: "USDC", ChainKey: "base", Status: apitypes.StatusOpen, CreatedAt: 1, ExpiresAt: 2,
	LineItems: []apitypes.LineItem{}, AmountPaid: "0", AmountRefunded: "0",
}

// serve returns a client of a service with responses that are checked against openapi.yaml, unless another server
// answers in its place.
func serve(t testing.TB, h http.HandlerFunc, other ...bool) *client.Client {
	t.Helper()
	var handler http.Handler = h
	if len(other) == 0 {
		handler = apitest.Check(t, h)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c := expect.Must(client.New(server.URL, client.WithHTTPClient(server.Client()), client.WithRetries(0)))
	return c
}

func answer(t testing.TB, w http.ResponseWriter, status int, mediaType string, body any) {
	t.Helper()
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	expect.NoError(t, json.NewEncoder(w).Encode(body))
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "/api", "ftp://h", "https://", "https://h?x=1", "https://h#x", "http://h:port", "\x00"} {
		if _, err := client.New(bad); err == nil {
			t.Errorf("New(%q) succeeds", bad)
		}
	}
	for _, bad := range []string{"", " ", "qk_1\n", "qk 1", "qk_\u00fc"} {
		_, err := client.New("https://h.example", client.WithKey(bad))
		if !errors.Is(err, client.ErrKey) || strings.Contains(err.Error(), "qk") {
			t.Errorf("with the key %q New returns %v", bad, err)
		}
	}
	c := expect.Must(client.New("https://h.example/pay/"))
	if got, want := c.URL("/checkout/inv_1"), "https://h.example/pay/checkout/inv_1"; got != want {
		t.Errorf("URL = %s, want %s", got, want)
	}
}

func TestCreateInvoice(t *testing.T) {
	asked := apitypes.CreateInvoiceRequest{
		MerchantID: "acme", MerchantAddress: invoice.MerchantAddress, Amount: "4900000", Currency: "USDC", ChainKey: "base", ExpiresAt: 2,
		LineItems: []apitypes.LineItem{{Label: "x", Amount: "4900000"}},
	}
	want := apitypes.CreateInvoiceResponse{
		ID: invoice.ID, OnChainInvoiceID: "0x" + strings.Repeat("1", 64), CheckoutURL: "/checkout/" + invoice.ID, Invoice: invoice,
	}
	for _, test := range []struct {
		options []client.Option
		key     string
	}{
		{nil, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
		{[]client.Option{client.IdempotencyKey("order-1")}, "^order-1$"},
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			var got apitypes.CreateInvoiceRequest
			expect.NoError(t, json.NewDecoder(r.Body).Decode(&got))
			if diff := cmp.Diff(asked, got); diff != "" || r.Method != http.MethodPost || r.URL.Path != "/api/invoices" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s %v (-want +got):\n%s", r.Method, r.URL, r.Header, diff)
			}
			if keys := r.Header.Values("Idempotency-Key"); len(keys) != 1 || !regexp.MustCompile(test.key).MatchString(keys[0]) {
				t.Errorf("the keys are %q, want one like %s", keys, test.key)
			}
			w.Header().Set("Location", "/api/invoices/"+invoice.ID)
			answer(t, w, http.StatusCreated, "application/json", want)
		})
		got, err := c.CreateInvoice(t.Context(), asked, test.options...)
		if page := c.URL("/checkout/" + invoice.ID); got.CheckoutPage != page {
			t.Errorf("the page is %q, want %q", got.CheckoutPage, page)
		}
		got.CheckoutPage = ""
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestInvoice(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/api/invoices/"+invoice.ID {
			answer(t, w, http.StatusNotFound, "application/problem+json", apitypes.Problem{
				Type: "https://example.com/#not_found", Title: "Not found", Status: 404, Detail: "None.", Code: apitypes.CodeNotFound,
			})
			return
		}
		answer(t, w, http.StatusOK, "application/json", apitypes.InvoiceResponse{Invoice: invoice})
	})
	got, err := c.Invoice(t.Context(), invoice.ID)
	if diff := cmp.Diff(invoice, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, id := range []string{"inv_x", "a b", "%41"} {
		var refused *client.Error
		if _, err := c.Invoice(t.Context(), id); !errors.As(err, &refused) || refused.Code != apitypes.CodeNotFound || refused.Status != 404 {
			t.Errorf("Invoice(%q): %v", id, err)
		}
	}
}

// An id that would change the path must not return an invoice.
func TestInvoiceOfNoID(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, http.StatusOK, "application/json", apitypes.InvoiceList{Invoices: []apitypes.Invoice{}})
	}, true)
	for _, id := range []string{"", ".", ".."} {
		if _, err := c.Invoice(t.Context(), id); err == nil {
			t.Errorf("Invoice(%q) is no error", id)
		}
		if _, err := c.Payment(t.Context(), id); err == nil {
			t.Errorf("Payment(%q) is no error", id)
		}
		if _, err := c.AttributePayment(t.Context(), id, apitypes.AttributePaymentRequest{}); err == nil {
			t.Errorf("AttributePayment(%q) is no error", id)
		}
	}
}

func TestPayment(t *testing.T) {
	want := apitypes.Payment{
		ID: "pay_3t9f0w6k2m5xq8r1v4z7b0n3hc", InvoiceID: invoice.ID, ChainKey: "base", TxHash: "0x" + strings.Repeat("1", 64),
		Amount: "1", Currency: "USDC", From: invoice.MerchantAddress, To: invoice.MerchantAddress, Status: apitypes.PaymentConfirmed,
		ConfirmedAt: 3, Attribution: &apitypes.Attribution{Method: apitypes.ByHand, By: "maria", At: 4},
	}
	asked := apitypes.AttributePaymentRequest{InvoiceID: invoice.ID, By: "maria", Note: "two parts"}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.EscapedPath() {
		case "POST /api/payments/" + want.ID + "/attribution":
			var got apitypes.AttributePaymentRequest
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got != asked || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("asked %+v, %v", got, err)
			}
		case "GET /api/payments/" + want.ID:
		default:
			answer(t, w, http.StatusNotFound, "application/problem+json", apitypes.Problem{
				Type: "https://example.com/#not_found", Title: "Not found", Status: 404, Detail: "None.", Code: apitypes.CodeNotFound,
			})
			return
		}
		answer(t, w, http.StatusOK, "application/json", apitypes.PaymentResponse{Payment: want})
	})
	got, err := c.Payment(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = c.AttributePayment(t.Context(), want.ID, asked)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, id := range []string{"pay_x", "a b", "%41"} {
		var refused *client.Error
		if _, err := c.AttributePayment(t.Context(), id, asked); !errors.As(err, &refused) || refused.Code != apitypes.CodeNotFound {
			t.Errorf("AttributePayment(%q): %v", id, err)
		}
	}
}

func TestErrors(t *testing.T) {
	type shown struct {
		Status     int
		Code       apitypes.ErrorCode
		Field      string
		RetryAfter time.Duration
	}
	const problem = `{"type":"https://example.com/","title":"T","status":%d,"detail":"D.","code":%q%s}`
	for name, test := range map[string]struct {
		status     int
		retryAfter string
		body       string
		want       shown
	}{
		"field":       {400, "", fmt.Sprintf(problem, 400, "invalid_field", `,"field":"amount"`), shown{400, apitypes.CodeInvalidField, "amount", 0}},
		"in progress": {409, "1", fmt.Sprintf(problem, 409, "idempotency_in_progress", ""), shown{409, apitypes.CodeIdempotencyInProgress, "", time.Second}},
		"new code":    {429, "30", fmt.Sprintf(problem, 429, "rate_limited", ""), shown{429, "rate_limited", "", 30 * time.Second}},
		"proxy":       {502, "soon", "<html>Bad gateway", shown{502, "", "", 0}},
		"empty":       {503, "-1", "", shown{503, "", "", 0}},
		"redirect":    {304, "", "", shown{304, "", "", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.retryAfter)
				w.WriteHeader(test.status)
				if _, err := io.WriteString(w, test.body); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
					t.Error(err)
				}
			}, true)
			_, err := c.Invoice(t.Context(), invoice.ID)
			var e *client.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if got := (shown{e.Status, e.Code, e.Field, e.RetryAfter}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !strings.Contains(e.Error(), strconv.Itoa(test.status)) || !strings.Contains(e.Error(), string(test.want.Code)) {
				t.Errorf("says %q", e.Error())
			}
		})
	}
}

func TestAnswersOfStrangers(t *testing.T) {
	for _, body := range []string{"", "hello", `{"invoice":[]}`} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if _, err := io.WriteString(w, body); err != nil {
				t.Error(err)
			}
		}, true)
		if got, err := c.Invoice(t.Context(), invoice.ID); err == nil {
			t.Errorf("%q is read as %+v", body, got)
		}
	}
	c := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true)
	if _, err := c.Invoice(t.Context(), invoice.ID); err == nil {
		t.Error("a broken connection is no error")
	}
}

func TestTooLargeAnswer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		blank := strings.Repeat(" ", 1<<20)
		for range client.MaxAnswer>>20 + 1 {
			if _, err := io.WriteString(w, blank); err != nil {
				return // the client has hung up, as expected
			}
		}
	}, true)
	if _, err := c.Invoice(t.Context(), invoice.ID); err == nil || !strings.Contains(err.Error(), "exceeds") {
		t.Errorf("got %v", err)
	}
}

func TestListsAllPages(t *testing.T) {
	var queries []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RequestURI())
		n, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		next := ""
		if n < 2 {
			next = strconv.Itoa(n + 1)
		}
		if r.URL.Path == "/api/payments" {
			p := apitypes.Payment{
				ID: "pay_3t9f0w6k2m5xq8r1v4z7b0n3hc", ChainKey: "base", TxHash: "0x" + strings.Repeat("1", 64), Amount: "1", Currency: "USDC",
				From: invoice.MerchantAddress, To: invoice.MerchantAddress, BlockNumber: int64(n),
			}
			answer(t, w, http.StatusOK, "application/json", apitypes.PaymentList{Payments: []apitypes.Payment{p}, NextCursor: next})
			return
		}
		inv := invoice
		inv.CreatedAt = int64(n)
		answer(t, w, http.StatusOK, "application/json", apitypes.InvoiceList{Invoices: []apitypes.Invoice{inv, inv}, NextCursor: next})
	})
	var got []int64
	for inv, err := range c.Invoices(t.Context(), client.InvoiceFilter{MerchantID: "acme", Status: apitypes.StatusPaid, PageSize: 2}) {
		expect.OK(t, err)
		got = append(got, inv.CreatedAt)
	}
	for p, err := range c.Payments(t.Context(), client.PaymentFilter{MerchantID: "acme", ChainKey: "base", IncludePending: true, IncludeUnattributed: true}) {
		expect.OK(t, err)
		if got = append(got, p.BlockNumber); p.BlockNumber == 1 {
			break // no further page is requested
		}
	}
	expect.NoDiff(t, cmp.Diff([]int64{0, 0, 1, 1, 2, 2, 0, 1}, got), "elements")
	want := []string{
		"/api/invoices?limit=2&merchantId=acme&status=paid",
		"/api/invoices?cursor=1&limit=2&merchantId=acme&status=paid",
		"/api/invoices?cursor=2&limit=2&merchantId=acme&status=paid",
		"/api/payments?chainKey=base&include=pending%2Cunattributed&merchantId=acme",
		"/api/payments?chainKey=base&cursor=1&include=pending%2Cunattributed&merchantId=acme",
	}
	expect.NoDiff(t, cmp.Diff(want, queries), "requests")
}

func TestListEndsAfterAnError(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusBadRequest, "application/problem+json", apitypes.Problem{
				Type: "https://example.com/", Title: "T", Status: 400, Detail: "D.", Code: apitypes.CodeInvalidStatus,
			})
		},
		"going round": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusOK, "application/json", apitypes.InvoiceList{Invoices: []apitypes.Invoice{}, NextCursor: "again"})
		},
	} {
		c := serve(t, h)
		count := 0
		for _, err := range c.Invoices(t.Context(), client.InvoiceFilter{}) {
			if count++; err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if count != 1 {
			t.Errorf("%s: yields %d times", name, count)
		}
	}
}

// otherNames are the methods that call operations of openapi.yaml under another name than methodOf gives.
var otherNames = map[string]string{
	"countInbox": "InboxCounts", "releaseMerchantAddress": "ReleaseAddress", "putMerchantLogo": "SetMerchantLogo",
	"receiveNotice": "", "probeNotices": "", // called by a transfer provider
	"submitAuthorization": "", "getAuthorization": "", // called by a payer
}

// methodOf returns the method that calls an operation: getInvoice has Invoice, and createInvoice CreateInvoice.
func methodOf(operation string) string {
	if name, ok := otherNames[operation]; ok {
		return name
	}
	name := strings.TrimPrefix(strings.TrimPrefix(operation, "get"), "list")
	return strings.ToUpper(name[:1]) + name[1:]
}

// TestEveryOperationHasAMethod compares the methods with the operations of openapi.yaml.
// sdk/typescript has a test like this one.
func TestEveryOperationHasAMethod(t *testing.T) {
	doc := expect.Must(openapi3.NewLoader().LoadFromFile(testdeps.Repo("openapi.yaml")))
	known := make(map[string]bool)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			known[operation.OperationID] = true
			name := methodOf(operation.OperationID)
			if _, has := reflect.TypeFor[*client.Client]().MethodByName(name); name != "" && !has {
				t.Errorf("package client has no method %s for %s, %s %s", name, operation.OperationID, method, path)
			}
		}
	}
	for operation := range otherNames {
		if !known[operation] {
			t.Errorf("openapi.yaml has no operation %s", operation)
		}
	}
}

// TestOperatorRequests sends the requests of the operator.
func TestOperatorRequests(t *testing.T) {
	var sent []string
	status := expect.Must(json.Marshal(apitypes.ServiceStatus{Version: "v1", Stalled: []apitypes.StalledWork{}, Limits: []apitypes.LimitInForce{}, Chains: []apitypes.ChainStatus{}}))
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		sent = append(sent, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]string{
			"/api/operator/status": string(status), "/api/operator/merchants": `{"merchants":[{"id":"acme"}]}`, "/api/operator/audit/verify": `{"head":"7:ab"}`,
			"/api/operator/chains/base/rescan": `{"chainKey":"base","from":5,"to":9}`, "/api/operator/chains/base/resume": `{"chainKey":"base","halted":"why"}`,
			"/api/operator/mails/report": `{"invoiceId":"inv_1","number":1,"bounced":true}`,
		}[r.URL.Path]
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}, true)
	ctx := t.Context()
	shown, err1 := c.ServiceStatus(ctx)
	rescan, err2 := c.RescanChain(ctx, "base", 5)
	resume, err3 := c.ResumeChain(ctx, "base")
	verified, err4 := c.VerifyAudit(ctx, "7:ab")
	report, err5 := c.ReportMail(ctx, []byte("Subject: x"))
	for _, err := range []error{err1, err2, err3, err4, err5} {
		expect.NoError(t, err)
	}
	if !report.Bounced || shown.Version != "v1" || rescan.To != 9 || resume.Halted != "why" || verified.Head != "7:ab" {
		t.Errorf("answered %+v, %+v, %+v, %+v", shown, rescan, resume, verified)
	}
	for m, err := range c.MerchantOverviews(ctx, 2) {
		if err != nil || m.ID != "acme" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	want := []string{
		"GET /api/operator/status ", `POST /api/operator/chains/base/rescan {"from":5}`, "POST /api/operator/chains/base/resume ",
		`POST /api/operator/audit/verify {"head":"7:ab"}`, "POST /api/operator/mails/report Subject: x", "GET /api/operator/merchants?limit=2 ",
	}
	if got := strings.Join(sent, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("sent\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
