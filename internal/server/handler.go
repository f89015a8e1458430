package server

import (
	"net/http"
	"path"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/checkout"
	"github.com/quittance/quittance/internal/inspect"
)

// handler returns all that the server answers.
func (s *Server) handler() http.Handler {
	chains := s.networks()
	rest := api.New(api.Config{
		Ledger: s.settle, Reader: s.store, Events: eventLog{s.store, s.hooks, s.clock, s.due}, Endpoints: s.hooks, Chains: chains, Providers: s.Providers, Now: s.Now, Logger: s.Logger,
	})
	page := checkout.New(checkout.Config{
		Reader: s.store, Chains: chains, Inspector: s.inspector(), Claims: s.settle, TestWallet: s.TestWallet,
		Origins: s.origins, Now: s.Now, Logger: s.Logger,
	})
	routes := newRouter(rest, page)
	routes.HandleFunc("GET /healthz", live)
	routes.HandleFunc("GET /readyz", s.ready)
	routes.HandleFunc("GET /status", s.status)
	routes.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	for pattern, h := range s.Routes {
		routes.Handle(pattern, h)
	}
	h := withRecover(routes.writeError, s.unlessStopping(newGate(s.Hosts, s.origins, rest, routes)))
	return withDeadline(s.metrics.requests(h)) // metrics read the request's Pattern, which a copy would hide
}

// inspector asks the chains' providers about transactions that payers name.
func (s *Server) inspector() *inspect.Inspector {
	sources := make([]inspect.Source, len(s.chains))
	for i, run := range s.chains {
		sources[i] = inspect.Source{Chain: run.Chain, Node: run.pool}
	}
	return inspect.New(sources)
}

// isClean reports whether ServeMux would take the path as it is. It redirects
// other paths, with a page, which is no answer to a program.
func isClean(asked string) bool {
	clean := path.Clean(asked)
	return asked == clean || clean != "/" && asked == clean+"/"
}
