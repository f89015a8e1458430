package server

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Listener is where a server takes requests. It may be closed more than once.
type Listener struct {
	net.Listener
	closing func() error
}

// Listen takes an address and port. It is the first thing to do: when they are
// taken, nothing has been made yet.
func Listen(ctx context.Context, addr string) (*Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; stop what listens there or choose another", addr, err)
	}
	return &Listener{Listener: l, closing: sync.OnceValue(l.Close)}, nil
}

// Close stops taking requests. Further calls return what the first returned.
func (l *Listener) Close() error { return l.closing() }
