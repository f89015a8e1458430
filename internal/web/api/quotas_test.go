package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

// TestRefusedQuotas refuses merchants that have used up their quotas. Each refusal counts under the
// name of its quota. Refusals by other limits do not count here.
func TestRefusedQuotas(t *testing.T) {
	t.Parallel()
	b := newListBackend(1)
	refused := make(map[string]int)
	h := api.New(api.Config{
		Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler),
		Refused: func(limit string) { refused[limit]++ },
	}).Handler()
	for _, limit := range append(access.Quotas, "another") {
		b.err = fmt.Errorf("wrapped: %w", &limits.ExceededError{Limit: limit, RetryAfter: "3600"})
		w := do(h, "GET", "/api/invoices/"+invoiceID(0), "")
		wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
		if got := w.Header().Get("Retry-After"); got != "3600" {
			t.Errorf("%s: Retry-After %q", limit, got)
		}
	}
	expect.NoDiff(t, cmp.Diff(map[string]int{"audit_storage": 1, "invoice_storage": 1}, refused), "refused")
}
