package server

import (
	"net/http"

	"github.com/quittance/quittance/internal/chain"
)

// nodeRoutes are the routes with requests that call the nodes of chains, and the class of the calls.
// On another route, a call to a node fails (chain.ErrNoRoute).
//
// Creates are not among them: whether a deposit factory was verified is known without a call.
var nodeRoutes = map[string]chain.Class{
	// The simulation of an authorization, and the domain of a token.
	"POST /checkout/{id}/authorization": chain.ClassRequest,
	"GET /checkout/{id}":                chain.ClassRequest, // for programs, which pay by x402
	"GET /x402/invoices/{id}":           chain.ClassRequest,
	"POST /x402/verify":                 chain.ClassRequest,
	"POST /x402/settle":                 chain.ClassRequest,
	// A transaction that a payer names.
	"GET /checkout/{id}/check":  chain.ClassRequest,
	"POST /checkout/{id}/claim": chain.ClassRequest,
	// Whether the recipient of a refund is a contract.
	"POST /api/payments/{id}/refunds":      chain.ClassRequest,
	"POST /dashboard/payments/{id}/refund": chain.ClassRequest,
	"POST /refunds/{token}":                chain.ClassRequest,
	// The transaction of a refund that is to be withdrawn.
	"POST /api/refunds/{id}/submissions/{submissionId}/withdraw":     chain.ClassRequest,
	"POST /dashboard/refunds/{id}/submissions/{submission}/withdraw": chain.ClassRequest,
}

// withNodes returns a route's handler. Its requests may call nodes if the table has the route.
func withNodes(pattern string, next http.Handler) http.Handler {
	if _, ok := nodeRoutes[pattern]; !ok {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(chain.ForRoute(r.Context(), pattern)))
	})
}
