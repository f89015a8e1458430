package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/internal/x402"
)

// Authorize accepts an authorization for any of the backend's invoices.
func (b *backend) Authorize(ctx context.Context, invoiceID string, a invoice.Authorization) (ledger.Authorization, error) {
	inv, err := b.Invoice(ctx, invoiceID)
	if err != nil {
		return ledger.Authorization{}, err
	}
	b.authorizations = append(b.authorizations, ledger.Authorization{
		Authorization: a, ID: invoice.PrefixAuthorization + number(len(b.authorizations)), ChainKey: inv.ChainKey, InvoiceID: inv.ID,
		Status: ledger.AuthorizationAccepted, CreatedAt: invoice.Unix(now),
	})
	return b.authorizations[len(b.authorizations)-1], nil
}

func (b *backend) Authorization(ctx context.Context, id string) (ledger.Authorization, error) {
	for _, a := range b.authorizations {
		if a.ID == id {
			return a, b.fail(ctx)
		}
	}
	return ledger.Authorization{}, db.ErrNotFound
}

func (b *backend) AuthorizationsOfInvoice(ctx context.Context, invoiceID string, limit int) ([]ledger.Authorization, error) {
	return newest(b.authorizations, limit, func(a ledger.Authorization) bool { return a.InvoiceID == invoiceID }), b.fail(ctx)
}

const authorizationBody = `{"from":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","to":"0x00000000000000000000000000000000000000aa","value":"4900000",
	"validAfter":0,"validBefore":1700000600,"nonce":"0x9b2e4fc5bd1a5b1c8d3a6b7e0f4c2d1e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d","signature":"0x0102"}`

// authorizationPath is the path of the authorization of the backend's first invoice.
func authorizationPath() string { return "/checkout/" + invoiceID(0) + "/authorization" }

// payableBackend is a backend with an open invoice.
func payableBackend() *backend {
	return &backend{invoices: []invoice.Invoice{{ID: invoiceID(0), MerchantID: "acme", ChainKey: "base", Status: invoice.Open}}}
}

func TestSubmitAuthorization(t *testing.T) {
	t.Parallel()
	b := payableBackend()
	h := newAPI(t, b)
	got := decode[apitypes.AuthorizationResponse](t, do(h, "POST", authorizationPath(), authorizationBody), 200).Authorization
	if got.Status != apitypes.AuthorizationUnknown || got.ID != b.authorizations[0].ID || got.InvoiceID != invoiceID(0) || !strings.Contains(got.Detail, "Do not sign again") {
		t.Errorf("answered %+v", got)
	}
	a := b.authorizations[0]
	if a.Value != invoice.NewAmount(4_900_000) || a.ValidBefore != invoice.Unix(1_700_000_600) || a.Nonce[0] != 0x9b || !bytes.Equal(a.Signature, []byte{1, 2}) || a.To[19] != 0xaa {
		t.Errorf("submitted %+v", a.Authorization)
	}

	b.authorizations[0].Payment = &ledger.AuthorizedPayment{ID: invoice.PrefixPayment + number(7), TxHash: invoice.Hash{5}, Status: invoice.Pending}
	for _, query := range []string{"", "?authorization=" + got.ID, "?wait=30"} {
		paid := decode[apitypes.AuthorizationResponse](t, do(h, "GET", authorizationPath()+query, ""), 200).Authorization
		if paid.Status != apitypes.AuthorizationPaid || paid.PaymentStatus != apitypes.PaymentPending || paid.TxHash != (invoice.Hash{5}).String() || paid.Detail != "" {
			t.Errorf("%q answered %+v", query, paid)
		}
	}
	b.authorizations[0].Payment = nil
	b.authorizations[0].Status, b.authorizations[0].Reason = ledger.AuthorizationRefused, invoice.RefusedWindowClosed
	refused := decode[apitypes.AuthorizationResponse](t, do(h, "GET", authorizationPath(), ""), 200).Authorization
	if refused.Status != apitypes.AuthorizationRefused || refused.Reason != "window_closed" || refused.Detail == "" {
		t.Errorf("answered %+v", refused)
	}
}

func TestSubmitAuthorizationFields(t *testing.T) {
	t.Parallel()
	h := newAPI(t, payableBackend())
	replace := func(old, by string) string {
		body := strings.Replace(authorizationBody, old, by, 1)
		if body == authorizationBody {
			t.Fatalf("the body has no %s", old)
		}
		return body
	}
	for name, test := range map[string]struct{ body, field string }{
		"from":             {replace("0x5aAeb6053F", "0x5AAeb6053F"), "from"}, // its checksum is wrong
		"to":               {replace("0x00000000000000000000000000000000000000aa", "0xaa"), "to"},
		"value":            {replace(`"4900000"`, "4900000"), "value"},
		"validAfter":       {replace(`"validAfter":0`, `"validAfter":"0"`), "validAfter"},
		"validBefore":      {replace("1700000600", "1e9"), "validBefore"},
		"no validBefore":   {replace(`"validBefore":1700000600,`, ""), "validBefore"},
		"nonce":            {replace("0x9b2e", "0x9b"), "nonce"},
		"signature":        {replace("0x0102", "0102"), "signature"},
		"odd signature":    {replace("0x0102", "0x012"), "signature"},
		"empty signature":  {replace("0x0102", "0x"), "signature"},
		"longer signature": {replace("0x0102", "0x"+strings.Repeat("00", invoice.MaxAuthorizationSignature+1)), "signature"},
	} {
		p := wantProblem(t, do(h, "POST", authorizationPath(), test.body), http.StatusBadRequest, "invalid_field", test.field)
		if p.Detail == "" {
			t.Errorf("%s: no detail", name)
		}
	}
	longest := strings.Replace(authorizationBody, "0x0102", "0x"+strings.Repeat("00", invoice.MaxAuthorizationSignature), 1)
	if w := do(h, "POST", authorizationPath(), longest); w.Code != http.StatusOK {
		t.Errorf("the longest signature: %d %s", w.Code, w.Body)
	}
	for path, field := range map[string]string{"?wait=31": "wait", "?wait=-1": "wait", "?wait=07": "wait", "?status=paid": "status"} {
		wantProblem(t, do(h, "POST", authorizationPath()+path, authorizationBody), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "POST", authorizationPath(), "{"), http.StatusBadRequest, "invalid_json", "")
	wantProblem(t, do(h, "POST", authorizationPath(), authorizationBody, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	wantProblem(t, do(h, "POST", "/checkout/inv_none/authorization", authorizationBody), http.StatusNotFound, "not_found", "")
	wantProblem(t, do(h, "POST", "/checkout/a%00b/authorization", authorizationBody), http.StatusNotFound, "not_found", "")
	wantProblem(t, do(h, "GET", "/checkout/inv_none/authorization", ""), http.StatusNotFound, "not_found", "")
	wantProblem(t, do(h, "GET", authorizationPath()+"?authorization=aut_none", ""), http.StatusNotFound, "not_found", "")
}

func TestAuthorizationProblems(t *testing.T) {
	t.Parallel()
	b := payableBackend()
	h := newAPI(t, b)
	b.err = invoice.Refuse(invoice.RefusedBalance, "The payer has %d.", 5)
	w := do(h, "POST", authorizationPath(), authorizationBody)
	p := wantProblem(t, w, http.StatusUnprocessableEntity, "authorization_refused", "")
	if p.Detail != "The payer has 5." || !strings.Contains(w.Body.String(), `"reason":"insufficient_balance"`) {
		t.Errorf("answered %s", w.Body)
	}
	b.err = fmt.Errorf("check: %w", x402.ErrUnavailable)
	wantProblem(t, do(h, "POST", authorizationPath(), authorizationBody), http.StatusServiceUnavailable, "unavailable", "")
	b.err = nil
	for range api.AuthorizationsOfInvoice {
		if w := do(h, "POST", authorizationPath(), authorizationBody); w.Code != http.StatusOK {
			t.Fatalf("within the limit: %d %s", w.Code, w.Body)
		}
	}
	w = do(h, "POST", authorizationPath(), authorizationBody)
	wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
	if w.Header().Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
}

// TestInventedInvoicesAreNotRemembered submits very many authorizations for invoices that do not
// exist, some with long ids. The service still tracks the authorizations of an invoice that exists.
func TestInventedInvoicesAreNotRemembered(t *testing.T) {
	t.Parallel()
	b := payableBackend()
	h := api.New(api.Config{Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler)}).Handler()
	for range api.AuthorizationsOfInvoice {
		decode[apitypes.AuthorizationResponse](t, do(h, "POST", authorizationPath(), authorizationBody), 200)
	}
	const remembered = 10_000
	for i := range remembered {
		id := fmt.Sprintf("inv_%026d", i)
		if i%1000 == 0 {
			id += strings.Repeat("0", 8<<10)
		}
		if w := do(h, "POST", "/checkout/"+id+"/authorization", authorizationBody); w.Code != http.StatusNotFound {
			t.Fatalf("an invented invoice: %d %s", w.Code, w.Body)
		}
	}
	wantProblem(t, do(h, "POST", authorizationPath(), authorizationBody), http.StatusTooManyRequests, "rate_limited", "")
}

// TestAwaitAuthorization expects a waiting request to be answered as soon as the outcome is known, or
// else at the end of its time, and expects no more waiting requests than the limit.
func TestAwaitAuthorization(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := payableBackend()
		locked := &lockedBackend{backend: b}
		feed := webhooks.NewFeed(webhooks.FeedConfig{Log: locked, Watchdog: clock.New(0), Logger: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		go feed.Run(ctx)
		defer func() {
			stop()
			synctest.Wait()
		}()
		h := api.New(api.Config{Ledger: locked, Reader: locked, Events: locked, Feed: feed, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}).Handler()
		start := time.Now()
		got := decode[apitypes.AuthorizationResponse](t, do(h, "POST", authorizationPath()+"?wait=3", authorizationBody), 200).Authorization
		if waited := time.Since(start); got.Status != apitypes.AuthorizationUnknown || waited < 3*time.Second || waited > 4*time.Second {
			t.Errorf("after %s it is %s", waited, got.Status)
		}
		codes := make(chan int, api.MaxWaitingForInvoice+1)
		for range api.MaxWaitingForInvoice + 1 {
			go func() { codes <- do(h, "GET", authorizationPath()+"?wait=30", "").Code }()
		}
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Errorf("the first answer is %d, want that beyond the limit", code)
		}
		locked.mu.Lock()
		b.authorizations[0].Payment = &ledger.AuthorizedPayment{ID: "pay_1", Status: invoice.Pending}
		locked.mu.Unlock()
		start = time.Now()
		for range api.MaxWaitingForInvoice {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
		if waited := time.Since(start); waited > 3*time.Second {
			t.Errorf("the outcome was seen after %s", waited)
		}
	})
}

func (b *lockedBackend) Authorization(ctx context.Context, id string) (ledger.Authorization, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.Authorization(ctx, id)
}

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
