package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// argument is the text argument of calls: an id, a position, an address.
const argument = "id_1"

// calls are all methods that call the service. Each is called with zero values, and with argument for texts. A list is
// followed to its end. It returns the method's results, except the argument.
func calls() map[string]func(c *client.Client) (results []any, err error) {
	all := make(map[string]func(*client.Client) ([]any, error))
	typ := reflect.TypeFor[*client.Client]()
	for i := range typ.NumMethod() {
		method := typ.Method(i)
		if method.Type.NumIn() < 2 || method.Type.In(1) != reflect.TypeFor[context.Context]() {
			continue
		}
		all[method.Name] = func(c *client.Client) ([]any, error) {
			in := []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(context.Background())}
			for j := 2; j < method.Type.NumIn() && !(method.Type.IsVariadic() && j == method.Type.NumIn()-1); j++ {
				value := reflect.New(method.Type.In(j)).Elem()
				switch {
				case value.Kind() == reflect.String:
					value.SetString(argument)
				case value.Type() == reflect.TypeFor[io.Writer]():
					value.Set(reflect.ValueOf(io.Discard))
				}
				in = append(in, value)
			}
			return outcomeOf(method.Func.Call(in))
		}
	}
	return all
}

// outcomeOf returns the non-zero results of a call, and its error.
func outcomeOf(out []reflect.Value) (results []any, err error) {
	if out[0].Kind() == reflect.Func {
		for element, e := range out[0].Seq2() {
			if !e.IsNil() {
				return results, e.Interface().(error) //nolint:forcetypeassert // as in the type of lists
			}
			results = append(results, element.Interface())
		}
		return results, nil
	}
	last := out[len(out)-1]
	for _, result := range out[:len(out)-1] {
		if !result.IsZero() && result.Interface() != argument {
			results = append(results, result.Interface())
		}
	}
	if !last.IsNil() {
		err = last.Interface().(error) //nolint:forcetypeassert // the last result of a call is its error
	}
	return results, err
}

// always is a transport that gives the same answer to every request.
type always struct {
	status    int
	mediaType string
	body      string
	sent      []*http.Request
}

func (a *always) RoundTrip(r *http.Request) (*http.Response, error) {
	a.sent = append(a.sent, r)
	header := http.Header{"X-Request-Id": {"req_1"}}
	if a.mediaType != "" {
		header.Set("Content-Type", a.mediaType)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func over(t *testing.T, transport http.RoundTripper, options ...client.Option) *client.Client {
	t.Helper()
	options = append([]client.Option{client.WithHTTPClient(&http.Client{Transport: transport}), client.WithClock(new(clock))}, options...)
	c := expect.Must(client.New("http://service.example/pay", options...))
	return c
}

// TestForeignSuccesses makes every call to a peer that is not the service and answers with a success.
func TestForeignSuccesses(t *testing.T) {
	const page = "<!DOCTYPE html><title>Sign in</title>"
	for name, foreign := range map[string]always{
		"an empty object":    {200, "application/json", "{}", nil},
		"an array":           {200, "application/json", "[]", nil},
		"null":               {200, "application/json", "null", nil},
		"a text":             {201, "application/json", `"ok"`, nil},
		"null members":       {200, "application/json", `{"invoice":null,"invoices":null,"event":null,"link":null,"id":null}`, nil},
		"empty members":      {200, "application/json", `{"invoice":{},"payment":{},"refund":{},"key":{},"secret":"","merchant":{},"webhook":{},"link":{},"event":{},"merchantId":"m"}`, nil},
		"elements of no id":  {200, "application/json", `{"invoices":[{}],"payments":[{}],"refunds":[{}],"events":[{"event":{}}],"links":[{}]}`, nil},
		"another's":          {200, "application/json; charset=utf-8", `{"status":"ok","data":[]}`, nil},
		"a page":             {200, "text/html", page, nil},
		"a page as JSON":     {200, "application/json", page, nil},
		"cut off":            {200, "application/json", `{"invoice":{"id":"id_1"`, nil},
		"no body":            {200, "application/json", "", nil},
		"no body of no type": {202, "", "", nil},
	} {
		for method, call := range calls() {
			peer := foreign
			c := over(t, &peer, client.WithRetries(1))
			results, err := call(c)
			var failed *client.CallError
			var invalid *client.InvalidResponseError
			if len(results) != 0 || !errors.As(err, &failed) || !errors.As(err, &invalid) {
				t.Errorf("%s: %s returns %v, %v", name, method, results, err)
				continue
			}
			last := peer.sent[len(peer.sent)-1]
			if failed.Method != last.Method || failed.Path != last.URL.EscapedPath() || failed.Attempts != len(peer.sent) ||
				invalid.Status != foreign.status || invalid.RequestID != "req_1" {
				t.Errorf("%s: %s returns %+v of %+v after %d requests", name, method, failed, invalid, len(peer.sent))
			}
			// StreamDeliveries leaves continuing to its caller.
			if repeated := len(peer.sent) == 2; last.Method == http.MethodGet && !repeated && method != "StreamDeliveries" {
				t.Errorf("%s: %s is not repeated", name, method)
			}
			if c.LastResponse().Status != 0 {
				t.Errorf("%s: %s has the response %+v", name, method, c.LastResponse())
			}
		}
	}
}

// TestForeignSuccessOfAWrite expects a repetition if the service does the write only once.
func TestForeignSuccessOfAWrite(t *testing.T) {
	for method, want := range map[string]int{
		"CreateInvoice": 2, "PrepareRefund": 2, "CreatePaymentLink": 2, "VoidInvoice": 2, "SubmitRefund": 2, "EraseCustomer": 2, "CreateKey": 1, "RedeliverEvent": 1, "PutWebhook": 1,
	} {
		peer := &always{200, "application/json", "{}", nil}
		if _, err := calls()[method](over(t, peer, client.WithRetries(1))); err == nil || len(peer.sent) != want {
			t.Errorf("%s: %v after %d requests, want %d", method, err, len(peer.sent), want)
		}
	}
}

// TestAnotherSuccessThanNoContent has a service answer 204 to calls that expect a body.
func TestAnotherSuccessThanNoContent(t *testing.T) {
	peer := &always{204, "", "", nil}
	c := over(t, peer)
	var invalid *client.InvalidResponseError
	if _, err := c.Invoice(t.Context(), argument); !errors.As(err, &invalid) || invalid.Status != 204 {
		t.Errorf("Invoice: %v", err)
	}
	if err := c.DeleteInvoice(t.Context(), argument); err != nil {
		t.Errorf("DeleteInvoice: %v", err)
	}
}

// TestEveryWriteHasAKey makes every write twice, each with a repetition.
func TestEveryWriteHasAKey(t *testing.T) {
	seen := make(map[string]string)
	for method, call := range calls() {
		if strings.HasPrefix(method, "Stream") { // a stream is continued until its context ends
			continue
		}
		for range 2 {
			peer := &always{429, "application/problem+json", `{"status":429,"code":"rate_limited"}`, nil}
			if _, err := call(over(t, peer, client.WithRetries(1))); err == nil {
				t.Errorf("%s: no error", method)
			}
			first := peer.sent[0].Header.Get("Idempotency-Key")
			if is := peer.sent[0].Method != http.MethodGet; is != (first != "") {
				t.Errorf("%s has the key %q", method, first)
			} else if is && (seen[first] != "" || len(peer.sent) != 2 || peer.sent[1].Header.Get("Idempotency-Key") != first) {
				t.Errorf("%s: the key %q is of %q, too, or not of all %d requests", method, first, seen[first], len(peer.sent))
			}
			seen[first] = method
		}
	}
}

// TestErrorsOfCalls checks the contents of errors for each kind of failure.
func TestErrorsOfCalls(t *testing.T) {
	const refusal = `{"status":409,"code":"reference_taken","detail":"D.","field":"reference","invoiceId":"inv_2","reason":"because","requestId":"req_2"}`
	for name, test := range map[string]struct {
		outcomes []outcome
		attempts int
		text     string
	}{
		"a problem":       {[]outcome{problem(503, "unavailable"), answers(409, refusal)}, 2, "answered 409 reference_taken: D. (2 attempts)"},
		"no connection":   {[]outcome{breaks(errNoListener), breaks(errNoListener)}, 2, "no complete response: dial: connection refused (2 attempts)"},
		"a page":          {[]outcome{answers(401, "<html>")}, 1, "answered 401 Unauthorized"},
		"JSON of another": {[]outcome{answers(404, `{"title":"T","detail":"D","requestId":"x"}`)}, 1, "answered 404 Not Found"},
	} {
		c, _, _ := with(t, test.outcomes...)
		_, err := c.With(client.WithRetries(1)).CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{})
		var failed *client.CallError
		want := client.CallError{Method: "POST", Path: "/api/invoices", Attempts: test.attempts}
		if !errors.As(err, &failed) || failed.Method != want.Method || failed.Path != want.Path || failed.Attempts != want.Attempts {
			t.Errorf("%s: %+v", name, failed)
		}
		if text := "client: POST /api/invoices: " + test.text; err.Error() != text {
			t.Errorf("%s: %q, want %q", name, err, text)
		}
		var refused *client.Error
		if errors.As(err, &refused) && refused.Code != "" && (refused.InvoiceID != "inv_2" || refused.Reason != "because" || refused.Field != "reference" || refused.RequestID != "req_2") {
			t.Errorf("%s: members are missing: %+v", name, refused)
		}
		var broken *client.ConnectionError
		if errors.As(err, &broken) && !broken.Unsent {
			t.Errorf("%s: %+v", name, broken)
		}
	}
}

// TestWith changes one call, and not the client.
func TestWith(t *testing.T) {
	peer := &always{503, "application/problem+json", `{"status":503,"code":"unavailable"}`, nil}
	c := over(t, peer, client.WithKey("qk_1"), client.WithHeader("X-Team", "a"))
	one := c.With(client.WithRetries(0), client.WithKey("qk_2"), client.WithVersion("2026-11-22"), client.WithHeader("X-Order", "7"), client.IdempotencyKey("order-7"))
	if _, _, err := one.CreateKey(t.Context(), apitypes.CreateKeyRequest{}); err == nil || len(peer.sent) != 1 {
		t.Fatalf("%v after %d requests", err, len(peer.sent))
	}
	got := peer.sent[0].Header
	for name, want := range map[string]string{
		"Authorization": "Bearer qk_2", "Quittance-Version": "2026-11-22", "X-Order": "7", "X-Team": "a", "Idempotency-Key": "order-7",
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	if _, err := c.Invoice(t.Context(), argument); err == nil || len(peer.sent) != 2+client.DefaultRetries {
		t.Errorf("%v after %d requests", err, len(peer.sent))
	}
	if got := peer.sent[1].Header; got.Get("Authorization") != "Bearer qk_1" || got.Get("X-Order") != "" || got.Get("Quittance-Version") != "" {
		t.Errorf("the client sends %v", got)
	}
	for method, call := range calls() {
		sent := len(peer.sent)
		if _, err := call(c.With(client.WithKey(""))); !errors.Is(err, client.ErrKey) || len(peer.sent) != sent {
			t.Errorf("%s with an empty key: %v", method, err)
		}
	}
}

// TestLastResponse checks a response that repeats an earlier one.
func TestLastResponse(t *testing.T) {
	text := fmt.Sprintf(`{"submission":{"id":"sub_1","refundId":%q,"by":"maria","startedAt":1}}`, argument)
	c, _, _ := with(t, problem(503, apitypes.CodeUnavailable), answers(200, `{"status":"bad"}`), answers(201, text, "X-Request-Id", "req_7", "Idempotency-Replayed", "true"))
	var seen []client.Response
	one := c.With(client.WithOnResponse(func(r client.Response) { seen = append(seen, r) }))
	if _, err := one.Invoice(t.Context(), argument); err == nil || len(seen) != 0 || one.LastResponse().Status != 0 {
		t.Fatalf("%v, %+v", err, seen)
	}
	c, _, _ = with(t, problem(429, apitypes.CodeRateLimited), answers(201, text, "X-Request-Id", "req_7", "Idempotency-Replayed", "true"))
	expect.Success(t)(c.SubmitRefund(t.Context(), argument, apitypes.SubmitRefundRequest{}, client.WithOnResponse(func(r client.Response) { seen = append(seen, r) })))
	got := c.LastResponse()
	if got.Method != http.MethodPost || got.Path != "/api/refunds/"+argument+"/submissions" || got.Status != 201 || got.RequestID != "req_7" || !got.Replayed ||
		got.Attempts != 2 || got.Header.Get("X-Request-Id") != "req_7" {
		t.Errorf("the last response is %+v", got)
	}
	if len(seen) != 1 || seen[0].RequestID != "req_7" || c.With().LastResponse().Status != 0 {
		t.Errorf("saw %+v, and a new client has %+v", seen, c.With().LastResponse())
	}
}

// TestWithdrawSubmission sends what a person declares only if it was declared.
func TestWithdrawSubmission(t *testing.T) {
	peer := &always{status: http.StatusOK, mediaType: "application/json", body: `{"submission":{"id":"sub_1","refundId":"ref_1","by":"maria","startedAt":1}}`}
	c := over(t, peer)
	for n, want := range []string{"", "checkedInWallet=true"} {
		if _, err := c.WithdrawSubmission(t.Context(), "ref_1", "sub_1", want != ""); err != nil || peer.sent[n].URL.RawQuery != want {
			t.Errorf("%v, query %q, want %q", err, peer.sent[n].URL.RawQuery, want)
		}
	}
}
