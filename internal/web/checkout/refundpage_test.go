package checkout

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/webtest"
)

const testToken = "3t9f0w6k2m5xq8r1v4z7b0n3hc2m5xq8"

var homeAddress = chain.MustAddress("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")

// fakeRefunds is a fake with one refund.
type fakeRefunds struct {
	refund invoice.RefundRecord
	err    error // of NameRefundAddress
	named  []ledger.RefundClaim
}

func newFakeRefunds() *fakeRefunds {
	return &fakeRefunds{refund: invoice.RefundRecord{
		ID: "ref_1", PaymentID: "pay_1", MerchantID: "corner-cafe", ChainKey: chain.Local, Token: tokenAddress, Currency: chain.USDC,
		From: merchantAddress, Payer: payerAddress, Status: invoice.RefundAwaitingAddress, Amount: invoice.NewAmount(4_900_000), Left: invoice.NewAmount(4_900_000),
		Tag: invoice.Hash{1}, Reason: "One flat white too many", ClaimToken: testToken, ExpiresAt: invoice.Unix(expires),
	}}
}

func (f *fakeRefunds) RefundByClaimToken(_ context.Context, token string) (invoice.RefundRecord, error) {
	if token != f.refund.ClaimToken {
		return invoice.RefundRecord{}, db.ErrNotFound
	}
	return f.refund, nil
}

func (f *fakeRefunds) NameRefundAddress(_ context.Context, claim ledger.RefundClaim) (invoice.RefundRecord, error) {
	f.named = append(f.named, claim)
	if f.err != nil {
		return f.refund, f.err
	}
	f.refund, _ = f.refund.NameAddress(claim.To, claim.Account, claim.Signature, time.Unix(defaultNow, 0))
	return f.refund, nil
}

func (f *fakeRefunds) CheckRecipient(_ context.Context, r invoice.RefundRecord, to invoice.Address) error {
	if to == r.Token {
		return &invoice.FieldError{Field: "to", Detail: "is a contract"}
	}
	return nil
}

func (f *fakeRefunds) Account(context.Context, string, invoice.Address) invoice.AccountKind {
	return invoice.AccountWithKey
}

func (f *fakeRefunds) handler(log *bytes.Buffer) http.Handler {
	return handlerOf(New(Config{
		Reader: newWorld(), Chains: []chain.Chain{localChain()}, Refunds: f, Now: func() time.Time { return time.Unix(defaultNow, 0) },
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}))
}

// askRefund sends a request for the page; with a form it is a POST.
func askRefund(h http.Handler, query string, form url.Values, header ...string) *httptest.ResponseRecorder {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r := httptest.NewRequestWithContext(context.Background(), method, "http://pay.example/refunds/"+testToken+query, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

func TestRefundPage(t *testing.T) {
	f, log := newFakeRefunds(), new(bytes.Buffer)
	h := f.handler(log)
	first := askRefund(h, "", nil)
	page := webtest.Parse(t, first.Body.String())
	if words := page.Words(); first.Code != http.StatusOK || !strings.Contains(words, "4.90 USDC") || !strings.Contains(words, "Refund from corner-cafe") ||
		!strings.Contains(words, "One flat white too many") || !strings.Contains(words, chain.Checksum(payerAddress)) || len(page.Posts()) != 0 {
		t.Errorf("%d, the page reads %s", first.Code, words)
	}
	expect.Equal(t, first.Header().Get("Content-Security-Policy"), pagePolicy(refundView{}), "its policy is")
	confirm := askRefund(h, "?to="+strings.ToLower(chain.Checksum(homeAddress)), nil)
	page = webtest.Parse(t, confirm.Body.String())
	if got, want := page.ID(t, "claim-text").Text[0], chain.RefundClaimText(1337, f.refund, homeAddress); got != want {
		t.Errorf("the text to sign is\n%q\nwant\n%q", got, want)
	}
	if forms := page.Posts(); len(forms) != 2 || forms[0].Named("input")[0].Attrs["value"] != chain.Checksum(homeAddress) {
		t.Errorf("%d forms", len(forms))
	}
	for typed, says := range map[string]string{"0x12": "not an address", chain.Checksum(tokenAddress): "would be lost", "%3Cb%3E": "&lt;b&gt;"} {
		if got := askRefund(h, "?to="+typed, nil); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), says) {
			t.Errorf("%s answers %d %s", typed, got.Code, got.Body)
		}
	}
	expect.Len(t, f.named, 0, "GET has named")
	unknown := httptest.NewRecorder()
	h.ServeHTTP(unknown, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example/refunds/secret-token", nil))
	if unknown.Code != http.StatusNotFound || strings.Contains(log.String(), "secret-token") {
		t.Errorf("an unknown token answers %d, the log has %s", unknown.Code, log)
	}
}

func TestRefundPageNamesAddress(t *testing.T) {
	f := newFakeRefunds()
	h := f.handler(new(bytes.Buffer))
	form := url.Values{"to": {chain.Checksum(homeAddress)}}
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}} {
		expect.Equal(t, askRefund(h, "", form, foreign...).Code, http.StatusForbidden, "%v: status", foreign)
	}
	for name, bad := range map[string]url.Values{"no address": {}, "the token": {"to": {chain.Checksum(tokenAddress)}}, "too long": {"to": {strings.Repeat("a", MaxClaimForm)}}} {
		expect.Equal(t, askRefund(h, "", bad).Code, http.StatusBadRequest, "%s: status", name)
	}
	f.err = ledger.ErrNotThePayer
	if got := askRefund(h, "", url.Values{"to": form["to"], "signature": {"0xab"}}); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "another account") {
		t.Errorf("a stranger's signature answers %d", got.Code)
	}
	f.err = errors.New("a bug")
	expect.Equal(t, askRefund(h, "", form).Code, http.StatusInternalServerError, "a fault answers")
	f.err, f.named = nil, nil
	if got := askRefund(h, "", form); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/refunds/"+testToken || len(f.named) != 1 ||
		f.named[0] != (ledger.RefundClaim{Token: testToken, To: homeAddress, Account: invoice.AccountWithKey}) {
		t.Errorf("answered %d to %q, named %+v", got.Code, got.Header().Get("Location"), f.named)
	}
	if got := askRefund(h, "", nil).Body.String(); !strings.Contains(got, "Waiting for corner-cafe") {
		t.Errorf("the page is %s", got)
	}
}

func TestRefundPageStates(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *invoice.RefundRecord)
		says   string
		asks   bool
	}{
		"new":       {func(*invoice.RefundRecord) {}, "Where should your refund go?", true},
		"expired":   {func(r *invoice.RefundRecord) { r.ExpiresAt = time.Unix(defaultNow, 0) }, "This link has expired", false},
		"canceled":  {func(r *invoice.RefundRecord) { r.Status = invoice.RefundCanceled }, "was canceled", false},
		"approval":  {func(r *invoice.RefundRecord) { r.Status, r.To = invoice.RefundAwaitingApproval, homeAddress }, "Waiting for corner-cafe", true},
		"confirmed": {func(r *invoice.RefundRecord) { r.Status, r.To = invoice.RefundPending, homeAddress }, "Your address is confirmed", false},
		"sent": {func(r *invoice.RefundRecord) {
			r.Status, r.To, r.Transfer = invoice.RefundPending, homeAddress, invoice.Refund{ID: "ref_2", Status: invoice.Pending}
		}, "on its way", false},
		"final": {func(r *invoice.RefundRecord) {
			r.Status, r.To, r.Transfer = invoice.RefundConfirmed, homeAddress, invoice.Refund{ID: "ref_2", Status: invoice.Confirmed}
		}, "Your refund was sent", false},
	} {
		f := newFakeRefunds()
		test.change(&f.refund)
		body := askRefund(f.handler(new(bytes.Buffer)), "", nil).Body.String()
		if asks := strings.Contains(body, `id="to"`); !strings.Contains(body, test.says) || asks != test.asks {
			t.Errorf("%s: asks %v; the page is %s", name, asks, body)
		}
	}
}

func TestRefundPageLimits(t *testing.T) {
	f := newFakeRefunds()
	h := f.handler(new(bytes.Buffer))
	f.err = ledger.ErrRefundNotOpen
	for i := range AddressesOfRefund + 1 {
		want := http.StatusSeeOther
		if i == AddressesOfRefund {
			want = http.StatusTooManyRequests
		}
		expect.Equal(t, askRefund(h, "", url.Values{"to": {chain.Checksum(homeAddress)}}).Code, want, "address %d answers", i)
	}
}
