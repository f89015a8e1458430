package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/checkout"
)

// handler returns all that the server answers.
func (s *Server) handler() http.Handler {
	chains := make([]chain.Chain, len(s.Chains))
	for i, c := range s.Chains {
		chains[i] = c.Chain
	}
	rest := api.New(api.Config{
		Ledger: s.settle, Reader: s.store, Chains: chains, Providers: s.Providers, Now: s.Now, Logger: s.Logger,
	})
	mux := http.NewServeMux()
	rest.Routes(mux)
	checkout.New(checkout.Config{
		Reader: s.store, Chains: chains, TestWallet: s.TestWallet, Now: s.Now, Logger: s.Logger,
	}).Routes(mux)
	mux.HandleFunc("GET /healthz", live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.Handle("/", rest.NotFound())
	return s.metrics.requests(mux)
}
