package api_test

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/api/apitest"
	"github.com/quittance/quittance/internal/x402"
)

// facilitatorOf answers payments of invoices as the test chooses.
type facilitatorOf struct {
	api.Facilitator
	answer  apitypes.X402SettleResponse
	pending *apitypes.X402SettleResponse // nil if no payment is being made
	paid    int
}

func (f *facilitatorOf) Pay(context.Context, invoice.Invoice, x402.Payment) (apitypes.X402SettleResponse, error) {
	f.paid++
	return f.answer, nil
}

func (f *facilitatorOf) Pending(context.Context, invoice.Invoice) (apitypes.X402SettleResponse, bool, error) {
	if f.pending == nil {
		return apitypes.X402SettleResponse{}, false, nil
	}
	return *f.pending, true, nil
}

func (f *facilitatorOf) Requirements(context.Context, invoice.Invoice) (x402.Requirements, error) {
	return x402.Requirements{ChainID: 8453, Amount: invoice.NewAmount(5), Timeout: time.Minute, Domain: x402.Domain{Name: "USD Coin", Version: "2"}}, nil
}

// x402Payment is a payment as a client sends it.
var x402Payment = base64.StdEncoding.EncodeToString([]byte(`{"x402Version":2,
	"accepted":{"scheme":"exact","network":"eip155:8453","amount":"5","asset":"0x00000000000000000000000000000000000000a1","payTo":"0x00000000000000000000000000000000000000b2","maxTimeoutSeconds":60},
	"payload":{"signature":"0x01","authorization":{"from":"0x00000000000000000000000000000000000000c3","to":"0x00000000000000000000000000000000000000b2","value":"5",
		"validAfter":"0","validBefore":"1700000600","nonce":"0x9b2e4fc5bd1a5b1c8d3a6b7e0f4c2d1e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d"}}}`))

func newX402API(t *testing.T, f *facilitatorOf) http.Handler {
	t.Helper()
	b := payableBackend()
	b.invoices[0].Amount = invoice.NewAmount(5)
	return apitest.Check(t, api.New(api.Config{
		Ledger: b, Reader: b, Events: b, Facilitator: f, Now: testClock, Logger: slog.New(slog.DiscardHandler), Refused: func(string) {},
	}).Handler())
}

// TestPayInvoice expects a request for payment only while no other payment of the invoice is open.
func TestPayInvoice(t *testing.T) {
	t.Parallel()
	path := "/x402/invoices/" + invoiceID(0)
	open := apitypes.X402SettleResponse{ErrorReason: string(x402.Pending), Network: "eip155:8453"}
	for name, c := range map[string]struct {
		answer          apitypes.X402SettleResponse
		pending         *apitypes.X402SettleResponse
		payment         string
		status          int
		asks, isSettled bool
	}{
		"without a payment":              {status: 402, asks: true},
		"without one while one is open":  {pending: &open, status: 409, isSettled: true},
		"refused":                        {payment: x402Payment, answer: apitypes.X402SettleResponse{ErrorReason: "insufficient_funds"}, status: 402, asks: true, isSettled: true},
		"open":                           {payment: x402Payment, answer: open, status: 402, isSettled: true},
		"paid":                           {payment: x402Payment, answer: apitypes.X402SettleResponse{Success: true, Transaction: "0x1"}, status: 200, isSettled: true},
		"malformed":                      {payment: "?", status: 400},
		"with a JSON that is no payment": {payment: "e30=", status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &facilitatorOf{answer: c.answer, pending: c.pending}
			w := do(newX402API(t, f), "GET", path, "", x402.HeaderSignature, c.payment)
			if w.Code != c.status || (w.Header().Get(x402.HeaderRequired) != "") != c.asks || (w.Header().Get(x402.HeaderResponse) != "") != c.isSettled {
				t.Errorf("answered %d %v %s", w.Code, w.Header(), w.Body)
			}
		})
	}
}

// TestPayInvoiceLimit expects the limit of authorizations, and that a text that is no id is not looked up.
func TestPayInvoiceLimit(t *testing.T) {
	t.Parallel()
	f := &facilitatorOf{answer: apitypes.X402SettleResponse{ErrorReason: "invalid_exact_evm_payload_signature"}}
	h := newX402API(t, f)
	path := "/x402/invoices/" + invoiceID(0)
	for range api.AuthorizationsOfInvoice {
		if w := do(h, "GET", path, "", x402.HeaderSignature, x402Payment); w.Code != http.StatusPaymentRequired {
			t.Fatalf("within the limit: %d %s", w.Code, w.Body)
		}
	}
	wantProblem(t, do(h, "GET", path, "", x402.HeaderSignature, x402Payment), http.StatusTooManyRequests, "rate_limited", "")
	if f.paid != api.AuthorizationsOfInvoice {
		t.Errorf("%d payments were checked", f.paid)
	}
	if w := do(h, "GET", path, ""); w.Code != http.StatusPaymentRequired {
		t.Errorf("without a payment: %d %s", w.Code, w.Body)
	}
	for _, id := range []string{"%00", "inv_%ff", "pay_1", "inv_%C3%A4"} {
		wantProblem(t, do(h, "GET", "/x402/invoices/"+id, "", x402.HeaderSignature, x402Payment), http.StatusNotFound, "not_found", "")
	}
}
