package x402_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/x402"
)

// payload is the example of a PaymentPayload in the protocol's specification.
const payload = `{
  "x402Version": 2,
  "resource": {"url": "https://api.example.com/premium-data", "description": "Access to premium market data", "mimeType": "application/json"},
  "accepted": {
    "scheme": "exact",
    "network": "eip155:84532",
    "amount": "10000",
    "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
    "maxTimeoutSeconds": 60,
    "extra": {"name": "USDC", "version": "2"}
  },
  "payload": {
    "signature": "0x2d6a7588d6acca505cbf0d9a4a227e0c52c6c34008c8e8986a1283259764173608a2ce6496642e377d6da8dbbf5836e9bd15092f9ecab05ded3d6293af148b571c",
    "authorization": {
      "from": "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      "to": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
      "value": "10000",
      "validAfter": "1740672089",
      "validBefore": "1740672154",
      "nonce": "0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480"
    }
  },
  "extensions": {}
}`

// header returns a message as the value of a header.
func header(message string) string { return base64.StdEncoding.EncodeToString([]byte(message)) }

// requirements are the requirements that the payload accepts.
func requirements() x402.Requirements {
	return x402.Requirements{
		ChainID: 84532, Token: chain.MustAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
		PayTo: chain.MustAddress("0x209693Bc6afc0C5328bA36FaF03C514EF312287C"), Amount: invoice.NewAmount(10000), Timeout: time.Minute,
		Domain: x402.Domain{Name: "USDC", Version: "2"},
	}
}

func TestParseSignatureHeader(t *testing.T) {
	t.Parallel()
	p, err := x402.ParseSignatureHeader(header(payload))
	expect.OK(t, err)
	expect.Equal(t, p.Resource, "https://api.example.com/premium-data", "the resource is")
	expect.Equal(t, p.Accepted, requirements(), "it accepts")
	a := p.Authorization
	if a.From != chain.MustAddress("0x857b06519E91e3A54538791bDbb0E22373e36b66") || a.To != p.Accepted.PayTo || a.Value != invoice.NewAmount(10000) ||
		a.ValidAfter.Unix() != 1740672089 || a.ValidBefore.Unix() != 1740672154 || len(a.Signature) != 65 ||
		a.Nonce.String() != "0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480" {
		t.Errorf("the authorization is %+v", a)
	}
}

// TestReasons changes the payload in one place, and expects the protocol's reason.
func TestReasons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     x402.Reason
	}{
		{`"x402Version": 2`, `"x402Version": 1`, x402.InvalidVersion},
		{`"x402Version": 2`, `"x402Version": "2"`, x402.InvalidVersion},
		{`"scheme": "exact"`, `"scheme": "upto"`, x402.UnsupportedScheme},
		{`"version": "2"`, `"version": "2", "assetTransferMethod": "permit2"`, x402.UnsupportedScheme},
		{`"eip155:84532"`, `"solana:devnet"`, x402.InvalidNetwork},
		{`"eip155:84532"`, `"eip155:084532"`, x402.InvalidNetwork},
		{`"eip155:84532"`, `"eip155:0"`, x402.InvalidNetwork},
		{`"amount": "10000"`, `"amount": "0"`, x402.InvalidRequirements},
		{`"amount": "10000"`, `"amount": 10000`, x402.InvalidRequirements},
		{`"maxTimeoutSeconds": 60`, `"maxTimeoutSeconds": 19`, x402.InvalidRequirements},
		{`"maxTimeoutSeconds": 60`, `"maxTimeoutSeconds": 3601`, x402.InvalidRequirements},
		{`0x036CbD53842c5426634e7929541eC2318f3dCF7e`, `0x036cbD53842c5426634e7929541eC2318f3dCF7e`, x402.InvalidRequirements}, // its checksum
		{`"validAfter": "1740672089"`, `"validAfter": "-1"`, x402.NotYetValid},
		{`"validBefore": "1740672154"`, `"validBefore": "253402300800"`, x402.NoLongerValid},
		{`"value": "10000"`, `"value": "1e4"`, x402.InvalidPayload},
		{`"nonce": "0xf3`, `"nonce": "0x`, x402.InvalidPayload},
		{`"signature": "0x2d`, `"signature": "2d`, x402.InvalidPayload},
		{`"extensions": {}`, `"payload": {}`, x402.InvalidPayload}, // a member twice
		{`"url": "https://api.example.com/premium-data"`, `"url": ""`, x402.InvalidPayload},
	} {
		text := strings.Replace(payload, c.from, c.to, 1)
		if text == payload {
			t.Fatalf("the payload lacks %s", c.from)
		}
		_, err := x402.ParseSignatureHeader(header(text))
		if invalid := (*x402.Error)(nil); !errors.As(err, &invalid) || invalid.Reason != c.want {
			t.Errorf("with %s: %v, want %s", c.to, err, c.want)
		}
	}
}

func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	// Base64 has 4 bytes for each 3.
	fits := payload + strings.Repeat(" ", x402.MaxHeader/4*3-len(payload))
	if value := header(fits); len(value) != x402.MaxHeader {
		t.Fatalf("the header has %d bytes", len(value))
	}
	if _, err := x402.ParseSignatureHeader(header(fits)); err != nil {
		t.Errorf("a header of %d bytes: %v", x402.MaxHeader, err)
	}
	if _, err := x402.ParseSignatureHeader(header(fits + " ")); err == nil {
		t.Errorf("a header of more than %d bytes is accepted", x402.MaxHeader)
	}
	for _, value := range []string{"", "e30", "e30=\n", header("{}") + header("{}"), header("null")} {
		if _, err := x402.ParseSignatureHeader(value); err == nil {
			t.Errorf("the header %q is accepted", value)
		}
	}
}

func TestRequirementsJSON(t *testing.T) {
	t.Parallel()
	got := expect.Must(json.Marshal(requirements().JSON()))
	const want = `{"scheme":"exact","network":"eip155:84532","amount":"10000","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e",` +
		`"payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","maxTimeoutSeconds":60,"extra":{"assetTransferMethod":"eip3009","name":"USDC","version":"2"}}`
	expect.NoDiff(t, cmp.Diff(want, string(got)), "requirements")
}

// TestCheck changes the requirements, and expects the reason why the payload does not match them.
func TestCheck(t *testing.T) {
	t.Parallel()
	p, err := x402.ParseSignatureHeader(header(payload))
	expect.OK(t, err)
	expect.NoError(t, (x402.Request{Payment: p, Requirements: requirements()}).Check())
	for want, change := range map[x402.Reason]func(*x402.Requirements){
		x402.InvalidNetwork:      func(r *x402.Requirements) { r.ChainID = 8453 },
		x402.InvalidRequirements: func(r *x402.Requirements) { r.Token = invoice.Address{1} },
		x402.RecipientMismatch:   func(r *x402.Requirements) { r.PayTo = invoice.Address{1} },
		x402.ValueMismatch:       func(r *x402.Requirements) { r.Amount = invoice.NewAmount(10001) },
	} {
		r := requirements()
		change(&r)
		err := x402.Request{Payment: p, Requirements: r}.Check()
		if invalid := (*x402.Error)(nil); !errors.As(err, &invalid) || invalid.Reason != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestEveryRefusalHasAReason expects a reason for each refusal of a payer's authorization, unless it is about the
// service's resources.
func TestEveryRefusalHasAReason(t *testing.T) {
	t.Parallel()
	for _, refusal := range []invoice.Refusal{
		invoice.RefusedGaslessOff, invoice.RefusedNotPayable, invoice.RefusedRecipient, invoice.RefusedValue, invoice.RefusedSelf,
		invoice.RefusedNotYetValid, invoice.RefusedExpired, invoice.RefusedWindow, invoice.RefusedPastInvoice, invoice.RefusedMismatch,
		invoice.RefusedNonceOfOther, invoice.RefusedPending, invoice.RefusedSignature, invoice.RefusedDomain, invoice.RefusedNonceUsed,
		invoice.RefusedBalance, invoice.RefusedBlacklisted, invoice.RefusedPaused, invoice.RefusedReverts, invoice.RefusedWindowClosed,
		invoice.RefusedInvoiceClosed,
	} {
		if x402.ReasonOf(refusal) == x402.UnexpectedError {
			t.Errorf("%s has no reason", refusal)
		}
	}
	for _, refusal := range []invoice.Refusal{invoice.RefusedBudget, invoice.RefusedGas} {
		expect.Equal(t, x402.ReasonOf(refusal), x402.UnexpectedError, "%s is", refusal)
	}
}

// FuzzParse parses any text as a header and as a request. Accepted input must give the same result when it is written
// and parsed again.
func FuzzParse(f *testing.F) {
	f.Add(payload)
	f.Add(`{"x402Version":2,"paymentPayload":` + payload + `,"paymentRequirements":{}}`)
	f.Add(`{"x402Version":2,"accepted":{"extra":null},"payload":{"authorization":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := x402.ParseSignatureHeader(header(text))
		if invalid := (*x402.Error)(nil); err != nil && !errors.As(err, &invalid) {
			t.Fatalf("%q: %v (%T)", text, err, err)
		}
		if err == nil {
			again := expect.Must(json.Marshal(map[string]any{"x402Version": 2, "accepted": p.Accepted.JSON(), "payload": json.RawMessage(payloadOf(p.Authorization))}))
			q, err := x402.ParseSignatureHeader(header(string(again)))
			if err != nil && len(again) <= x402.MaxHeader/4*3 && p.Accepted.Domain.Name != "" && p.Accepted.Domain.Version != "" {
				t.Fatalf("%q: written as %s: %v", text, again, err)
			}
			if err == nil && !q.Authorization.Equal(p.Authorization) {
				t.Fatalf("%q: written as %s", text, again)
			}
		}
		body, err := apiconv.Object([]byte(text))
		if err != nil {
			return
		}
		if _, err := x402.ParseRequest(body); err != nil {
			if invalid := (*x402.Error)(nil); !errors.As(err, &invalid) {
				t.Fatalf("%q: %v (%T)", text, err, err)
			}
		}
	})
}

// payloadOf returns the payload with an authorization.
func payloadOf(a invoice.Authorization) string {
	text, err := json.Marshal(map[string]any{
		"signature": "0x" + hex.EncodeToString(a.Signature),
		"authorization": map[string]string{
			"from": chain.Checksum(a.From), "to": chain.Checksum(a.To), "value": a.Value.String(), "nonce": a.Nonce.String(),
			"validAfter": secondsOf(a.ValidAfter), "validBefore": secondsOf(a.ValidBefore),
		},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func secondsOf(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
