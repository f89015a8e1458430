package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/x402"
)

// gasless returns the chains on which the service sends payers' authorizations.
func (s *Server) gasless() ledger.Gasless {
	budgets := make(map[string]ledger.AuthorizationBudget)
	for _, c := range s.cfg.Chains {
		if c.sendsAuthorizations() {
			budgets[c.Key] = *c.Gasless
		}
	}
	return ledger.Gasless{Budgets: budgets, Checker: s.authorizationChecker()}
}

// authorizationChecker returns a checker of authorizations at the nodes of the chains.
func (s *Server) authorizationChecker() *x402.Checker {
	return x402.NewChecker(s.networks(), func(chainKey string) chain.TransactionNode {
		if run := s.byKey[chainKey]; run != nil {
			return run.pool.Requests()
		}
		return nil
	}, s.cfg.Now)
}

// countAuthorizations returns a function that counts authorizations by their result.
func countAuthorizations(reg prometheus.Registerer) func(chainKey string, refused invoice.Refusal) {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_authorizations_total", Help: "Payers' authorizations, by the result of their check: accepted, or the reason of the refusal.",
	}, []string{"chain", "result"})
	reg.MustRegister(results)
	return func(chainKey string, refused invoice.Refusal) {
		result := "accepted"
		if refused != "" {
			result = string(refused)
		}
		results.WithLabelValues(chainKey, result).Inc()
	}
}
