package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
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
	there, back := newPipe(), newPipe()
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}
	own := &conn{host: h, in: back, out: there, local: from, remote: l.addr}
	other := &conn{host: l.host, in: there, out: back, local: l.addr, remote: from}
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
	host          *host
	peer          *conn
	in, out       *pipe
	local, remote net.Addr
}

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }
func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }

// CloseWrite ends the direction to the peer.
func (c *conn) CloseWrite() error {
	if !c.out.end(io.EOF, false) {
		return net.ErrClosed
	}
	return nil
}

// ReadFrom writes what r has to the peer.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{c}, r) }

// Close ends both directions. The peer can still read what was written.
func (c *conn) Close() error {
	c.host.remove(c)
	c.out.end(io.EOF, false)
	c.in.end(net.ErrClosed, true)
	return nil
}

// reset breaks the connection for both ends.
func (c *conn) reset() {
	broken := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	c.in.end(broken, true)
	c.out.end(broken, true)
	c.host.remove(c)
	c.peer.host.remove(c.peer)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setReadDeadline(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.setWriteDeadline(t); return nil }

// pipe is one direction of a connection.
type pipe struct {
	mu      sync.Mutex
	changed *sync.Cond
	data    []byte
	err     error // of reads after the data; writes fail with ErrClosedPipe or err
	readers deadline
	writers deadline
}

// pipeSize is how many bytes a pipe holds before writes wait.
const pipeSize = 256 << 10

func newPipe() *pipe {
	p := &pipe{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (p *pipe) setReadDeadline(t time.Time)  { p.set(&p.readers, t) }
func (p *pipe) setWriteDeadline(t time.Time) { p.set(&p.writers, t) }

func (p *pipe) set(d *deadline, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	if !t.IsZero() && p.err == nil {
		d.timer = time.AfterFunc(time.Until(t), p.changed.Broadcast)
	}
	p.changed.Broadcast()
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.data) == 0 && p.err == nil && !p.readers.passed() {
		p.changed.Wait()
	}
	switch {
	case p.readers.passed():
		return 0, os.ErrDeadlineExceeded
	case len(p.data) == 0:
		return 0, p.err
	}
	n := copy(b, p.data)
	if p.data = p.data[n:]; len(p.data) == 0 {
		p.data = nil
	}
	p.changed.Broadcast()
	return n, nil
}

func (p *pipe) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.data) > pipeSize && p.err == nil && !p.writers.passed() {
		p.changed.Wait()
	}
	switch {
	case p.err != nil:
		return 0, io.ErrClosedPipe
	case p.writers.passed():
		return 0, os.ErrDeadlineExceeded
	}
	p.data = append(p.data, b...)
	p.changed.Broadcast()
	return len(b), nil
}

// end ends the pipe, and reports whether it had not ended. drop discards what was not read yet.
func (p *pipe) end(err error, drop bool) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first = p.err == nil; first {
		p.err = err
	}
	if drop {
		p.data = nil
	}
	for _, d := range []*deadline{&p.readers, &p.writers} {
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
	}
	p.changed.Broadcast()
	return first
}
