package checkout

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

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
