package server

import (
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/web/webpage"
)

// isolatedReason is why the gate of an isolated copy is closed.
const isolatedReason = "this service runs on a copy of the database, with --isolated"

// isolate returns the configuration of an isolated copy: without keys, mail, certificates, public names and a standby,
// and with all events kept. It fails if others could reach a listener.
func isolate(cfg Config) (Config, error) {
	for _, l := range cfg.Listeners {
		if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
			return cfg, fmt.Errorf("an isolated copy listens on %s, which others can reach; want a loopback address", l.Addr())
		}
		l.https = false
	}
	if err := db.CheckExists(cfg.Database); err != nil {
		return cfg, err
	}
	cfg.ReadOnly, cfg.SMTP, cfg.TLS, cfg.PublicURL, cfg.DashboardURL, cfg.Hosts, cfg.Proxies.Trusted = "", nil, nil, "", "", nil, nil
	cfg.KeepEvents, cfg.KeepAttempts, cfg.StopDelay = 0, 0, 0
	cfg.TestWallet, cfg.Player, cfg.Routes, cfg.OIDC = nil, nil, nil, nil
	cfg.Chains = slices.Clone(cfg.Chains)
	for i := range cfg.Chains {
		cfg.Chains[i].OperatorKey, cfg.Chains[i].Gasless = nil, nil
	}
	cfg.Logger = cfg.Logger.With("isolated", true)
	return cfg, nil
}

// isUnsafe reports whether a request could change something.
func isUnsafe(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// markCopy has every response of an isolated copy show that it is one.
func (s *Server) markCopy(next http.Handler) http.Handler {
	if !s.cfg.Isolated {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(webpage.CopyHeader, "isolated")
		next.ServeHTTP(w, r)
	})
}
