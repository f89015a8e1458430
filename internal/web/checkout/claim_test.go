package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// claims is a fake that returns one error, and records the claims.
type claims struct {
	made []ledger.Claim
	err  error
	kept string // invoice and payment of a stored claim
}

func (c *claims) Claim(_ context.Context, claim ledger.Claim) (ledger.ClaimResult, error) {
	c.made = append(c.made, claim)
	return ledger.ClaimKept, c.err
}

func (w *world) claim(h http.Handler, form url.Values, header ...string) *httptest.ResponseRecorder {
	return postForm(h, "192.0.2.1:1234", "/checkout/"+testID+"/claim", form, header...)
}

func claimable() *world {
	w := newWorld()
	w.others = []invoice.Payment{unattributed(4_890_123, defaultNow)}
	return w
}

func TestClaimForm(t *testing.T) {
	w := claimable()
	page := w.check(t, tx.String())
	if got, want := page.ID(t, "claim-text").Text[0], chain.ClaimText(1337, w.invoice, tx); got != want {
		t.Errorf("the text to sign is\n%q\nwant\n%q", got, want)
	}
	forms := page.Posts()
	if len(forms) != 2 {
		t.Fatalf("%d forms, want one for a signature and one without", len(forms))
	}
	for _, f := range forms {
		if f.Attrs["action"] != "/checkout/"+testID+"/claim?lang=en" || f.Named("input")[0].Attrs["value"] != tx.String() {
			t.Errorf("a form sends to %q", f.Attrs["action"])
		}
	}
	if words := page.ID(t, "claim").Words(); strings.Contains(words, "knows that it is yours") || !strings.Contains(words, chain.Checksum(payerAddress)) {
		t.Errorf("the form reads %s", words)
	}
	if words := page.ID(t, "claim").Words(); !strings.Contains(words, "counts at once. Signing moves no money") {
		t.Errorf("a signature is enough, and the form reads %s", words)
	}
	for name, change := range map[string]func(*world){
		"a refund is prepared":      func(w *world) { w.use = invoice.UseRefunding },
		"the merchant dismissed it": func(w *world) { w.use = invoice.UseDismissed },
		"there is another like it":  func(w *world) { w.others = append(w.others, unattributed(4_890_123, defaultNow)) },
		"it waits for older blocks": func(w *world) { w.undecided = true },
	} {
		w := claimable()
		change(w)
		if words := w.check(t, tx.String()).ID(t, "claim").Words(); strings.Contains(words, "at once") {
			t.Errorf("%s, and the form reads %s", name, words)
		}
	}
	w.claims.kept = testID + " pay_1"
	page = w.check(t, tx.String())
	if words := page.ID(t, "claim").Words(); len(page.Posts()) != 1 || !strings.Contains(words, "corner-cafe knows that it is yours") {
		t.Errorf("a claim that is kept: %s", words)
	}
}

func TestClaimedPaymentsAreNotOffered(t *testing.T) {
	w := newWorld()
	p := payment(4_900_777, 11, defaultNow, invoice.Confirmed)
	p.InvoiceID = "inv_secret"
	w.others = []invoice.Payment{p}
	expect.Equal(t, len(w.check(t, tx.String()).Posts()), 0, "forms claim a payment of another invoice:")
	w = claimable()
	w.invoice.Status = invoice.Void
	expect.Equal(t, len(w.check(t, tx.String()).Posts()), 0, "forms claim a payment for an invoice that is void:")
}

func TestClaim(t *testing.T) {
	w := claimable()
	back := "/checkout/" + testID + "/check?tx=" + tx.String()
	answer := w.claim(w.handler(), url.Values{"tx": {tx.String()}, "signature": {" 0xab\n\tcd "}})
	if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != back {
		t.Fatalf("status %d to %q", answer.Code, answer.Header().Get("Location"))
	}
	if want := (ledger.Claim{InvoiceID: testID, TxHash: tx, Signature: "0xabcd"}); len(w.claims.made) != 1 || w.claims.made[0] != want {
		t.Errorf("claimed is %+v, want %+v", w.claims.made, want)
	}
	for name, test := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"no signature":    {chain.ErrSignature, http.StatusBadRequest, "This is not a signature"},
		"another account": {ledger.ErrNotThePayer, http.StatusForbidden, "Another account signed this"},
		"too many":        {ledger.ErrTooManyClaims, http.StatusConflict, "Contact corner-cafe"},
		"taken meanwhile": {ledger.ErrNothingToClaim, http.StatusSeeOther, ""},
		"a fault":         {errors.New("a bug"), http.StatusInternalServerError, "This page cannot be shown now"},
	} {
		w.claims.err = test.err
		answer := w.claim(w.handler(), url.Values{"tx": {tx.String()}, "signature": {"0xabcd"}})
		if answer.Code != test.status || !strings.Contains(answer.Body.String(), test.says) {
			t.Errorf("%s: status %d: %s", name, answer.Code, answer.Body)
		}
	}
}

func TestCrossOriginClaimsAreRejected(t *testing.T) {
	w := claimable()
	good := url.Values{"tx": {tx.String()}}
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"}} {
		got := w.claim(w.handler(), good, foreign...)
		expect.Equal(t, got.Code, http.StatusForbidden, "%v: status", foreign)
		if strings.Contains(got.Body.String(), "hreflang") {
			t.Error("the page of a form's error links to itself, which only takes forms")
		}
	}
	for name, form := range map[string]url.Values{
		"no transaction": {}, "no hash": {"tx": {"0x12"}}, "too long": {"tx": {tx.String()}, "signature": {strings.Repeat("a", MaxClaimForm)}},
	} {
		expect.Equal(t, w.claim(w.handler(), form).Code, http.StatusBadRequest, "%s: status", name)
	}
	if got := w.ask(http.MethodGet, "/checkout/"+testID+"/claim"); got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "POST" {
		t.Errorf("GET answers %d", got.Code)
	}
	expect.Len(t, w.claims.made, 0, "claims were made:")
	h := w.handler()
	const ofClient = ClaimsOfInvoice / 2 // of one invoice
	for i := range ofClient + 1 {
		want := http.StatusSeeOther
		if i == ofClient {
			want = http.StatusTooManyRequests
		}
		expect.Equal(t, w.claim(h, good).Code, want, "claim %d answers", i)
	}
}

// reports is a fake that returns one error, and records what was reported.
type reports struct {
	made map[string][]ledger.ReportedTransaction
	err  error
}

func (r *reports) ReportTransaction(_ context.Context, invoiceID string, t ledger.ReportedTransaction) error {
	if r.err == nil {
		r.made[invoiceID] = append(r.made[invoiceID], t)
	}
	return r.err
}

// TestReportTransaction stores only what a wallet sent.
func TestReportTransaction(t *testing.T) {
	w := newWorld()
	kept := &reports{made: make(map[string][]ledger.ReportedTransaction)}
	w.reports = kept
	h := w.handler()
	report := func(form url.Values, header ...string) *httptest.ResponseRecorder {
		return postForm(h, "192.0.2.1:1234", "/checkout/"+testID+"/sent", form, header...)
	}
	good := url.Values{"tx": {tx.String()}}
	if got := report(good); got.Code != http.StatusNoContent || got.Body.Len() > 0 {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
	if got := kept.made[testID]; len(got) != 1 || got[0].Hash != tx || !got[0].At.Equal(invoice.Unix(defaultNow)) {
		t.Errorf("kept %v", got)
	}
	for name, test := range map[string]struct {
		form   url.Values
		header []string
		status int
	}{
		"another site": {good, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"no hash":      {url.Values{"tx": {"0x12"}}, nil, http.StatusBadRequest},
		"nothing":      {nil, nil, http.StatusBadRequest},
	} {
		expect.Equal(t, report(test.form, test.header...).Code, test.status, "%s: status", name)
	}
	kept.err = errors.New("full")
	expect.Equal(t, report(good).Code, http.StatusInternalServerError, "not kept: status")
	kept.err = nil
	const ofClient = ReportsOfInvoice / 2 // of one invoice
	for i := 2; i < ofClient+1; i++ {
		want := http.StatusNoContent
		if i == ofClient {
			want = http.StatusTooManyRequests
		}
		expect.Equal(t, report(good).Code, want, "report %d answers", i)
	}
	w.invoice.Status = invoice.Drafted
	if got := postForm(w.handler(), "192.0.2.1:1234", "/checkout/"+testID+"/sent", good).Code; got != http.StatusNotFound {
		t.Errorf("a draft: status %d", got)
	}
}

// TestUnrecordedPaymentIsReported looks up transactions without a stored payment. The block of the one
// that pays the invoice is read again, and no other.
func TestUnrecordedPaymentIsReported(t *testing.T) {
	elsewhere := invoice.Address{19: 9}
	known := fmt.Sprint(chain.Local, " ", tx, " 11 lookup")
	queued := mined(moved(tokenAddress, merchantAddress))
	queued.report.State = chain.Queued
	foreign := mined(moved(tokenAddress, merchantAddress))
	foreign.report.Chain.Key = "elsewhere"
	for name, test := range map[string]struct {
		nodes *nodes
		want  []string
	}{
		"pays":            {mined(moved(tokenAddress, elsewhere), moved(tokenAddress, merchantAddress)), []string{known}},
		"another token":   {mined(moved(elsewhere, merchantAddress)), nil},
		"another address": {mined(moved(tokenAddress, elsewhere)), nil},
		"nothing":         {mined(), nil},
		"not mined":       {queued, nil},
		"another chain":   {foreign, nil},
	} {
		w := newWorld()
		w.nodes = test.nodes
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/checkout/"+testID+"/check?tx="+tx.String(), http.NoBody)
		answer := httptest.NewRecorder()
		w.handler().ServeHTTP(answer, r)
		if answer.Code != http.StatusOK || !slices.Equal(w.reported, test.want) {
			t.Errorf("%s: status %d, reported %q; want %q", name, answer.Code, w.reported, test.want)
		}
	}
	w := newWorld()
	w.nodes = mined(moved(tokenAddress, merchantAddress))
	w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/checkout/"+testID+"/check?tx="+tx.String(), http.NoBody)
	w.handler().ServeHTTP(httptest.NewRecorder(), r)
	if len(w.reported) > 0 {
		t.Errorf("a stored payment is reported: %q", w.reported)
	}
}

// TestClaimOfUnrecordedPayment claims a transaction without a stored payment. The page that follows
// has its block read again.
func TestClaimOfUnrecordedPayment(t *testing.T) {
	w := newWorld()
	w.nodes = mined(moved(tokenAddress, merchantAddress))
	w.claims.err = ledger.ErrNothingToClaim
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/checkout/"+testID+"/claim", strings.NewReader("tx="+tx.String()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h, answer := w.handler(), httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if answer.Code != http.StatusSeeOther {
		t.Fatalf("status %d", answer.Code)
	}
	next := httptest.NewRequestWithContext(t.Context(), http.MethodGet, answer.Header().Get("Location"), http.NoBody)
	h.ServeHTTP(httptest.NewRecorder(), next)
	expect.Len(t, w.reported, 1, "reported")
}
