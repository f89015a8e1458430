package server

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/apidocs"
	"github.com/quittance/quittance/internal/checkout"
	"github.com/quittance/quittance/internal/dashboard"
)

// Door is an entrance of the service. Each route belongs to one door.
type Door string

// Doors.
const (
	PublicDoor   Door = "public"   // payers and transfer providers
	APIDoor      Door = "api"      // merchants' programs
	OperatorDoor Door = "operator" // health checks, metrics and diagnosis
)

// Doors are all doors.
var Doors = []Door{PublicDoor, APIDoor, OperatorDoor}

// credential is what a request must present.
type credential string

const (
	noCredential credential = "none"
	// keyCredential is an access key with the route's scope.
	keyCredential credential = "key"
	// operatorCredential is an access key of the operator, of any scope. It is not
	// required at a private listener.
	operatorCredential credential = "operator"
	// optionalCredential is an access key of the operator that is not required. At a listener
	// that is not private, an answer without it has no details.
	optionalCredential credential = "optional"
	// sessionCredential is the session of a person at the dashboard. The person's key must have the
	// route's scope, if any. operatorSession is the operator's.
	sessionCredential credential = "session"
	operatorSession   credential = "operator session"
	// signatureCredential is the signature of a transfer provider, which the handler
	// verifies.
	signatureCredential credential = "signature"
)

// route is an entry of the table of routes.
type route struct {
	pattern    string // method and path, as http.ServeMux takes it
	door       Door
	credential credential
	scope      access.Scope // with keyCredential and, unless it is empty, sessionCredential
	handler    http.Handler
	isLong     func(*http.Request) bool // see api.Route; nil if no request is
}

// routes returns the table of all routes.
func (s *Server) routes(rest *api.API, page *checkout.Checkout, board *dashboard.Dashboard) []route {
	table := slices.Concat(apiRoutes(rest), checkoutRoutes(page), dashboardRoutes(board))
	table = append(table,
		route{"GET /healthz", OperatorDoor, noCredential, "", http.HandlerFunc(live), nil},
		route{"GET /readyz", OperatorDoor, optionalCredential, "", http.HandlerFunc(s.ready), nil},
		route{"GET /status", OperatorDoor, operatorCredential, "", http.HandlerFunc(s.status), nil},
		route{"GET /metrics", OperatorDoor, operatorCredential, "", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}), nil},
	)
	for _, r := range apidocs.Routes() {
		table = append(table, route{r.Pattern, APIDoor, noCredential, "", r.Handler, nil})
	}
	if s.hasPrivateOperatorDoor() {
		table = append(table, profileRoutes()...)
	}
	for pattern, h := range s.cfg.Routes {
		table = append(table, route{pattern, APIDoor, noCredential, "", h, nil})
	}
	for i, r := range table {
		table[i].handler = withNodes(r.pattern, r.handler)
	}
	return table
}

// apiRoutes returns the routes of the API. Notices of transfer providers, which carry a
// signature instead of a key, and the requests of payers' programs come in at the public
// door.
func apiRoutes(rest *api.API) []route {
	var table []route
	for _, r := range rest.Routes() {
		switch {
		case r.Public:
			table = append(table, route{r.Pattern, PublicDoor, noCredential, "", r.Handler, r.IsLong})
		case r.Scope == "":
			table = append(table, route{r.Pattern, PublicDoor, signatureCredential, "", r.Handler, nil})
		default:
			table = append(table, route{r.Pattern, APIDoor, keyCredential, r.Scope, r.Handler, r.IsLong})
		}
	}
	return table
}

// checkoutRoutes returns the routes of the checkout.
func checkoutRoutes(page *checkout.Checkout) []route {
	var table []route
	for _, r := range page.Routes() {
		table = append(table, route{r.Pattern, PublicDoor, noCredential, "", r.Handler, func(*http.Request) bool { return r.Long }})
	}
	return table
}

// dashboardRoutes returns the routes of the dashboard.
func dashboardRoutes(board *dashboard.Dashboard) []route {
	var table []route
	for _, r := range board.Routes() {
		entry := route{r.Pattern, APIDoor, noCredential, r.Scope, r.Handler, func(*http.Request) bool { return r.Long }}
		switch r.Access {
		case dashboard.Person:
			entry.credential = sessionCredential
		case dashboard.Operator:
			entry.credential = operatorSession
		case dashboard.Anybody:
		}
		table = append(table, entry)
	}
	return table
}

// routeMiddleware returns a route's handler behind the checks of its door.
type routeMiddleware func(route) http.Handler

// noMiddleware returns a route's handler as it is.
func noMiddleware(r route) http.Handler { return r.handler }

// middlewareFor returns the middleware of a listener's routes.
func (s *Server) middlewareFor(l *Listener, rest *api.API, board *dashboard.Dashboard, errs renderers) routeMiddleware {
	return func(r route) http.Handler {
		h := s.limits.capped(r, errs.writeError)
		switch {
		case r.credential == sessionCredential, r.credential == operatorSession:
			h = board.Allow(r.scope, r.credential == operatorSession, h)
			h = s.limits.unless(board.HasCookie, errs.writeError, board.WithSession(recordKey(s.limits.perOwner(errs.writeError, h))))
		case r.credential == keyCredential:
			h = rest.WithPrincipal(recordKey(recordOwner(s.limits.perOwner(errs.writeError, rest.WithScope(r.scope, h)))))
			h = s.limits.unless(hasKey, errs.writeError, h)
		case r.credential == operatorCredential && !s.isPrivate(l):
			h = s.limits.unless(hasKey, errs.writeError, rest.WithPrincipal(recordKey(rest.ForOperator(h))))
		case r.credential == optionalCredential && s.isPrivate(l):
			h = withDetails(h)
		case r.credential == optionalCredential:
			operator := rest.WithPrincipal(recordKey(rest.ForOperator(withDetails(h))))
			h = choose(hasKey, operator, s.limits.perAddress(errs.writeError, h))
		default:
			h = s.limits.perAddress(errs.writeError, h)
		}
		if r.door != OperatorDoor && s.isSecure(l) {
			h = withHSTS(h)
		}
		return inShare(r.door, h)
	}
}
