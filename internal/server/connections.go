package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/descriptors"
)

const (
	// newPatience is for how long a connection on which nothing came yet is
	// expected to bring a request. After it the connection counts as idle.
	newPatience = time.Second
	// acceptPause and maxAcceptPause are the pauses after failures to accept, each
	// twice as long as the one before.
	acceptPause, maxAcceptPause = 5 * time.Millisecond, time.Second
	// acceptLogInterval is how often such failures are logged at most.
	acceptLogInterval = 10 * time.Second
)

// connections is a listener that bounds how many of its connections are open, so
// that clients leave descriptors for the rest of the process. At the limit the
// connection that has been idle for longest makes room for a new one; while none
// is idle, new ones wait in the system's queue.
//
// A connection is in open from Accept until its Close.
type connections struct {
	*Listener
	limit   int
	logger  *slog.Logger
	metrics *metrics

	mu     sync.Mutex
	open   map[*connection]bool
	change chan struct{} // closed, and made anew, when a connection changes

	failures int       // to accept, since they were logged last
	logged   time.Time // when they were
}

// connection is one that a client has made.
type connection struct {
	*net.TCPConn
	of *connections

	// What follows is guarded by of.mu.
	state http.ConnState
	since time.Time // when it came to its state
}

func newConnections(l *Listener, limit int, m *metrics, logger *slog.Logger) *connections {
	return &connections{
		Listener: l, limit: limit, logger: logger, metrics: m,
		open: make(map[*connection]bool), change: make(chan struct{}),
	}
}

// Accept waits until there is room for a connection, and returns the next. An
// error means that the listener was closed: others are logged and retried.
func (c *connections) Accept() (net.Conn, error) {
	for pause := acceptPause; ; pause = min(2*pause, maxAcceptPause) {
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

// makeRoom returns when there are fewer connections than the limit. It returns
// net.ErrClosed when the listener was closed meanwhile.
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
		timer := time.NewTimer(newPatience) // after which another may count as idle
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

// closeIdle closes the connection that has been idle for longest. It reports
// false when none is idle.
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
	_ = oldest.Close() // what matters is that it is closed
	c.metrics.evicted.Inc()
	return true
}

// idle reports whether no request is under way on the connection.
func (conn *connection) idle(now time.Time) bool {
	return conn.state == http.StateIdle || conn.state == http.StateNew && now.Sub(conn.since) > newPatience
}

func (c *connections) add(tcp *net.TCPConn) net.Conn {
	conn := &connection{TCPConn: tcp, of: c, state: http.StateNew, since: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	c.changed()
	return conn
}

// Close closes the connection and makes room for another.
func (conn *connection) Close() error {
	err := conn.TCPConn.Close()
	c := conn.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[conn] {
		delete(c.open, conn)
		c.changed()
	}
	return err
}

// observe is the http.Server's ConnState.
func (c *connections) observe(of net.Conn, state http.ConnState) {
	conn, ok := of.(*connection)
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

// changed tells those who wait, and the metrics. The caller holds the lock.
func (c *connections) changed() {
	close(c.change)
	c.change = make(chan struct{})
	c.metrics.connections.Set(float64(len(c.open)))
}

// quiet returns when no request is under way on any connection, or done is
// closed.
func (c *connections) quiet(done <-chan struct{}) {
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
		timer := time.NewTimer(newPatience)
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

// failed counts a failure to accept, and logs them now and then. Accept alone
// calls it.
func (c *connections) failed(err error) {
	c.metrics.acceptFailures.Inc()
	c.failures++
	if now := time.Now(); now.Sub(c.logged) >= acceptLogInterval {
		c.logger.Error("connections could not be accepted, will retry", "err", err, "failures", c.failures)
		c.logged, c.failures = now, 0
	}
}
