package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
)

// buildDashboard builds the dashboard.
func (s *Server) buildDashboard(rest *api.API) *dashboard.Dashboard {
	var provider *identity.Provider
	if s.cfg.OIDC != nil {
		cfg := *s.cfg.OIDC
		cfg.RedirectURL, cfg.Now = s.cfg.DashboardURL+dashboard.CallbackPath, s.cfg.Now
		provider = identity.New(cfg)
	}
	return dashboard.New(dashboard.Config{
		API: innerAPI(rest), Sessions: s.sessions, Chains: s.networks(), PublicURL: s.cfg.PublicURL, Open: s.cfg.Access.Open, Player: s.cfg.Player, Secure: s.isDashboardSecure(), Now: s.cfg.Now, Logger: s.cfg.Logger,
		Feed: s.feed, AddressDelay: s.cfg.AllowListDelay, Mail: s.direct, Provider: provider, URL: s.cfg.DashboardURL, MailsInvoices: s.mailer != nil,
	})
}

// innerAPI answers requests to the API from within the process. Their contexts have the principal.
// They are authorized like requests with keys, but not limited, because the dashboard's own request
// was.
func innerAPI(rest *api.API) http.Handler {
	mux := http.NewServeMux()
	for _, r := range rest.Routes() {
		if r.Credential == webpage.KeyCredential {
			mux.Handle(r.Pattern, rest.WithScope(r, r.Handler))
		}
	}
	mux.Handle("/", rest.NotFound())
	return mux
}

// isDashboardSecure reports whether browsers reach the dashboard only by HTTPS, at the listener or at
// a proxy before it.
func (s *Server) isDashboardSecure() bool {
	return strings.HasPrefix(s.cfg.DashboardURL, "https://") || strings.HasPrefix(s.cfg.PublicURL, "https://") || slices.ContainsFunc(s.cfg.Listeners, func(l *Listener) bool {
		return slices.Contains(l.doors, webpage.APIDoor) && l.https
	})
}
