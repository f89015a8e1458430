package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// handshakeTime is how long handshakes that have begun are waited for before the
// listener is closed.
const handshakeTime = 250 * time.Millisecond

// Listener is where a server takes requests. It may be closed more than once.
type Listener struct {
	net.Listener
	closing func() error
	closed  chan struct{}
}

// Listen takes an address and port. It is the first thing to do: when they are
// taken, nothing has been made yet.
func Listen(ctx context.Context, addr string) (*Listener, error) {
	var conf net.ListenConfig
	conf.SetMultipathTCP(false) // its sockets take no filter, which finish needs
	l, err := conf.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; stop what listens there or choose another", addr, err)
	}
	closed := make(chan struct{})
	return &Listener{Listener: l, closed: closed, closing: sync.OnceValue(func() error {
		close(closed)
		return l.Close()
	})}, nil
}

// Close stops taking requests. Further calls return what the first returned.
func (l *Listener) Close() error { return l.closing() }

// finish closes the listener once the connections have been accepted that were
// made before. Closing it alone would reset those that wait to be accepted.
func (l *Listener) finish() error {
	if tcp, ok := l.Listener.(*net.TCPListener); ok && refuseHandshakes(tcp) == nil {
		l.wait(handshakeTime)
	}
	return l.Close()
}

// wait waits for d. It reports false when the listener was closed before.
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
