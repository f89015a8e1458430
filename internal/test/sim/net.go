package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// network connects the hosts of a world without leaving the process.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener // by host and port
}

func newNetwork() *network { return &network{listeners: map[string]*listener{}} }

// host is a computer on the network. Invariant: conns holds its open connections; a host that was cut opens none.
type host struct {
	net  *network
	name string

	mu    sync.Mutex
	off   bool
	conns map[*conn]bool
}

func (n *network) host(name string) *host { return &host{net: n, name: name, conns: map[*conn]bool{}} }

// cut breaks every connection of the host, and closes its listeners. Nothing that it sends from now on arrives.
func (h *host) cut() {
	h.mu.Lock()
	h.off = true
	conns := h.conns
	h.conns = nil
	h.mu.Unlock()
	for c := range conns {
		c.reset()
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	for address, l := range h.net.listeners {
		if l.host == h {
			l.close()
			delete(h.net.listeners, address)
		}
	}
}

func (h *host) add(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return false
	}
	h.conns[c] = true
	return true
}

func (h *host) remove(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
}

// listener accepts the connections to an address.
type listener struct {
	host    *host
	addr    *net.TCPAddr
	pending chan *conn
	closed  chan struct{}
	once    sync.Once
}

// backlog is how many connections wait to be accepted.
const backlog = 128

// listen opens an address of the host.
func (h *host) listen(address string) net.Listener {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(err)
	}
	l := &listener{host: h, addr: addr, pending: make(chan *conn, backlog), closed: make(chan struct{})}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.net.listeners[address] != nil {
		panic(fmt.Sprintf("%s is in use", address))
	}
	h.net.listeners[address] = l
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.pending:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) close() { l.once.Do(func() { close(l.closed) }) }

func (l *listener) Close() error {
	l.close()
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.host.net.listeners[l.addr.String()] == l {
		delete(l.host.net.listeners, l.addr.String())
	}
	return nil
}

// dial connects the host to an address. It takes a millisecond.
func (h *host) dial(ctx context.Context, _, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if !clock.Sleep(ctx, time.Millisecond, nil) {
		return nil, ctx.Err()
	}
	h.net.mu.Lock()
	l := h.net.listeners[address]
	h.net.mu.Unlock()
	if l == nil {
		return nil, refused
	}
	here, there := net.Pipe()
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}
	own, other := &conn{Conn: here, host: h, local: from, remote: l.addr}, &conn{Conn: there, host: l.host, local: l.addr, remote: from}
	own.peer, other.peer = other, own
	if !h.add(own) || !l.host.add(other) {
		h.remove(own)
		return nil, refused
	}
	select {
	case l.pending <- other:
		return own, nil
	case <-l.closed:
	default:
	}
	own.reset()
	return nil, refused
}

// conn is one end of a connection.
type conn struct {
	net.Conn
	host          *host
	peer          *conn
	local, remote net.Addr
	broken        atomic.Bool
}

// Read reads what the peer wrote.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

// Write waits until the peer has read everything.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

// explain returns the error of the network for an error.
func (c *conn) explain(err error) error {
	if err != nil && c.broken.Load() {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	return err
}

// LocalAddr and RemoteAddr return addresses of the network.
func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Close ends both directions.
func (c *conn) Close() error {
	c.host.remove(c)
	return c.Conn.Close()
}

// CloseWrite ends both directions, as a pipe must.
func (c *conn) CloseWrite() error { return c.Close() }

// ReadFrom writes what r has to the peer.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{c}, r) }

// reset breaks the connection for both ends.
func (c *conn) reset() {
	for _, end := range []*conn{c, c.peer} {
		end.broken.Store(true)
		_ = end.Close() // of a pipe, which cannot fail
	}
}

// close ends all connections and listeners.
func (n *network) close() {
	n.mu.Lock()
	listeners := slices.Collect(maps.Values(n.listeners))
	n.mu.Unlock()
	for _, l := range listeners {
		l.host.cut()
	}
}
