package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/descriptors"
)

const (
	// newConnectionGrace is how long a new connection may wait for its first request
	// before it counts as idle.
	newConnectionGrace = time.Second
	// acceptBackoff and maxAcceptBackoff are the first and the longest wait after a
	// failure to accept. It doubles in between.
	acceptBackoff, maxAcceptBackoff = 5 * time.Millisecond, time.Second
	// acceptLogInterval is how often failures to accept are logged at most.
	acceptLogInterval = 10 * time.Second
)

// connections is a listener that limits its open connections, so that clients leave
// file descriptors for the rest of the process. At the limit it closes the connection
// that has been idle for longest; while none is idle, new connections wait in the
// kernel's accept queue.
//
// Invariant: open holds the connections that were accepted and not closed.
type connections struct {
	*Listener
	limit   int
	logger  *slog.Logger
	metrics *metrics

	mu     sync.Mutex
	open   map[*connection]bool
	change chan struct{} // closed and replaced when a connection changes

	failures int       // failed accepts since logged
	logged   time.Time // when failed accepts were logged last
}

// connection is a connection of a client.
type connection struct {
	*net.TCPConn
	listener *connections

	// The fields below are guarded by listener.mu.
	state http.ConnState
	since time.Time // when it entered its state
}

func newConnections(l *Listener, limit int, m *metrics, logger *slog.Logger) *connections {
	return &connections{
		Listener: l, limit: limit, logger: logger, metrics: m,
		open: make(map[*connection]bool), change: make(chan struct{}),
	}
}

// Accept waits until the connections are below the limit, and returns the next one.
// It fails only when the listener is closed; other errors are logged and retried.
func (c *connections) Accept() (net.Conn, error) {
	for pause := acceptBackoff; ; pause = min(2*pause, maxAcceptBackoff) {
		if err := c.makeRoom(); err != nil {
			return nil, err
		}
		conn, err := c.Listener.Accept()
		if err == nil {
			return c.add(conn.(*net.TCPConn)), nil // Listen listens on TCP
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		c.failed(err)
		if descriptors.IsShortage(err) {
			c.closeIdle()
		}
		if !c.Listener.wait(pause) {
			return nil, net.ErrClosed
		}
	}
}

// makeRoom waits until there are fewer connections than the limit. It returns
// net.ErrClosed if the listener is closed first.
func (c *connections) makeRoom() error {
	for {
		c.mu.Lock()
		full, changed := len(c.open) >= c.limit, c.change
		c.mu.Unlock()
		if !full {
			return nil
		}
		if c.closeIdle() {
			continue
		}
		timer := time.NewTimer(newConnectionGrace) // then another connection may count as idle
		select {
		case <-changed:
		case <-timer.C:
		case <-c.Listener.closed:
			timer.Stop()
			return net.ErrClosed
		}
		timer.Stop()
	}
}

// closeIdle closes the connection that has been idle for longest, and reports whether
// there was one.
func (c *connections) closeIdle() bool {
	now := time.Now()
	var oldest *connection
	c.mu.Lock()
	for conn := range c.open {
		if conn.idle(now) && (oldest == nil || conn.since.Before(oldest.since)) {
			oldest = conn
		}
	}
	c.mu.Unlock()
	if oldest == nil {
		return false
	}
	_ = oldest.Close() // the descriptor is free in any case
	c.metrics.evicted.Inc()
	return true
}

// idle reports whether no request is in flight on the connection.
func (conn *connection) idle(now time.Time) bool {
	return conn.state == http.StateIdle || conn.state == http.StateNew && now.Sub(conn.since) > newConnectionGrace
}

func (c *connections) add(tcp *net.TCPConn) net.Conn {
	conn := &connection{TCPConn: tcp, listener: c, state: http.StateNew, since: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	c.metrics.connections.Inc()
	c.changed()
	return conn
}

// Close closes the connection and makes room for another.
func (conn *connection) Close() error {
	err := conn.TCPConn.Close()
	c := conn.listener
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[conn] {
		delete(c.open, conn)
		c.metrics.connections.Dec()
		c.changed()
	}
	return err
}

// observe records a connection's state. It is the ConnState of the http.Server.
func (c *connections) observe(nc net.Conn, state http.ConnState) {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	conn, ok := nc.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.state != state {
		conn.state, conn.since = state, time.Now()
		c.changed()
	}
}

// changed wakes makeRoom and awaitIdle. The caller holds mu.
func (c *connections) changed() {
	close(c.change)
	c.change = make(chan struct{})
}

// awaitIdle returns when no request is in flight on any connection, or done is
// closed.
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

// failed counts a failure to accept, and logs at most one per acceptLogInterval. Only
// Accept calls it.
func (c *connections) failed(err error) {
	c.metrics.acceptFailures.Inc()
	c.failures++
	if now := time.Now(); now.Sub(c.logged) >= acceptLogInterval {
		c.logger.Error("accept of connections failed, will retry", "err", err, "failures", c.failures)
		c.logged, c.failures = now, 0
	}
}
