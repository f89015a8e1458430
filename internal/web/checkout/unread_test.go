package checkout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

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
