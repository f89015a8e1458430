package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/client/x402"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraX402Middleware charges for a route of a Go server with client/x402. The unmodified client returns its
// secret, so it can repeat its payment. A stranger who has copied the payment from the chain cannot.
func TestExtraX402Middleware(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
	info := w.info.Load()
	quittance := expect.Must(client.New(info.BaseURL, client.WithKey(x402Key(t, w.api(), info.Merchant.ID))))
	charge, err := x402.New(x402.Config{
		Client: quittance, Network: fmt.Sprintf("eip155:%d", info.Chain.ChainID), Asset: info.Chain.Token, PayTo: info.Merchant.Address, Name: "USD Coin", Version: "2",
	})
	expect.OK(t, err)
	var payment atomic.Pointer[string] // the newest that was offered to the server
	forecast := charge.Handler(x402.Price{Amount: "10000"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "rain for "+x402.Payer(r.Context())) // the client reads it
	}))
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if offered := r.Header.Get(x402.HeaderSignature); offered != "" {
			payment.Store(&offered)
		}
		forecast.ServeHTTP(w, r)
	}))
	t.Cleanup(shop.Close)
	url := shop.URL + "/forecast"
	b := newAgents(t, info.Payer.PrivateKey).buy(1, url)[url]
	if b.Status != http.StatusOK || b.Signed != 1 || b.Body != "rain for "+info.Payer.Address || b.Settled == nil || !b.Settled.Success {
		t.Fatalf("the forecast was bought as %+v", b)
	}
	signed := *payment.Load()
	if got, body := request402(t, url, signed); got != http.StatusOK {
		t.Errorf("repeated by the client, the payment is answered %d %s", got, body)
	}
	for _, secret := range []string{"", "of the stranger"} {
		if got, body := request402(t, url, withClientSecret(t, signed, secret)); got != http.StatusPaymentRequired || strings.Contains(body, "rain") {
			t.Errorf("with the secret %q of a stranger, the payment is answered %d %s", secret, got, body)
		}
	}
}

// request402 requests a URL with a payment.
func request402(tb testing.TB, url, payment string) (status int, body string) {
	tb.Helper()
	request := expect.Must(http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil))
	request.Header.Set(x402.HeaderSignature, payment)
	response, err := http.DefaultClient.Do(request)
	expect.OK(tb, err)
	text, err := io.ReadAll(response.Body)
	expect.OK(tb, errors.Join(err, response.Body.Close()))
	return response.StatusCode, string(text)
}

// withClientSecret returns a payment with another client's secret, or without one.
func withClientSecret(tb testing.TB, payment, secret string) string {
	tb.Helper()
	text, err := base64.StdEncoding.DecodeString(payment)
	expect.OK(tb, err)
	var p apitypes.X402PaymentPayload
	expect.OK(tb, json.Unmarshal(text, &p))
	if p.Accepted.Extra["clientSecret"] == nil {
		tb.Fatalf("the payment has no secret: %s", text)
	}
	delete(p.Accepted.Extra, "clientSecret")
	if secret != "" {
		p.Accepted.Extra["clientSecret"] = secret
	}
	if text, err = json.Marshal(p); err != nil {
		tb.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(text)
}

// x402 makes a payment of a resource of the merchant by x402, with a key of the merchant.
func (s *story) x402() {
	s.Helper()
	made := decoded[apitypes.KeySecretResponse](s, s.do(http.MethodPost, "/api/keys", `{"name":"api server","merchantId":"acme","scopes":["standard"]}`,
		"Authorization", "Bearer "+s.key, "Content-Type", "application/json"), http.StatusCreated)
	operator := s.key
	s.key = made.Secret
	defer func() { s.key = operator }()

	info, now := s.info.Load(), time.Now().Unix()
	payer := s.payer()
	authorization := contracts.Authorization{
		From: payer.address, To: s.till.address, Value: big.NewInt(10_000),
		ValidAfter: big.NewInt(now - 600), ValidBefore: big.NewInt(now + 300), Nonce: common.BigToHash(big.NewInt(now)),
	}
	token := common.HexToAddress(info.Chain.Token)
	signature, err := authorization.Sign(contracts.TestUSDCDomain(new(big.Int).SetUint64(info.Chain.ChainID), token), payer.key)
	expect.OK(s, err)
	terms := strings.NewReplacer("TOKEN", token.Hex(), "TILL", s.till.address.Hex()).Replace(`{
      "scheme": "exact", "network": "eip155:1337", "amount": "10000", "asset": "TOKEN", "payTo": "TILL", "maxTimeoutSeconds": 300,
      "extra": {"name": "USD Coin", "version": "2"}
    }`)
	signed, err := json.MarshalIndent(map[string]string{
		"from": payer.address.Hex(), "to": s.till.address.Hex(), "value": "10000", "validAfter": authorization.ValidAfter.String(),
		"validBefore": authorization.ValidBefore.String(), "nonce": authorization.Nonce.Hex(),
	}, "      ", "  ")
	expect.OK(s, err)
	body := `{
  "x402Version": 2,
  "paymentPayload": {
    "x402Version": 2,
    "resource": {"url": "https://api.shop.example/forecast/oslo"},
    "accepted": ` + terms + `,
    "payload": {
      "authorization": ` + string(signed) + `,
      "signature": "` + hexutil.Encode(signature.Bytes()) + `"
    }
  },
  "paymentRequirements": ` + terms + `
}`
	s.call("getX402Supported", http.MethodGet, "/x402/supported", "")
	if a := s.call("verifyX402", http.MethodPost, "/x402/verify", body); !strings.Contains(string(a.body), `"isValid":true`) {
		s.Errorf("verified as %s", a.body)
	}
	if a := s.call("settleX402", http.MethodPost, "/x402/settle", body); !strings.Contains(string(a.body), `"success":true`) {
		s.Errorf("settled as %s", a.body)
	}
}
