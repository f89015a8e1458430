package checkout

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
)

// TestPrograms expects that programs that pay by x402 are answered by its handler, and that people get
// the page, with a link for programs.
func TestPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld()
	takes := true
	page := New(Config{
		Reader: w, Chains: []chain.Chain{w.chain}, Now: w.defaultNow, Logger: slog.New(slog.DiscardHandler),
		X402: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "for programs: "+r.PathValue("id"))
		}),
		TakesX402: func(string) bool { return takes },
	})
	mux := http.NewServeMux()
	for _, r := range page.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	ask := func(header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example/checkout/"+w.invoice.ID, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		return answer
	}
	const link = `<link rel="payment" type="application/json" href="/x402/invoices/` + testID + `" title="x402">`
	for _, header := range [][]string{nil, {"Accept", "*/*"}, {"Accept", "text/html,application/json"}} {
		answer := ask(header...)
		if !strings.Contains(answer.Body.String(), link) || strings.Join(answer.Header().Values("Vary"), " ") != "Accept PAYMENT-SIGNATURE Accept-Language Accept-Encoding" {
			t.Errorf("%q gets no page with a link: %v", header, answer.Header())
		}
	}
	for _, header := range [][]string{{"Accept", "application/json"}, {"Accept", "text/html", "PAYMENT-SIGNATURE", "e30="}} {
		if got := ask(header...).Body.String(); got != "for programs: "+testID {
			t.Errorf("%q gets %.60q", header, got)
		}
	}
	if takes = false; strings.Contains(ask().Body.String(), link) {
		t.Error("the page has the link though the chain takes no payments by x402")
	}
}
