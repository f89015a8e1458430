package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// handshakeTime is how long the listener waits for TCP handshakes in progress before
// it closes.
const handshakeTime = 250 * time.Millisecond

// Listener is a TCP listener that may be closed more than once.
type Listener struct {
	net.Listener
	closing func() error
	closed  chan struct{}
}

// Listen listens on an address and port. Call it before Run, so that an address in
// use is reported before anything is created.
func Listen(ctx context.Context, addr string) (*Listener, error) {
	var conf net.ListenConfig
	conf.SetMultipathTCP(false) // finish attaches a filter, which MPTCP sockets do not support
	l, err := conf.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; stop the program that listens there or choose another address", addr, err)
	}
	closed := make(chan struct{})
	return &Listener{Listener: l, closed: closed, closing: sync.OnceValue(func() error {
		close(closed)
		return l.Close()
	})}, nil
}

// Close closes the listener. Further calls return the result of the first.
func (l *Listener) Close() error { return l.closing() }

// finish closes the listener after the pending connections were accepted. Close would
// reset connections in the accept queue.
func (l *Listener) finish() error {
	if tcp, ok := l.Listener.(*net.TCPListener); ok && refuseHandshakes(tcp) == nil {
		l.wait(handshakeTime)
	}
	return l.Close()
}

// wait waits for d. It reports false if the listener is closed first.
func (l *Listener) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.closed:
		return false
	}
}
