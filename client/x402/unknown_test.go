package x402_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/client/x402"
	"github.com/quittance/quittance/internal/test/expect"
)

// forgetful is a facilitator that answers each payment with success once, also to repetitions with the same key, and
// loses answers.
type forgetful struct {
	t        *testing.T
	answered map[any]string // the keys, by payment
	lose     int            // how many answers
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	var request apitypes.X402Request
	expect.OK(f.t, json.NewDecoder(r.Body).Decode(&request))
	payment, key := request.PaymentPayload.Payload["signature"], r.Header.Get("Idempotency-Key")
	var answer any = apitypes.X402VerifyResponse{IsValid: f.answered[payment] == "", InvalidReason: "nonce_already_used", Payer: "0xA11ce"}
	if r.URL.Path == "/x402/settle" {
		if f.answered[payment] == "" {
			f.answered[payment] = key
		}
		answer = apitypes.X402SettleResponse{Success: f.answered[payment] == key, Transaction: "0x1"}
		if f.answered[payment] != key {
			answer = apitypes.X402SettleResponse{ErrorReason: "nonce_already_used"}
		}
		if f.lose--; f.lose >= 0 {
			return nil, errors.New("the answer is lost")
		}
	}
	text := expect.Must(json.Marshal(answer))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

// TestLostAnswers loses the facilitator's answers to the settlement of a POST, some or all of a request. The response is
// released once, also if its handler fails at first.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{t: t, answered: make(map[any]string)}
		quittance := expect.Must(client.New("http://facilitator.example", client.WithHTTPClient(&http.Client{Transport: f}), client.WithRetries(0)))
		cfg := x402.Config{
			Client: quittance, Network: "eip155:1337", Asset: "0xa1", PayTo: "0xb2", Name: "USD Coin", Version: "2", Logger: slog.New(slog.DiscardHandler),
		}
		fails := false
		shop := expect.Must(x402.New(cfg)).Handler(price, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if fails {
				w.WriteHeader(http.StatusInternalServerError)
			}
			forecast(w, r)
		}))
		post := func(what, signature string, want int) {
			t.Helper()
			payload := apitypes.X402PaymentPayload{
				X402Version: 2, Payload: map[string]any{"signature": signature},
				Accepted: apitypes.X402PaymentRequirements{Scheme: "exact", Network: cfg.Network, Amount: price.Amount, Asset: cfg.Asset, PayTo: cfg.PayTo},
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/chat", nil)
			r.Header.Set(x402.HeaderSignature, base64.StdEncoding.EncodeToString(expect.Must(json.Marshal(payload))))
			w := httptest.NewRecorder()
			shop.ServeHTTP(w, r)
			if w.Code != want || want == http.StatusOK && (w.Body.String() != "rain" || w.Header().Get("X-Payer") != "0xA11ce") {
				t.Errorf("%s: answered %d %s", what, w.Code, w.Body)
			}
		}
		f.lose = 1
		post("the first answer is lost", "0x01", http.StatusOK)
		post("repeated", "0x01", http.StatusPaymentRequired)
		f.lose = 1000
		post("all answers are lost", "0x02", http.StatusPaymentRequired)
		f.lose, fails = 0, true
		post("its handler fails", "0x02", http.StatusInternalServerError)
		fails = false
		post("repeated after lost answers", "0x02", http.StatusOK)
		post("repeated again", "0x02", http.StatusPaymentRequired)
	})
}
