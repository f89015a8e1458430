package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/web/webpage"
)

// handshakeTime is how long the listener waits for TCP handshakes in progress before
// it closes.
const handshakeTime = 250 * time.Millisecond

// Address is an address at which some doors listen.
type Address struct {
	Listen string         // address and port
	Doors  []webpage.Door // if empty, all doors
	HTTPS  bool           // with the certificate of Config.TLS
}

// Listener is a listener that may be closed more than once.
type Listener struct {
	net.Listener
	doors   []webpage.Door
	https   bool
	closing func() error
	closed  chan struct{}
}

// Listen listens on an address. Call it before Run, so that an address in use is
// reported before anything is created.
func Listen(ctx context.Context, a Address) (*Listener, error) {
	var conf net.ListenConfig
	conf.SetMultipathTCP(false) // finish attaches a filter, which MPTCP sockets do not support
	l, err := conf.Listen(ctx, "tcp", a.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; stop the program that listens there or choose another address", a.Listen, err)
	}
	return NewListener(l, a), nil
}

// NewListener returns a listener that accepts the connections of l for the doors of a. They have the methods of tcpConn.
func NewListener(l net.Listener, a Address) *Listener {
	if len(a.Doors) == 0 {
		a.Doors = webpage.Doors
	}
	closed := make(chan struct{})
	return &Listener{Listener: l, doors: a.Doors, https: a.HTTPS, closed: closed, closing: sync.OnceValue(func() error {
		close(closed)
		return l.Close()
	})}
}

// ListenAll listens on all addresses. If one fails, it closes the others.
func ListenAll(ctx context.Context, addresses []Address) (all []*Listener, err error) {
	for _, a := range addresses {
		l, err := Listen(ctx, a)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, l)
	}
	return all, nil
}

// closeAll closes listeners.
func closeAll(all []*Listener) (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// url returns the base URL of the listener.
func (l *Listener) url() string {
	if l.https {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
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
