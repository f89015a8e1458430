package deliver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// yield is how long an exchange whose time is over may take to end by itself.
const yield = 500 * time.Millisecond

// overslept is by how much longer than its limit an exchange takes only when
// this process did not run, or hardly.
const overslept = 3 * time.Second

// bounded runs an exchange under the time limit. One that does not end when its
// context does is given up: its connection is closed, so that it ends later,
// and the caller waits no longer.
func (w *Worker) bounded(ctx context.Context, send func(ctx context.Context) answer) (a answer) {
	began := time.Now()
	defer func() {
		if a.err != nil && time.Since(began) > w.Limits.Timeout+overslept {
			a.fault = faultStopped
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, w.Limits.Timeout, errTimeout)
	defer cancel()
	var used lastConn
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: used.set})
	ended := make(chan answer, 1)
	go func() { ended <- send(traced) }()
	select {
	case a = <-ended:
		return a
	case <-ctx.Done():
	}
	timer := time.NewTimer(yield)
	defer timer.Stop()
	select {
	case a = <-ended:
		return a
	case <-timer.C:
		used.close()
		return answer{err: w.cause(ctx, "no answer", ctx.Err()), severed: true}
	}
}

// lastConn is the connection that an exchange got last. Its lock guards both
// fields: once closed is set, no connection stays open.
type lastConn struct {
	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

func (c *lastConn) set(info httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn = info.Conn; c.closed {
		sever(c.conn)
	}
}

func (c *lastConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; c.conn != nil {
		sever(c.conn)
	}
}

// sever closes a connection without a word to the peer, which TLS would wait
// for.
func sever(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close() // whoever uses it is told
}
