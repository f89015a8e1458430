package server

import (
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of the connections that doors may hold open, so that slow clients of one door do not
// keep others out. Doors that share an address share their connections.
const (
	maxAPIConnections      = 6144
	maxOperatorConnections = 2048
)

// Limits of a connection over HTTP/2. A client that wants more opens another connection.
const (
	// streamsOfConnection is how many requests a connection may have at a time.
	streamsOfConnection = 32
	// maxUnreadStream and maxUnreadConnection bound the bytes that a client may send before
	// they are read.
	maxUnreadStream, maxUnreadConnection = 16 << 10, 64 << 10
)

// doorConnections divides the connections of clients among the doors. The public door gets
// what the limits of the others leave.
func doorConnections(accepted int) map[webpage.Door]int {
	const eighths, ofAPI = 8, 3
	api, operator := min(accepted*ofAPI/eighths, maxAPIConnections), min(accepted/eighths, maxOperatorConnections)
	return map[webpage.Door]int{webpage.PublicDoor: accepted - api - operator, webpage.APIDoor: api, webpage.OperatorDoor: operator}
}

// entrance serves the requests of a listener.
type entrance struct {
	listener *Listener
	conns    *connections
	http     *http.Server
}

// entrances returns an entrance for each listener.
func (s *Server) entrances() []*entrance {
	handler := s.handlers()
	all := make([]*entrance, len(s.cfg.Listeners))
	for i, l := range s.cfg.Listeners {
		conns := newConnections(l, s.connectionLimit(l), s.networksOf, s.metrics, s.cfg.Logger)
		all[i] = &entrance{listener: l, conns: conns, http: &http.Server{
			ConnState: conns.observe, ConnContext: withConnection,
			Handler: handler(l), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
			WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams: streamsOfConnection, MaxReceiveBufferPerStream: maxUnreadStream, MaxReceiveBufferPerConnection: maxUnreadConnection,
			},
			ErrorLog: log.New(NetLog(s.cfg.Logger, slog.LevelDebug), "", 0),
		}}
		if l.https {
			all[i].http.TLSConfig = s.tlsConfig()
		}
	}
	return all
}

// networksOf returns the clients that a connection from an address counts for: the client's network
// and IPv6 site. A connection of a trusted proxy counts for no client, because the proxy has the
// connections of many.
func (s *Server) networksOf(remote net.Addr) []limits.Claim[sharer] {
	peer, trusted := s.cfg.Proxies.Peer(remote.String())
	if trusted {
		return nil
	}
	return s.limits.networks(peer)
}

// connectionLimit returns how many connections a listener may hold open.
func (s *Server) connectionLimit(l *Listener) (limit int) {
	all := doorConnections(s.budget.Accepted)
	for _, door := range l.doors {
		limit += all[door]
	}
	return limit
}

// maxStreams returns how many streams open checkout pages may have: up to three quarters of the
// connections of the public door, so that the rest can load pages.
func (s *Server) maxStreams() int {
	connections := 0
	for _, l := range s.cfg.Listeners {
		if slices.Contains(l.doors, webpage.PublicDoor) {
			connections += s.connectionLimit(l)
		}
	}
	return min(checkout.MaxStreams, connections/4*3)
}

// serve serves requests until the listener is closed.
func (e *entrance) serve() error {
	if e.listener.https {
		return e.http.ServeTLS(e.conns, "", "")
	}
	return e.http.Serve(e.conns)
}

// baseURL returns the URL of the API.
func (s *Server) baseURL() string {
	for _, l := range s.cfg.Listeners {
		if slices.Contains(l.doors, webpage.APIDoor) {
			return l.url()
		}
	}
	return ""
}
