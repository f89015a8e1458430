package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/quittance/quittance/internal/api"
)

// noticePath begins the paths of transfer providers' notices. They come from
// outside under any name, and are judged by their signature alone.
const noticePath = "/api/webhooks/"

// gate passes on the requests that a service may answer, whoever sends them. Web
// pages cannot use a visitor's browser to reach it: neither under a name of
// their own that points at this machine (DNS rebinding), nor by requests from
// their own origin (CSRF).
type gate struct {
	hosts   map[string]bool // public names, in lower case
	origins *http.CrossOriginProtection
	refuse  *api.API
	next    http.Handler
}

// newOrigins returns what refuses unsafe requests of other origins than the
// service's own. A proxy may pass requests on under another host than the one
// that the browser knows, so the origins of the public names are trusted.
func newOrigins(hosts []string) (*http.CrossOriginProtection, error) {
	origins := http.NewCrossOriginProtection()
	origins.AddInsecureBypassPattern(http.MethodPost + " " + noticePath + "{provider}")
	for _, host := range hosts {
		if err := origins.AddTrustedOrigin("https://" + strings.ToLower(host)); err != nil {
			return nil, err
		}
	}
	return origins, nil
}

func newGate(hosts []string, origins *http.CrossOriginProtection, refuse *api.API, next http.Handler) *gate {
	g := &gate{hosts: make(map[string]bool, len(hosts)), origins: origins, refuse: refuse, next: next}
	for _, host := range hosts {
		g.hosts[strings.ToLower(host)] = true
	}
	return g
}

// ServeHTTP is http.Handler's.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !strings.HasPrefix(r.URL.Path, noticePath) && !g.isOurs(r):
		g.refuse.ForbiddenHost().ServeHTTP(w, r)
	case !strings.HasPrefix(r.URL.Path, "/checkout/") && g.origins.Check(r) != nil: // the checkout answers with a page
		g.refuse.ForbiddenOrigin().ServeHTTP(w, r)
	case !isClean(r.URL.EscapedPath()):
		g.refuse.NotFound().ServeHTTP(w, r)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// isOurs reports whether a request's Host is a name of this service: a loopback
// name or address, the address that the client connected to, or a configured
// name. No browser leaves it out, so one that is missing is no web page's.
func (g *gate) isOurs(r *http.Request) bool {
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

// hostName returns the host of a Host header, without its port, in lower case.
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
