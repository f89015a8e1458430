package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
)

// requestFilter is a handler that rejects requests that a foreign web page makes through a visitor's
// browser: requests for a foreign host name that resolves to this machine (DNS rebinding), and unsafe
// requests from a foreign origin (CSRF).
type requestFilter struct {
	hosts   map[string]bool // public names, in lower case
	former  *formerHosts    // nil without a public URL
	origins *http.CrossOriginProtection
	api     *api.API             // renders the errors
	board   *dashboard.Dashboard // renders its own pages' errors
	limited func(http.Handler) http.Handler
	routeOf func(*http.Request) webpage.Route
	next    http.Handler
	// isolated refuses requests that could change something.
	isolated bool
}

// newOrigins returns a protection against unsafe requests from foreign origins. The origins of the public names and of
// the public URL are trusted, because a reverse proxy may change the Host header.
func newOrigins(hosts []string, publicURL string) (*http.CrossOriginProtection, error) {
	origins := http.NewCrossOriginProtection()
	for _, host := range hosts {
		if err := origins.AddTrustedOrigin("https://" + strings.ToLower(host)); err != nil {
			return nil, err
		}
	}
	if publicURL == "" {
		return origins, nil
	}
	return origins, origins.AddTrustedOrigin(publicURL)
}

// newRequestFilter returns a filter before next. limited wraps the answers to rejected requests, and
// routeOf finds the route of a request.
func newRequestFilter(hosts []string, origins *http.CrossOriginProtection, errors *api.API, board *dashboard.Dashboard, limited func(http.Handler) http.Handler, routeOf func(*http.Request) webpage.Route, next http.Handler) *requestFilter {
	g := &requestFilter{hosts: make(map[string]bool, len(hosts)), origins: origins, api: errors, board: board, limited: limited, routeOf: routeOf, next: next}
	for _, host := range hosts {
		g.hosts[strings.ToLower(host)] = true
	}
	return g
}

// ServeHTTP implements http.Handler.
func (g *requestFilter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if refusal := g.refusal(r); refusal != nil {
		g.limited(refusal).ServeHTTP(w, r)
		return
	}
	g.next.ServeHTTP(w, r)
}

// refusal returns the answer to a rejected request, or nil.
func (g *requestFilter) refusal(r *http.Request) http.Handler {
	switch {
	case !g.isAllowedHost(r) && !g.isSigned(r) && !g.former.stopsMails(r):
		if g.former.takes(r) {
			return g.former
		}
		return g.api.ForbiddenHost()
	case !isPage(r.URL.Path) && g.origins.Check(r) != nil && !g.isSigned(r): // the checkout answers with a page
		if isDashboard(r.URL.Path) {
			return g.board.ForbiddenOrigin()
		}
		return g.api.ForbiddenOrigin()
	case !isClean(r.URL.EscapedPath()):
		return g.api.NotFound()
	case g.isolated && isUnsafe(r) && !g.routeOf(r).Isolated:
		return g.api.ForbiddenInCopy()
	}
	return nil
}

// isSigned reports whether a request has a signature, which the handler verifies.
func (g *requestFilter) isSigned(r *http.Request) bool {
	return g.routeOf(r).Credential == webpage.SignatureCredential
}

// formerHosts redirects payers from the host of a former public URL to the same page of the present
// one. A former host serves no other page: its name may belong to another party by now. Only stops of mails are taken.
type formerHosts struct {
	hosts     []string // in lower case
	publicURL string
}

// takes reports whether a request is for a payer's page at a former host.
func (f *formerHosts) takes(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return f != nil && reads && isPage(r.URL.Path) && isClean(r.URL.EscapedPath()) && slices.Contains(f.hosts, hostName(r.Host))
}

// stopsMails reports whether a request stops mails at a former host, as programs for mail do with the link of an old
// mail. They follow no redirect (RFC 8058).
func (f *formerHosts) stopsMails(r *http.Request) bool {
	return f != nil && r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/mails/") && slices.Contains(f.hosts, hostName(r.Host))
}

// ServeHTTP implements http.Handler. The redirect is not permanent, because a former URL may come back.
func (f *formerHosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, f.publicURL+r.URL.RequestURI(), http.StatusTemporaryRedirect) //nolint:gosec // the path and query follow the configured host
}

// isAllowedHost reports whether a request's Host is a loopback name or address, the address that the client connected
// to, or a public name. A request without Host is allowed, because no browser sends one.
func (g *requestFilter) isAllowedHost(r *http.Request) bool {
	if r.Host == "" {
		return true
	}
	name := hostName(r.Host)
	if isLoopback(name) || g.hosts[name] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	asked, err2 := netip.ParseAddr(name)
	return err == nil && err2 == nil && at.Addr().Unmap() == asked.Unmap()
}

// hostName returns a Host header without its port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")), ".")
}

// isLoopback reports whether a host name or address can only be this machine.
func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
