package server

import (
	"net"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Access configures which keys the service accepts.
type Access struct {
	// Mode is the kind of the keys. It is required.
	Mode access.Mode
	// Open accepts requests without a key as the operator's. It is for development services on a loopback
	// address.
	Open bool
	// OperatorKey, when set, is a key of the operator in addition to the stored ones.
	OperatorKey access.Key
}

// buildAccess builds the authenticator of callers, and the managers of keys and sessions.
func (s *Server) buildAccess() error {
	s.authenticator = access.NewAuthenticator(access.AuthenticatorConfig{
		Store: access.NewTables(s.store), Admit: s.limits.guesses.admit, Mode: s.cfg.Access.Mode, Open: s.cfg.Access.Open, Configured: s.cfg.Access.OperatorKey, Now: s.cfg.Now, Logger: s.cfg.Logger,
		Known: s.merchants.Known,
	})
	s.keys = access.NewKeyManager(access.KeyManagerConfig{
		Store: s.store, Mode: s.cfg.Access.Mode, Known: s.merchants.Known, Now: s.cfg.Now, Rand: s.cfg.Rand,
	})
	passkeys, err := access.NewRelyingParty(s.cfg.DashboardURL)
	if err != nil {
		return err
	}
	s.sessions = access.NewSessions(access.SessionConfig{
		Store: s.store, Authenticator: limitedAuthenticator{s.authenticator, s.limits}, Admit: s.limits.admitToken, Known: s.merchants.Known, Passkeys: passkeys,
		Now: s.cfg.Now, Rand: s.cfg.Rand,
	})
	return nil
}

// isPrivate reports whether only programs on this machine reach the operator door at the
// listener: it is on a loopback address, and has no other door or no proxy before it. A
// public name shows that there is a proxy, even if it is not a trusted one.
func (s *Server) isPrivate(l *Listener) bool {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return false
	}
	return slices.Equal(l.doors, []webpage.Door{webpage.OperatorDoor}) || len(s.cfg.Proxies.Trusted) == 0 && len(s.cfg.Hosts) == 0
}
