package server

import (
	"net"
	"net/http"
	"net/http/pprof" // it registers its handlers on a mux that is not served
	"slices"

	"github.com/quittance/quittance/internal/web/webpage"
)

// hasPrivateOperatorDoor reports whether the operator door has a separate address on a loopback
// interface.
func (s *Server) hasPrivateOperatorDoor() bool {
	return slices.ContainsFunc(s.cfg.Listeners, func(l *Listener) bool {
		tcp, ok := l.Addr().(*net.TCPAddr)
		return ok && tcp.IP.IsLoopback() && slices.Equal(l.doors, []webpage.Door{webpage.OperatorDoor})
	})
}

// profileRoutes returns the routes of the process's profiles. A profile takes api.RequestTimeout at
// most.
func profileRoutes() []webpage.Route {
	var table []webpage.Route
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/profile": pprof.Profile, "/debug/pprof/trace": pprof.Trace, "/debug/pprof/symbol": pprof.Symbol,
	} {
		table = append(table, operatorRoute("GET "+path, webpage.NoCredential, h))
	}
	return table
}
