package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/web/webpage"
)

// unrouted are the patterns of requests that match no route.
var unrouted = []string{
	"/", "/api/", "/checkout/",
	"/refunds/", "/mails/", "/x402/", "/pay/", "/dashboard/",
	"/api", "/checkout", "/refunds", "/mails", "/x402", "/pay", "/dashboard", // ServeMux would redirect them to paths that end with a slash
	"GET /api/events/redeliver", // GET /api/events/{id} would take it
}

// methods are those that a route may have, in the order of the header Allow.
var methods = []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut}

// errorRenderer answers with errors: package api with problem documents, and package checkout with pages.
type errorRenderer interface {
	NotFound() http.Handler
	MethodNotAllowed(allow string) http.Handler
	WriteError(w http.ResponseWriter, r *http.Request, err error)
}

// renderers answer with the errors of the API, of the checkout and of the dashboard.
type renderers struct {
	api, checkout, dashboard errorRenderer
}

// renderer returns the renderer of a request's errors.
func (e renderers) renderer(r *http.Request) errorRenderer {
	switch {
	case isPage(r.URL.Path):
		return e.checkout
	case isDashboard(r.URL.Path):
		return e.dashboard
	}
	return e.api
}

// isDashboard reports whether a path is a path of the dashboard.
func isDashboard(path string) bool {
	return path == "/dashboard" || strings.HasPrefix(path, "/dashboard/")
}

// isPage reports whether a path is a payers' page, and not for their programs.
func isPage(path string) bool {
	program := strings.HasPrefix(path, "/checkout/") && strings.HasSuffix(strings.TrimSuffix(path, "/"), "/authorization")
	return !program && slices.ContainsFunc([]string{"/checkout/", "/refunds/", "/mails/", "/pay/"}, func(pages string) bool { return strings.HasPrefix(path, pages) })
}

// writeError answers with an error.
func (e renderers) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e.renderer(r).WriteError(w, r, err)
}

// router holds the routes of some doors, and answers the requests that match no route.
type router struct {
	*http.ServeMux
	renderers
}

// newRouter returns a router with the routes of the table that belong to the doors. limited
// wraps the answers to requests without a route.
func newRouter(table []webpage.Route, doors []webpage.Door, wrap routeMiddleware, limited func(http.Handler) http.Handler, errs renderers) *router {
	rt := &router{http.NewServeMux(), errs}
	for _, r := range table {
		if slices.Contains(doors, r.Door) {
			rt.Handle(r.Pattern, wrap(r))
		}
	}
	for _, pattern := range unrouted {
		rt.Handle(pattern, limited(http.HandlerFunc(rt.noRoute)))
	}
	return rt
}

// noRoute answers 405 if the request's path has other methods, and else 404. Browsers are led to a page.
func (rt *router) noRoute(w http.ResponseWriter, r *http.Request) {
	if isBrowser(r) && rt.redirect(w, r) {
		return
	}
	var allow []string
	for _, method := range methods {
		_, pattern := rt.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
		if !slices.Contains(unrouted, pattern) {
			allow = append(allow, method)
			r.Pattern = pattern // the route in the metrics
		}
	}
	if allow == nil {
		rt.missing(r).NotFound().ServeHTTP(w, r)
		return
	}
	rt.renderer(r).MethodNotAllowed(strings.Join(allow, ", ")).ServeHTTP(w, r)
}

// isBrowser reports whether a request is for a page, and not for an object of the interface.
func isBrowser(r *http.Request) bool {
	isGet := r.Method == http.MethodGet || r.Method == http.MethodHead
	return isGet && strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/x402/")
}

// redirect leads a browser to the page that it asks for with a slash too many, or from the root to the dashboard.
// It returns false without such a page.
func (rt *router) redirect(w http.ResponseWriter, r *http.Request) bool {
	to := *r.URL
	if to.Path = strings.TrimSuffix(to.Path, "/"); to.Path == "" {
		to.Path = "/dashboard"
	}
	if to.Path == r.URL.Path || !rt.hasPage(to.Path, r.Host) {
		return false
	}
	to.RawPath = ""
	// It is not permanent, because quittance dev has a page at the root.
	http.Redirect(w, r, to.RequestURI(), http.StatusFound) //nolint:gosec // a path of this service
	return true
}

// hasPage reports whether there is a route of GET for a path.
func (rt *router) hasPage(path, host string) bool {
	_, pattern := rt.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Host: host})
	return !slices.Contains(unrouted, pattern)
}

// missing returns the renderer of the error that a path does not exist. Browsers get a page of the dashboard, or of the
// checkout at a door without the dashboard.
func (rt *router) missing(r *http.Request) errorRenderer {
	found := rt.renderer(r)
	switch {
	case found != rt.api || !isBrowser(r):
		return found
	case rt.hasPage("/dashboard", r.Host):
		return rt.dashboard
	}
	return rt.checkout
}
