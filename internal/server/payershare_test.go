package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/quittance/quittance/internal/limits"
)

// TestPrivateClientsHaveOneRule compares the limits at a door with the limits for payers. In both, a
// client with a private address has a share only if proxies are named.
func TestPrivateClientsHaveOneRule(t *testing.T) {
	for proxy, want := range map[string]int{"": 0, "10.9.0.0/16": 1} {
		s, _ := newObserved(slog.LevelInfo)
		if proxy != "" {
			s.cfg.Proxies = limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix(proxy)}, Header: limits.XForwardedFor}
		}
		l := newLimits(s.cfg, s.metrics)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.1.2.3:4567"
		s.observeRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			atDoor, asPayer := l.networks(limits.FromContext(r.Context())), limits.Networks(r.Context())
			if len(atDoor) != want || len(asPayer) != want {
				t.Errorf("behind %q, a private address has %d shares at the door and %d as a payer, want %d", proxy, len(atDoor), len(asPayer), want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}
