package server

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/apidocs"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
)

// routes returns the table of all routes.
func (s *Server) routes(rest *api.API, page *checkout.Checkout, board *dashboard.Dashboard) []webpage.Route {
	table := slices.Concat(rest.Routes(), page.Routes(), board.Routes(), apidocs.Routes(), []webpage.Route{
		operatorRoute("GET /healthz", webpage.NoCredential, http.HandlerFunc(live), webpage.Monitoring),
		operatorRoute("GET /readyz", webpage.OptionalCredential, http.HandlerFunc(s.ready), webpage.Monitoring),
		operatorRoute("GET /status", webpage.OperatorCredential, http.HandlerFunc(s.status)),
		operatorRoute("GET /metrics", webpage.OperatorCredential, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}), webpage.Monitoring),
	})
	if s.hasPrivateOperatorDoor() {
		table = append(table, profileRoutes()...)
	}
	for pattern, h := range s.cfg.Routes {
		table = append(table, webpage.Route{Pattern: pattern, Handler: h}.With(webpage.Open))
	}
	for i, r := range table {
		table[i].Handler = withNodes(r)
	}
	return table
}

// setRoutes sets the routes by pattern.
func (s *Server) setRoutes(table []webpage.Route) {
	s.byPattern = make(map[string]webpage.Route, len(table))
	for _, r := range table {
		s.byPattern[r.Pattern] = r
	}
}

// operatorRoute returns a route of the operator's door.
func operatorRoute(pattern string, c webpage.Credential, h http.Handler, options ...webpage.RouteOption) webpage.Route {
	return webpage.Route{Pattern: pattern, Door: webpage.OperatorDoor, Credential: c, Handler: h}.With(options...)
}

// withNodes returns a route's handler, with permission to call nodes if the route has it.
func withNodes(route webpage.Route) http.Handler {
	if !route.CallsNodes {
		return route.Handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route.Handler.ServeHTTP(w, r.WithContext(chain.ForRoute(r.Context(), route.Pattern)))
	})
}

// routeMiddleware returns a route's handler behind the checks of its door.
type routeMiddleware func(webpage.Route) http.Handler

// middlewareFor returns the middleware of a listener's routes.
func (s *Server) middlewareFor(l *Listener, rest *api.API, board *dashboard.Dashboard, errs renderers) routeMiddleware {
	return func(r webpage.Route) http.Handler {
		h := s.limits.capped(r, errs.writeError)
		switch {
		case r.Credential == webpage.SessionCredential, r.Credential == webpage.OperatorSession:
			h = board.Allow(r, h)
			h = s.limits.unless(board.HasCookie, errs.writeError, board.WithSession(recordKey(s.limits.perOwner(errs.writeError, h))))
		case r.Credential == webpage.KeyCredential:
			h = rest.WithPrincipal(recordKey(recordOwner(s.limits.perOwner(errs.writeError, rest.WithScope(r, h)))))
			h = s.limits.unless(hasKey, errs.writeError, h)
		case r.Credential == webpage.OperatorCredential && !s.isPrivate(l):
			h = s.limits.unless(hasKey, errs.writeError, rest.WithPrincipal(recordKey(rest.ForOperator(h))))
		case r.Credential == webpage.OptionalCredential && s.isPrivate(l):
			h = withDetails(h)
		case r.Credential == webpage.OptionalCredential:
			operator := rest.WithPrincipal(recordKey(rest.ForOperator(withDetails(h))))
			h = choose(hasKey, operator, s.limits.perAddress(errs.writeError, h))
		default:
			h = s.limits.perAddress(errs.writeError, h)
		}
		if r.Door != webpage.OperatorDoor && s.isSecure(l) {
			h = withHSTS(h)
		}
		return inShare(r.Door, h)
	}
}
