package x402_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/client/x402"
	"github.com/quittance/quittance/internal/test/expect"
)

// facilitator answers like the service, with answers that the test chooses.
type facilitator struct {
	*httptest.Server
	verify   apitypes.X402VerifyResponse
	settle   []apitypes.X402SettleResponse // in this order; the last one is repeated
	verified atomic.Int64
	settled  atomic.Int64
	last     atomic.Pointer[apitypes.X402Request]
}

func newFacilitator(t *testing.T) *facilitator {
	t.Helper()
	f := &facilitator{
		verify: apitypes.X402VerifyResponse{IsValid: true, Payer: "0xA11ce"},
		settle: []apitypes.X402SettleResponse{{Success: true, Transaction: "0x1", Network: "eip155:1337"}},
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request apitypes.X402Request
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.Header.Get("Authorization") != "Bearer key" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		f.last.Store(&request)
		w.Header().Set("Content-Type", "application/json")
		var answer any
		if r.URL.Path == "/x402/verify" {
			f.verified.Add(1)
			answer = f.verify
		} else {
			n := int(f.settled.Add(1))
			answer = f.settle[min(n, len(f.settle))-1]
		}
		expect.NoError(t, json.NewEncoder(w).Encode(answer))
	}))
	t.Cleanup(f.Close)
	return f
}

var price = x402.Price{Amount: "10000", Description: "A forecast"}

// shop serves a handler behind the middleware.
func (f *facilitator) shop(t *testing.T, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	quittance := expect.Must(client.New(f.URL, client.WithKey("key"), client.WithRetries(0)))
	charge, err := x402.New(x402.Config{
		Client: quittance, Network: "eip155:1337", Asset: "0x00000000000000000000000000000000000000a1", PayTo: "0x00000000000000000000000000000000000000b2",
		Name: "USD Coin", Version: "2", MaxResponse: 1000, Logger: slog.New(slog.DiscardHandler),
	})
	expect.OK(t, err)
	s := httptest.NewServer(charge.Handler(price, next))
	t.Cleanup(s.Close)
	return s
}

// answer is the shop's answer, except its body.
type answer struct {
	StatusCode int
	Header     http.Header
}

// get requests a resource, with a payment unless that is empty.
func get(t *testing.T, url, payment string) (a answer, body string) {
	t.Helper()
	r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	if payment != "" {
		r.Header.Set(x402.HeaderSignature, payment)
	}
	response, err := http.DefaultClient.Do(r)
	expect.OK(t, err)
	text, err := io.ReadAll(response.Body)
	expect.OK(t, err)
	expect.OK(t, response.Body.Close())
	return answer{response.StatusCode, response.Header}, string(text)
}

// message decodes a header.
func message[T any](t *testing.T, response answer, header string) (v T) {
	t.Helper()
	text := expect.Must(base64.StdEncoding.DecodeString(response.Header.Get(header)))
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v in %q", header, err, text)
	}
	return v
}

// required is the message that asks for a payment.
type required struct {
	X402Version int
	Error       string
	Resource    apitypes.X402Resource
	Accepts     []apitypes.X402PaymentRequirements
}

// payment returns a payment for a resource's requirements.
func payment(t *testing.T, url string, change func(*apitypes.X402PaymentPayload)) string {
	t.Helper()
	response, _ := get(t, url, "")
	want := message[required](t, response, x402.HeaderRequired)
	p := apitypes.X402PaymentPayload{
		X402Version: 2, Accepted: want.Accepts[0], Resource: &apitypes.X402Resource{URL: "https://elsewhere.example/"},
		Payload: map[string]any{"signature": "0x01"},
	}
	if change != nil {
		change(&p)
	}
	text := expect.Must(json.Marshal(p))
	return base64.StdEncoding.EncodeToString(text)
}

func forecast(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Payer", x402.Payer(r.Context()))
	_, _ = io.WriteString(w, "rain")
}

func TestPaid(t *testing.T) {
	t.Parallel()
	f := newFacilitator(t)
	shop := f.shop(t, forecast)
	response, _ := get(t, shop.URL+"/forecast?city=Oslo", "")
	want := message[required](t, response, x402.HeaderRequired)
	if response.StatusCode != http.StatusPaymentRequired || want.X402Version != 2 || want.Resource.URL != shop.URL+"/forecast?city=Oslo" || f.verified.Load() != 0 {
		t.Errorf("without a payment: %d %+v", response.StatusCode, want)
	}
	paid := payment(t, shop.URL+"/forecast?city=Oslo", nil)
	response, body := get(t, shop.URL+"/forecast?city=Oslo", paid)
	if response.StatusCode != http.StatusOK || body != "rain" || response.Header.Get("X-Payer") != "0xA11ce" {
		t.Errorf("with a payment: %d %q %v", response.StatusCode, body, response.Header)
	}
	if got := message[apitypes.X402SettleResponse](t, response, x402.HeaderResponse); !got.Success || got.Transaction != "0x1" {
		t.Errorf("settled as %+v", got)
	}
	sent := f.last.Load()
	secret, _ := want.Accepts[0].Extra["clientSecret"].(string)
	want.Accepts[0].Extra["clientSecret"] = sent.PaymentPayload.Accepted.Extra["clientSecret"]
	if diff := cmp.Diff(want.Accepts[0], sent.PaymentRequirements); diff != "" {
		t.Errorf("requirements (-asked +sent):\n%s", diff)
	}
	if got := sent.PaymentPayload.Accepted.Extra["clientSecret"]; got == nil || got == secret {
		t.Errorf("the client's secret is %v; the one of another answer is %q", got, secret)
	}
	if got := sent.PaymentPayload.Resource.URL; got != shop.URL+"/forecast?city=Oslo" {
		t.Errorf("the payment is for %s, which the client chose", got)
	}
}

// TestPostIsReleasedOnce has a client return its secret: the facilitator must not answer repetitions of a POST, because
// their bodies may differ.
func TestPostIsReleasedOnce(t *testing.T) {
	t.Parallel()
	f := newFacilitator(t)
	shop := f.shop(t, forecast)
	for method, named := range map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodPost: false} {
		r := expect.Must(http.NewRequestWithContext(t.Context(), method, shop.URL, strings.NewReader("")))
		r.Header.Set(x402.HeaderSignature, payment(t, shop.URL, nil))
		response, err := http.DefaultClient.Do(r)
		expect.OK(t, err)
		expect.OK(t, response.Body.Close())
		if _, ok := f.last.Load().PaymentRequirements.Extra["clientSecret"]; ok != named || response.StatusCode != http.StatusOK {
			t.Errorf("%s: answered %d, and the secret is required: %t", method, response.StatusCode, ok)
		}
	}
}

// TestPaidIsPrivate expects that no shared cache stores a paid response.
func TestPaidIsPrivate(t *testing.T) {
	t.Parallel()
	f := newFacilitator(t)
	for own, want := range map[string]string{
		"": "private", "max-age=60": "max-age=60, private", `private="x"`: `private="x", private`, "no-store": "no-store", "max-age=60, Private": "max-age=60, Private",
	} {
		shop := f.shop(t, func(w http.ResponseWriter, _ *http.Request) {
			if own != "" {
				w.Header().Set("Cache-Control", own)
			}
		})
		response, _ := get(t, shop.URL, payment(t, shop.URL, nil))
		expect.Equal(t, strings.Join(response.Header.Values("Cache-Control"), ", "), want, "%q becomes", own)
	}
}

// TestNotCharged requests responses that must not be settled.
func TestNotCharged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verify apitypes.X402VerifyResponse
		next   http.HandlerFunc
		change func(*apitypes.X402PaymentPayload)
		status int
		reason string
	}{
		"invalid": {verify: apitypes.X402VerifyResponse{InvalidReason: "insufficient_funds"}, next: forecast, status: 402, reason: "insufficient_funds"},
		"for less": {
			verify: apitypes.X402VerifyResponse{IsValid: true}, next: forecast, status: 402, reason: "No matching payment requirements",
			change: func(p *apitypes.X402PaymentPayload) { p.Accepted.Amount = "9999" },
		},
		"for another chain": {
			verify: apitypes.X402VerifyResponse{IsValid: true}, next: forecast, status: 402, reason: "No matching payment requirements",
			change: func(p *apitypes.X402PaymentPayload) { p.Accepted.Network = "eip155:1" },
		},
		"handler failed": {
			verify: apitypes.X402VerifyResponse{IsValid: true}, status: 404,
			next: func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		},
		"too large": {
			verify: apitypes.X402VerifyResponse{IsValid: true}, status: 500,
			next: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1001)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFacilitator(t)
			f.verify = c.verify
			shop := f.shop(t, c.next)
			response, body := get(t, shop.URL, payment(t, shop.URL, c.change))
			if response.StatusCode != c.status || strings.Contains(body, "rain") || f.settled.Load() != 0 {
				t.Errorf("answered %d %q, settled %d times", response.StatusCode, body, f.settled.Load())
			}
			if c.reason != "" {
				if got := message[required](t, response, x402.HeaderRequired); got.Error != c.reason {
					t.Errorf("the reason is %q, want %q", got.Error, c.reason)
				}
			}
		})
	}
}

// TestPending has the facilitator not know the outcome at first: the middleware repeats the same payment.
func TestPending(t *testing.T) {
	t.Parallel()
	f := newFacilitator(t)
	f.settle = []apitypes.X402SettleResponse{{ErrorReason: x402.Pending}, {Success: true, Transaction: "0x2"}}
	shop := f.shop(t, forecast)
	response, body := get(t, shop.URL, payment(t, shop.URL, nil))
	if response.StatusCode != http.StatusOK || body != "rain" || f.settled.Load() != 2 {
		t.Errorf("answered %d %q after %d settlements", response.StatusCode, body, f.settled.Load())
	}
}

// TestNotSettled expects that a response is not released without a payment.
func TestNotSettled(t *testing.T) {
	t.Parallel()
	f := newFacilitator(t)
	f.settle = []apitypes.X402SettleResponse{{ErrorReason: "insufficient_funds"}}
	shop := f.shop(t, forecast)
	response, body := get(t, shop.URL, payment(t, shop.URL, nil))
	if response.StatusCode != http.StatusPaymentRequired || strings.Contains(body, "rain") {
		t.Errorf("answered %d %q", response.StatusCode, body)
	}
	if got := message[apitypes.X402SettleResponse](t, response, x402.HeaderResponse); got.ErrorReason != "insufficient_funds" {
		t.Errorf("settled as %+v", got)
	}
}

func TestMalformedPayment(t *testing.T) {
	t.Parallel()
	f := newFacilitator(t)
	shop := f.shop(t, forecast)
	for _, value := range []string{"?", "e30", strings.Repeat("A", 12<<10+4)} {
		if response, _ := get(t, shop.URL, value); response.StatusCode != http.StatusBadRequest && !(value == "e30" && response.StatusCode == http.StatusPaymentRequired) {
			t.Errorf("a header of %.10q is answered with %d", value, response.StatusCode)
		}
	}
	if f.verified.Load() != 0 {
		t.Error("it was verified")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := x402.New(x402.Config{}); err == nil {
		t.Error("a configuration without a client is accepted")
	}
	quittance := expect.Must(client.New("http://127.0.0.1:1"))
	if _, err := x402.New(x402.Config{Client: quittance, Network: "eip155:1", Asset: "0x", PayTo: "0x", Name: "USD Coin"}); err == nil || !strings.Contains(err.Error(), "Version") {
		t.Errorf("a configuration without a version: %v", err)
	}
	for timeout, ok := range map[time.Duration]bool{-1: false, 19 * time.Second: false, 20 * time.Second: true, time.Hour: true, time.Hour + 1: false} {
		if _, err := x402.New(x402.Config{Client: quittance, Network: "eip155:1", Asset: "0x", PayTo: "0x", Name: "USD Coin", Version: "2", Timeout: timeout}); (err == nil) != ok {
			t.Errorf("a timeout of %s: %v", timeout, err)
		}
	}
}
