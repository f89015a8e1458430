package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/limits"
)

const (
	// newConnectionGrace is how long a new connection may wait for its first request before it counts as idle.
	newConnectionGrace = time.Second
	// arrivalGrace is how long a request may take to arrive before its connection counts as slow.
	arrivalGrace = time.Second
	// scanInterval is the shortest time from a search that found no connection to close until the next
	// one, for networks that have used up their share.
	scanInterval = 10 * time.Millisecond
	// acceptBackoff and maxAcceptBackoff are the first and the longest wait after a
	// failure to accept. It doubles in between.
	acceptBackoff, maxAcceptBackoff = 5 * time.Millisecond, time.Second
	// acceptLogInterval is how often failures to accept are logged at most.
	acceptLogInterval = 10 * time.Second
)

// connections is a listener that limits its open connections, in all and for each client network. So clients leave file
// descriptors for the rest of the process and connections for each other. At the limit it closes the connection that
// has been idle for longest, or else one with a request that is slow to arrive. If it can close no connection, new ones
// wait in the kernel's accept queue. A client network that has used up its share gets a new connection only if one of
// its connections can be closed.
//
// Invariant: open holds the connections that were accepted and not closed, each of which has taken 1 of shares.
type connections struct {
	*Listener
	shares *limits.Shares[sharer]
	// networks returns the clients that a connection from an address counts for.
	networks func(remote net.Addr) []limits.Claim[sharer]
	logger   *slog.Logger
	metrics  *metrics

	mu     sync.Mutex
	open   map[*connection]bool
	change chan struct{} // closed and replaced when a connection changes

	failures int       // failed accepts since logged
	logged   time.Time // when failed accepts were logged last
	scanned  time.Time // when no connection of a network was found to close; only Accept uses it
}

// tcpConn is what net/http uses of a *net.TCPConn. Connections of a listener have it.
type tcpConn interface {
	net.Conn
	io.ReaderFrom
	CloseWrite() error
}

// connection is a connection of a client.
type connection struct {
	tcpConn
	listener *connections
	claims   []limits.Claim[sharer]

	// The fields below are guarded by listener.mu.
	state http.ConnState
	// working is how many of its requests the service works on, which does not wait for the client.
	working int
	since   time.Time // when it entered its state, or working became 0
}

func newConnections(l *Listener, limit int, networks func(net.Addr) []limits.Claim[sharer], m *metrics, logger *slog.Logger) *connections {
	return &connections{
		Listener: l, shares: limits.NewShares[sharer]("connections", int64(limit)), networks: networks, logger: logger, metrics: m,
		open: make(map[*connection]bool), change: make(chan struct{}),
	}
}

// Accept returns the next connection that is within the limits. It fails only when the listener
// is closed; other errors are logged and retried.
func (c *connections) Accept() (net.Conn, error) {
	for pause := acceptBackoff; ; {
		conn, err := c.Listener.Accept()
		switch {
		case err == nil:
			if admitted := c.admit(conn.(tcpConn)); admitted != nil {
				return admitted, nil
			}
			pause = acceptBackoff
			continue
		case errors.Is(err, net.ErrClosed):
			return nil, err
		}
		c.failed(err)
		if limits.IsShortage(err) {
			c.closeOne(nil)
		}
		if !c.Listener.wait(pause) {
			return nil, net.ErrClosed
		}
		pause = min(2*pause, maxAcceptBackoff)
	}
}

// admit waits until there is room for a connection, and returns it. It closes it and returns nil if
// its client network has used up its share, or when the listener is closed.
func (c *connections) admit(tcp tcpConn) *connection {
	claims := c.networks(tcp.RemoteAddr())
	for {
		c.mu.Lock()
		changed := c.change
		c.mu.Unlock()
		err := c.shares.Take(1, claims...)
		switch full := errors.Is(err, limits.ErrBusy); {
		case err == nil:
			return c.add(tcp, claims)
		case full && c.closeOne(nil), !full && c.closeOwn(claims):
			continue
		case !full:
			_ = tcp.Close() // the descriptor is free in any case
			c.metrics.connectionsRefused.Inc()
			return nil
		}
		timer := time.NewTimer(newConnectionGrace) // then another connection may count as idle
		select {
		case <-changed:
		case <-timer.C:
		case <-c.Listener.closed:
			timer.Stop()
			_ = tcp.Close()
			return nil
		}
		timer.Stop()
	}
}

// add adds a connection that has taken its part of the shares.
func (c *connections) add(tcp tcpConn, claims []limits.Claim[sharer]) *connection {
	conn := &connection{tcpConn: tcp, listener: c, claims: claims, state: http.StateNew, since: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	c.metrics.connections.Inc()
	c.changed()
	return conn
}

// Close closes the connection and makes room for another.
func (conn *connection) Close() error {
	err := conn.tcpConn.Close()
	c := conn.listener
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[conn] {
		delete(c.open, conn)
		c.shares.Give(1, conn.claims...)
		c.metrics.connections.Dec()
		c.changed()
	}
	return err
}

// observe records a connection's state. It is the ConnState of the http.Server.
func (c *connections) observe(nc net.Conn, state http.ConnState) {
	conn := connectionOf(nc)
	if conn == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.state != state {
		conn.state, conn.since = state, time.Now()
		c.changed()
	}
}

// changed wakes admit and awaitIdle. The caller holds mu.
func (c *connections) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// awaitIdle returns when no request is in flight on any connection, or done is closed.
func (c *connections) awaitIdle(done <-chan struct{}) {
	for {
		now, busy := time.Now(), false
		c.mu.Lock()
		for conn := range c.open {
			busy = busy || !conn.idle(now)
		}
		changed := c.change
		c.mu.Unlock()
		if !busy {
			return
		}
		timer := time.NewTimer(newConnectionGrace)
		select {
		case <-changed:
		case <-timer.C:
		case <-done:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// failed counts a failure to accept, and logs at most one per acceptLogInterval. Only Accept calls it.
func (c *connections) failed(err error) {
	c.metrics.acceptFailures.Inc()
	c.failures++
	if now := time.Now(); now.Sub(c.logged) >= acceptLogInterval {
		c.logger.Error("accept of connections failed, will retry", "err", err, "failures", c.failures)
		c.logged, c.failures = now, 0
	}
}
