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
)

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
		if got := report(test.form, test.header...).Code; got != test.status {
			t.Errorf("%s: status %d", name, got)
		}
	}
	kept.err = errors.New("full")
	if got := report(good).Code; got != http.StatusInternalServerError {
		t.Errorf("not kept: status %d", got)
	}
	kept.err = nil
	for i := 2; i < ReportsOfInvoice+1; i++ {
		want := http.StatusNoContent
		if i == ReportsOfInvoice {
			want = http.StatusTooManyRequests
		}
		if got := report(good).Code; got != want {
			t.Errorf("report %d answers %d, want %d", i, got, want)
		}
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
	if len(w.reported) != 1 {
		t.Errorf("reported %q", w.reported)
	}
}
