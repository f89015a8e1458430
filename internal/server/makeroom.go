package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/limits"
)

// closeOwn closes a connection of the clients, as closeOne does. A search that finds no connection
// is not repeated immediately: a client that opens connections would cause many.
func (c *connections) closeOwn(claims []limits.Claim[sharer]) bool {
	if time.Since(c.scanned) < scanInterval {
		return false
	}
	closed := c.closeOne(claims)
	if !closed {
		c.scanned = time.Now()
	}
	return closed
}

// closeOne closes the connection that has been idle for longest. If no connection is idle, it closes one with a request
// that is slow to arrive: of the client network with most connections, the connection that has waited for longest. If
// claims is not empty, only connections of these clients are closed. It reports whether it closed one.
func (c *connections) closeOne(claims []limits.Claim[sharer]) bool {
	now := time.Now()
	var idle, slow *connection
	most := int64(0)
	c.mu.Lock()
	for conn := range c.open {
		switch {
		case len(claims) > 0 && !slices.ContainsFunc(conn.claims, func(of limits.Claim[sharer]) bool { return slices.Contains(claims, of) }):
		case conn.idle(now):
			if idle == nil || conn.since.Before(idle.since) {
				idle = conn
			}
		case conn.slow(now):
			if held := c.shares.Held(conn.claims); slow == nil || held > most || held == most && conn.since.Before(slow.since) {
				slow, most = conn, held
			}
		}
	}
	c.mu.Unlock()
	switch {
	case idle != nil:
		_ = idle.Close() // the descriptor is free in any case
		c.metrics.evicted.Inc()
	case slow != nil:
		_ = slow.Close()
		c.metrics.slowEvicted.Inc()
	}
	return idle != nil || slow != nil
}

// idle reports whether no request is in flight on the connection.
func (conn *connection) idle(now time.Time) bool {
	return conn.state == http.StateIdle || conn.state == http.StateNew && now.Sub(conn.since) > newConnectionGrace
}

// slow reports whether requests on the connection are slow to arrive, and no request is being served.
func (conn *connection) slow(now time.Time) bool {
	return conn.state == http.StateActive && conn.working == 0 && now.Sub(conn.since) > arrivalGrace
}

// work adds to the number of a connection's requests that are being served.
func (conn *connection) work(n int) {
	if conn == nil { // a recorder in tests
		return
	}
	conn.listener.mu.Lock()
	defer conn.listener.mu.Unlock()
	if conn.working += n; conn.working == 0 {
		conn.since = time.Now()
	}
}

// connectionOf returns the connection below TLS, or nil.
func connectionOf(nc net.Conn) *connection {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	conn, _ := nc.(*connection)
	return conn
}

type connectionKey struct{}

// withConnection is the ConnContext of the http.Server.
func withConnection(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connectionOf(nc))
}

// connectionFrom returns the connection of a request, or nil.
func connectionFrom(ctx context.Context) *connection {
	conn, _ := ctx.Value(connectionKey{}).(*connection)
	return conn
}
