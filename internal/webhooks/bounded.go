package webhooks

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
	"time"
)

// overrun is how long an exchange may take to end after its context has ended.
const overrun = 500 * time.Millisecond

// oversleep is the excess over an exchange's limit that only occurs if this process was not running, or its clock was
// set.
const oversleep = 3 * time.Second

// overslept reports whether an exchange may have failed because this process was not running. If there was an answer,
// it is the endpoint's.
func overslept(a Answer, took, limit time.Duration) bool {
	return a.Err != nil && a.Code == 0 && took > limit+oversleep
}

// bounded runs an exchange within the time limit. An exchange that does not end when its context ends is abandoned: its
// connection is closed, so that its goroutine ends later, and the caller does not wait any longer.
func (p *Poster) bounded(ctx context.Context, send func(ctx context.Context) Answer) (a Answer) {
	began := time.Now()
	defer func() {
		if overslept(a, time.Since(began), p.conf.Timeout) {
			a.Fault = FaultStopped
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, p.conf.Timeout, errTimeout)
	defer cancel()
	var used lastConn
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: used.set})
	ended := make(chan Answer, 1)
	go func() { ended <- send(traced) }()
	select {
	case a = <-ended:
		return a
	case <-ctx.Done():
	}
	timer := time.NewTimer(overrun)
	defer timer.Stop()
	select {
	case a = <-ended:
		return a
	case <-timer.C:
		used.close()
		return Answer{Err: p.cause(ctx, "no answer", ctx.Err()), Overran: true}
	}
}

// lastConn is the exchange's newest connection. Once closed is set, no connection stays open; the lock guards that.
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

// sever closes a connection without TLS's closing alert, which could block on the peer.
func sever(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close() // its user gets the error
}
