package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// offer is a payment by x402 that a test can falsify before it is signed.
type offer struct {
	contracts.Authorization
	chainID int64 // of the signature
	network string
	key     string // that signs
}

// offer returns a payment of an amount to the shop with a random nonce.
func (s *service) offer(amount int64) offer {
	s.Helper()
	var nonce common.Hash
	if _, err := rand.Read(nonce[:]); err != nil {
		s.Fatal(err)
	}
	now := s.chainTime()
	return offer{contracts.Authorization{
		From: common.HexToAddress(s.payer.Address), To: common.HexToAddress(s.till.Address), Value: big.NewInt(amount),
		ValidAfter: big.NewInt(now - 600), ValidBefore: big.NewInt(now + 300), Nonce: nonce,
	}, anviltest.ChainID, fmt.Sprintf("eip155:%d", anviltest.ChainID), s.payer.Key}
}

// sign returns the payload of an offer for requirements of an amount.
func (s *service) sign(o offer, amount int64) apitypes.X402PaymentPayload {
	s.Helper()
	key, err := crypto.HexToECDSA(strings.TrimPrefix(o.key, "0x"))
	if err != nil {
		s.Fatal(err)
	}
	signature, err := o.Sign(contracts.TestUSDCDomain(big.NewInt(o.chainID), common.HexToAddress(s.token)), key)
	if err != nil {
		s.Fatal(err)
	}
	return apitypes.X402PaymentPayload{X402Version: 2, Accepted: s.required(o.network, amount), Payload: map[string]any{
		"signature": hexutil.Encode(signature.Bytes()),
		"authorization": map[string]string{
			"from": o.From.Hex(), "to": o.To.Hex(), "value": o.Value.String(), "validAfter": o.ValidAfter.String(),
			"validBefore": o.ValidBefore.String(), "nonce": o.Nonce.Hex(),
		},
	}}
}

// required returns requirements of an amount.
func (s *service) required(network string, amount int64) apitypes.X402PaymentRequirements {
	return apitypes.X402PaymentRequirements{
		Scheme: "exact", Network: network, Amount: fmt.Sprint(amount), Asset: s.token, PayTo: s.till.Address, MaxTimeoutSeconds: 300,
		Extra: map[string]any{"name": "USD Coin", "version": "2"},
	}
}

// headerOf returns a payload as the header PAYMENT-SIGNATURE.
func (s *service) headerOf(p apitypes.X402PaymentPayload) string {
	s.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		s.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(text)
}

// settledAs returns the header PAYMENT-RESPONSE.
func (s *service) settledAs(response x402Answer) (settled apitypes.X402SettleResponse) {
	s.Helper()
	text, err := base64.StdEncoding.DecodeString(response.Header.Get("PAYMENT-RESPONSE"))
	if err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(text, &settled); err != nil {
		s.Fatalf("PAYMENT-RESPONSE is %q: %v", text, err)
	}
	return settled
}

// facilitated is an answer of the facilitator to verify or settle.
type facilitated struct {
	verified apitypes.X402VerifyResponse
	settled  apitypes.X402SettleResponse
}

// facilitatorRequest returns a request with a payment for an operation of the facilitator.
func (s *service) facilitatorRequest(ctx context.Context, r *replica, key, operation string, p apitypes.X402PaymentPayload, amount int64) *http.Request {
	s.Helper()
	body, err := json.Marshal(apitypes.X402Request{X402Version: 2, PaymentPayload: p, PaymentRequirements: s.required(p.Accepted.Network, amount)})
	if err != nil {
		s.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/x402/"+operation, bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	return request
}

// facilitate posts a payment to an operation of the facilitator.
func (s *service) facilitate(r *replica, key, operation string, p apitypes.X402PaymentPayload, amount int64) (answer facilitated) {
	s.Helper()
	response, err := http.DefaultClient.Do(s.facilitatorRequest(s.Context(), r, key, operation, p, amount))
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusOK {
		s.Fatalf("%s answered %d", operation, response.StatusCode)
	}
	var raw json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&raw); err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer.verified); err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer.settled); err != nil {
		s.Fatal(err)
	}
	return answer
}

// TestExtraX402Refused signs authorizations that cannot pay the invoice. They are refused with the
// protocol's reasons, by the invoice and by the facilitator, and the payers are charged nothing.
func TestExtraX402Refused(t *testing.T) {
	t.Parallel()
	s, _ := newX402Service(t, dbtest.SQLite(t))
	r := s.start()
	key := s.merchantKey(r)
	const amount = 20_000
	made := s.create(r, amount)
	path := "/x402/invoices/" + made.ID
	used, canceled := s.useNonce(), s.cancelNonce()
	for name, c := range map[string]struct {
		change func(*offer)
		want   string
	}{
		"too little":               {func(o *offer) { o.Value = big.NewInt(amount - 1) }, "invalid_exact_evm_payload_authorization_value_mismatch"},
		"too much":                 {func(o *offer) { o.Value = big.NewInt(amount + 1) }, "invalid_exact_evm_payload_authorization_value_mismatch"},
		"another network":          {func(o *offer) { o.network = "eip155:8453" }, "invalid_network"},
		"signed for another chain": {func(o *offer) { o.chainID = 8453 }, "invalid_exact_evm_payload_signature"},
		"expired":                  {func(o *offer) { o.ValidBefore = big.NewInt(s.chainTime() - 1) }, "invalid_exact_evm_payload_authorization_valid_before"},
		"not yet valid":            {func(o *offer) { o.ValidAfter = big.NewInt(s.chainTime() + 100) }, "invalid_exact_evm_payload_authorization_valid_after"},
		"another recipient":        {func(o *offer) { o.To = common.HexToAddress(s.admin.Address) }, "invalid_exact_evm_payload_recipient_mismatch"},
		"signed by another":        {func(o *offer) { o.From = common.HexToAddress(s.relay.Address) }, "invalid_exact_evm_payload_signature"},
		"no funds":                 {func(o *offer) { o.From, o.key = common.HexToAddress(s.relay.Address), s.relay.Key }, "insufficient_funds"},
		"a used nonce":             {func(o *offer) { o.Nonce = used }, "invalid_exact_evm_nonce_already_used"},
		"a canceled nonce":         {func(o *offer) { o.Nonce = canceled }, "invalid_exact_evm_nonce_already_used"},
	} {
		o := s.offer(amount)
		c.change(&o)
		p := s.sign(o, amount)
		response, _ := s.getX402(r, path, s.headerOf(p))
		if got := s.settledAs(response); response.StatusCode != http.StatusPaymentRequired || got.Success || got.ErrorReason != c.want || response.Header.Get("PAYMENT-REQUIRED") == "" {
			t.Errorf("%s: the invoice answered %d %+v, want %s", name, response.StatusCode, got, c.want)
		}
		if got := s.facilitate(r, key, "verify", p, amount); got.verified.IsValid || got.verified.InvalidReason != c.want {
			t.Errorf("%s: verified as %+v, want %s", name, got.verified, c.want)
		}
		if got := s.facilitate(r, key, "settle", p, amount); got.settled.Success || got.settled.ErrorReason != c.want || got.settled.Transaction != "" {
			t.Errorf("%s: settled as %+v, want %s", name, got.settled, c.want)
		}
	}
	if all := s.payments(r); len(all) != 0 {
		t.Errorf("there are the payments %+v", all)
	}
	if n := s.countInvoices(r); n != 1 {
		t.Errorf("there are %d invoices, want the one that was created", n)
	}
}

// useNonce has another account submit a transfer to the admin that the payer has signed, and returns
// its nonce.
func (s *service) useNonce() common.Hash {
	s.Helper()
	o := s.offer(1)
	o.To = common.HexToAddress(s.admin.Address)
	s.submitOffer(o)
	return o.Nonce
}

// submitOffer has another account submit a payment that the payer has signed to the token.
func (s *service) submitOffer(o offer) {
	s.Helper()
	signed := s.sign(o, o.Value.Int64()).Payload["signature"].(string)
	s.chain.Send(s, s.relay, s.token, "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
		o.From.Hex(), o.To.Hex(), o.Value.String(), o.ValidAfter.String(), o.ValidBefore.String(), o.Nonce.Hex(), signed)
}

// cancelNonce has another account submit a cancellation that the payer has signed, and returns the
// nonce.
func (s *service) cancelNonce() common.Hash {
	s.Helper()
	o := s.offer(1)
	key, err := crypto.HexToECDSA(strings.TrimPrefix(s.payer.Key, "0x"))
	if err != nil {
		s.Fatal(err)
	}
	signature, err := o.SignCancel(contracts.TestUSDCDomain(big.NewInt(o.chainID), common.HexToAddress(s.token)), key)
	if err != nil {
		s.Fatal(err)
	}
	s.chain.Send(s, s.relay, s.token, "cancelAuthorization(address,bytes32,bytes)", o.From.Hex(), o.Nonce.Hex(), hexutil.Encode(signature.Bytes()))
	return o.Nonce
}

// countInvoices returns the number of the shop's invoices.
func (s *service) countInvoices(r *replica) (n int) {
	s.Helper()
	status, text := s.get(r, "/api/invoices?merchantId="+shopID)
	var list apitypes.InvoiceList
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != http.StatusOK {
		s.Fatalf("%d %s: %v", status, text, err)
	}
	return len(list.Invoices)
}

// TestExtraX402Repeated repeats payments, uses their nonces again, and has a payer crash after it has
// signed.
func TestExtraX402Repeated(t *testing.T) {
	t.Parallel()
	s, _ := newX402Service(t, dbtest.SQLite(t))
	r := s.start()
	key := s.merchantKey(r)
	const amount = 20_000
	made, other := s.create(r, amount), s.create(r, amount)

	// The payer crashes after it has sent its payment. Asked without a payment, the service waits for the
	// outcome instead of asking for another payment.
	p := s.sign(s.offer(amount), amount)
	ctx, die := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer die()
	dying, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/x402/invoices/"+made.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	dying.Header.Set("PAYMENT-SIGNATURE", s.headerOf(p))
	discard(dying)
	response, body := s.getX402(r, "/x402/invoices/"+made.ID, "")
	if response.StatusCode != http.StatusOK || !strings.Contains(body, made.ID) {
		t.Errorf("after the payer died the invoice is answered %d %s", response.StatusCode, body)
	}
	for range 3 {
		response, _ = s.getX402(r, "/x402/invoices/"+made.ID, s.headerOf(p))
		if got := s.settledAs(response); response.StatusCode != http.StatusOK || !got.Success {
			t.Errorf("repeated, the payment is answered %d %+v", response.StatusCode, got)
		}
	}
	response, _ = s.getX402(r, "/x402/invoices/"+other.ID, s.headerOf(p))
	if got := s.settledAs(response); response.StatusCode != http.StatusPaymentRequired || got.ErrorReason != "invalid_exact_evm_nonce_already_used" {
		t.Errorf("for another invoice, the payment is answered %d %+v", response.StatusCode, got)
	}

	// A merchant's resource. The payer or the server crashes before the answer.
	p = s.sign(s.offer(amount), amount)
	ctx, die = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer die()
	discard(s.facilitatorRequest(ctx, r, key, "settle", p, amount))
	if got := s.facilitate(r, key, "verify", p, amount); !got.verified.IsValid {
		t.Errorf("after the payer died it is verified as %+v", got.verified)
	}
	if got := s.facilitate(r, key, "settle", p, amount); !got.settled.Success {
		t.Errorf("after the payer died it is settled as %+v", got.settled)
	}

	// Success is answered three times.
	p = s.sign(s.offer(amount), amount)
	first := s.facilitate(r, key, "settle", p, amount)
	if !first.settled.Success {
		t.Fatalf("settled as %+v", first.settled)
	}
	for range 2 {
		if got := s.facilitate(r, key, "verify", p, amount); !got.verified.IsValid {
			t.Errorf("repeated, it is verified as %+v", got.verified)
		}
		if got := s.facilitate(r, key, "settle", p, amount); !got.settled.Success || got.settled.Transaction != first.settled.Transaction {
			t.Errorf("repeated, it is settled as %+v", got.settled)
		}
	}
	const used = "invalid_exact_evm_nonce_already_used"
	if got := s.facilitate(r, key, "verify", p, amount); got.verified.IsValid || got.verified.InvalidReason != used {
		t.Errorf("repeated once more, it is verified as %+v", got.verified)
	}
	if got := s.facilitate(r, key, "settle", p, amount); got.settled.Success || got.settled.ErrorReason != used {
		t.Errorf("repeated once more, it is settled as %+v", got.settled)
	}
	p.Resource = &apitypes.X402Resource{URL: "https://shop.example/other"}
	if got := s.facilitate(r, key, "settle", p, amount); got.settled.Success || got.settled.ErrorReason != used {
		t.Errorf("for another resource, it is settled as %+v", got.settled)
	}
	if all := s.payments(r); len(all) != 3 {
		t.Errorf("there are %d payments, want 3: %+v", len(all), all)
	}
}

// TestExtraX402Submitted submits a payment that names its invoice, as a stranger, right before the payer
// presents it: the invoice is paid, once.
func TestExtraX402Submitted(t *testing.T) {
	t.Parallel()
	s, _ := newX402Service(t, dbtest.SQLite(t))
	r := s.start()
	const amount = 20_000
	made := s.create(r, amount)
	o := s.offer(amount)
	o.Nonce = common.HexToHash(made.OnChainInvoiceID)
	s.submitOffer(o)
	response, body := s.getX402(r, "/x402/invoices/"+made.ID, s.headerOf(s.sign(o, amount)))
	if response.StatusCode != http.StatusOK || !strings.Contains(body, made.ID) {
		t.Errorf("the payment is answered %d %s", response.StatusCode, body)
	}
	if all := s.payments(r); len(all) != 1 || all[0].InvoiceID != made.ID {
		t.Errorf("the payments are %+v", all)
	}
}

// discard makes a request and ignores the answer.
func discard(r *http.Request) {
	if response, err := http.DefaultClient.Do(r); err == nil {
		_ = response.Body.Close()
	}
}
