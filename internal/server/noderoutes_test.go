package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestNodeRoutes lists the routes with CallsNodes.
func TestNodeRoutes(t *testing.T) {
	t.Parallel()
	table, _ := testTable(t)
	var got []string
	for _, r := range table {
		if r.CallsNodes {
			got = append(got, r.Pattern)
		}
	}
	want := []string{
		"GET /checkout/{id}",
		"GET /checkout/{id}/check",
		"GET /x402/invoices/{id}",
		"POST /api/payments/{id}/refunds",
		"POST /api/refunds/{id}/submissions/{submissionId}/withdraw",
		"POST /checkout/{id}/authorization",
		"POST /checkout/{id}/claim",
		"POST /dashboard/payments/{id}/refund",
		"POST /dashboard/refunds/{id}/submissions/{submission}/withdraw",
		"POST /refunds/{token}",
		"POST /x402/settle",
		"POST /x402/verify",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOnlyNodeRoutesCallNodes calls a node from the handlers of a route that the table has, and of one that it lacks.
func TestOnlyNodeRoutesCallNodes(t *testing.T) {
	t.Parallel()
	config, node := scripted(t, "house", 7)
	pool, err := chain.OpenPool(chain.PoolConfig{Chain: config.Chain, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	expect.OK(t, err)
	defer pool.Close()
	expect.OK(t, pool.Nodes()[0].Ready(t.Context()))
	got := make(map[string]string)
	for _, pattern := range []string{"POST /x402/verify", "GET /api/invoices"} {
		route := routeAt(t, pattern)
		route.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx := chain.OnBehalfOf(r.Context(), "acme")
			if err := pool.Requests().CallContext(ctx, new(hexutil.Uint64), "eth_chainId"); err != nil {
				got[pattern] = err.Error()
			}
		})
		withNodes(route).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	if diff := cmp.Diff(map[string]string{"GET /api/invoices": chain.ErrNoRoute.Error()}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := node.Calls("eth_chainId"); n != 2 { // the check, and the route of the table
		t.Errorf("the node was called %d times, want 2", n)
	}
}
