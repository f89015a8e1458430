package server

import (
	"context"
	"net/http"
	"path"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/webpage"
)

// handlers builds the API and the checkout, and returns a function that returns the
// handler of a listener's requests.
func (s *Server) handlers() func(*Listener) http.Handler {
	chains, payments := s.networks(), s.facilitator()
	links := ledger.NewPaymentLinks(ledger.PaymentLinkConfig{Store: s.store, Ledger: s.settle, Holders: s.merchants, Now: s.cfg.Now, Rand: s.cfg.Rand})
	refused := func(limit string) { s.metrics.refused.WithLabelValues(limit).Inc() }
	reader := api.NewReader(s.store.Reader())
	s.buildMailer()
	rest := api.New(api.Config{
		Ledger: s.settle, Reader: reader, Summarized: reader,
		Events:    s.eventLog(),
		Endpoints: s.endpoints, Merchants: s.merchants, Mails: s.mailer,
		Links: links, Keys: s.keys, SignInLinks: s.sessions, Approvals: s.sessions, Nodes: s.inspector(), Feed: s.feed, Facilitator: payments, Stopping: s.long, Authenticator: limitedAuthenticator{s.authenticator, s.limits},
		Chains: chains, Providers: s.cfg.Providers, PublicURL: s.cfg.PublicURL, Now: s.cfg.Now, RefundNow: s.clock.Confirmed, SignatureNow: s.cfg.TestClock.Real, Logger: s.cfg.Logger,
		Refused: refused, OnProblem: recordProblem, Operations: operations{s.settle, s}, Closed: s.gate.Closed,
	})
	s.page = checkout.New(checkout.Config{
		Reader: ledger.NewReader(s.store), Merchants: s.merchants, Chains: chains, Inspector: s.inspector(), Unread: s.settle, Claims: s.settle, Reports: ledger.NewTables(s.store), Refunds: refunds{s.store, s.settle, s.inspector()}, TestWallet: s.cfg.TestWallet,
		Links: links, Mails: s.payerMails(), PublicURL: s.cfg.PublicURL, MailURL: s.mailURL(), Rand: s.cfg.Rand,
		Progress: s.progress, Feed: s.feed, MaxStreams: s.maxStreams(), Refused: refused, Opened: s.openings.add,
		X402: rest.PayInvoice(), TakesX402: payments.Takes,
		Origins: s.origins, Now: s.cfg.Now, RefundNow: s.clock.Confirmed, Logger: s.cfg.Logger,
	})
	s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_checkout_streams",
		Help: "Open checkout pages that have a stream.",
	}, func() float64 { return float64(s.page.OpenStreams()) }))
	board := s.buildDashboard(rest)
	s.board = board
	table, errs := s.routes(rest, s.page, board), renderers{rest, s.page, board}
	s.setRoutes(table)
	return func(l *Listener) http.Handler {
		limited := func(h http.Handler) http.Handler { return s.limits.perAddress(errs.writeError, h) }
		rt := newRouter(table, l.doors, s.middlewareFor(l, rest, board, errs), limited, errs)
		routeOf := func(r *http.Request) webpage.Route {
			_, pattern := rt.Handler(r)
			return s.byPattern[pattern]
		}
		h := newRequestFilter(s.cfg.Hosts, s.origins, rest, board, limited, routeOf, s.onlyCurrent(rt.writeError, rt))
		h.isolated, h.former = s.cfg.Isolated, s.former
		requests := limits.NewShares[sharer]("requests", int64(s.connectionLimit(l)))
		return withDeadline(s.markCopy(s.observeRequests(withRecover(rt.writeError, s.closeWhenStopping(s.limits.entered(requests, h))))))
	}
}

// progress returns what the indexer of a chain did last.
func (s *Server) progress(chainKey string) checkout.Progress {
	run := s.byKey[chainKey]
	if run == nil {
		return checkout.Progress{}
	}
	st := run.indexer.Status()
	return checkout.Progress{Synced: st.Succeeded, CatchingUp: st.CatchUp != nil}
}

// refunds is the backend of the page of a refund.
type refunds struct {
	db *db.DB
	*ledger.Service
	*chain.Inspector
}

// RefundByClaimToken implements checkout.Refunds.
func (r refunds) RefundByClaimToken(ctx context.Context, token string) (invoice.RefundRecord, error) {
	return ledger.RefundByClaimToken(ctx, r.db, token)
}

// inspector returns an inspector of transactions on the configured chains.
func (s *Server) inspector() *chain.Inspector {
	sources := make([]chain.Source, len(s.chains))
	for i, run := range s.chains {
		sources[i] = chain.Source{Chain: run.Chain, Node: run.pool.Requests()}
	}
	return chain.NewInspector(sources)
}

// isClean reports whether ServeMux routes the path without a redirect. Requests for
// other paths are answered 404, because API clients do not expect a redirect.
func isClean(asked string) bool {
	clean := path.Clean(asked)
	return asked == clean || clean != "/" && asked == clean+"/"
}
