package dbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Loss is a way in which connections break without notice to either end.
type Loss string

const (
	// Swallowed connections acknowledge every byte and forward none, like a
	// middlebox that answers for a server it has lost.
	Swallowed Loss = "swallowed"
	// Dropped connections lose every packet, acknowledgements included, like a
	// firewall that has dropped their state. Linux only.
	Dropped Loss = "dropped"
)

// Proxy forwards TCP connections to a database, as slowly as a longer link does. It can make existing
// connections half-open: neither end learns that the other is unreachable.
type Proxy struct {
	listener net.Listener
	target   string
	delay    atomic.Int64 // of each byte in each direction, in nanoseconds
	turns    atomic.Int64
	work     sync.WaitGroup

	statements, commits atomic.Int64

	mu     sync.Mutex
	closed bool // new connections are closed at once
	links  map[*link]bool
}

// link is a connection through the proxy: both of its ends.
type link struct {
	ends [2]*net.TCPConn // the client's and the server's
	lost atomic.Bool
	asks atomic.Bool // the client sent last
}

// StartProxy starts a proxy in front of the server of a postgres:// URL and
// returns the URL that leads through it. A round trip takes roundTrip longer than without.
func StartProxy(ctx context.Context, target string, roundTrip time.Duration) (*Proxy, string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, "", fmt.Errorf("parse the database's URL: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{listener: listener, target: u.Host, links: make(map[*link]bool)}
	p.SetRoundTrip(roundTrip)
	u.Host = listener.Addr().String()
	p.work.Go(func() { p.accept(context.WithoutCancel(ctx)) })
	return p, u.String(), nil
}

// SetRoundTrip makes a round trip take d longer than without the proxy, from now on.
func (p *Proxy) SetRoundTrip(d time.Duration) { p.delay.Store(int64(d / 2)) }

// Lose makes the connections that exist now half-open and returns how many there were. Later ones work.
func (p *Proxy) Lose(how Loss) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if l.lost.Swap(true) {
			continue
		}
		n++
		if how != Dropped {
			continue
		}
		for _, end := range l.ends {
			if err := dropPackets(end); err != nil {
				return n, fmt.Errorf("drop a connection's packets: %w", err)
			}
		}
	}
	return n, nil
}

// Cut closes up to most of the connections, and returns how many. Both ends learn of it.
func (p *Proxy) Cut(most int) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if n == most {
			break
		}
		l.close()
		delete(p.links, l)
		n++
	}
	return n
}

// Refuse closes all connections, and each new one until it is called with false.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = on
	if !on {
		return
	}
	for l := range p.links {
		l.close()
	}
}

// Turns returns how many round trips clients have begun: how often one has sent after it
// had received. Pings are not counted: a client that was slow sends one before the next statement.
func (p *Proxy) Turns() int64 { return p.turns.Load() }

// Statements returns how many statements were completed, and how many of them were commits.
func (p *Proxy) Statements() (all, commits int64) { return p.statements.Load(), p.commits.Load() }

// Close closes all connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Refuse(true)
	p.work.Wait()
	return err
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
		if err != nil {
			_ = conn.Close() // the client then notices that the server is away
			continue
		}
		l := &link{ends: [2]*net.TCPConn{conn.(*net.TCPConn), server.(*net.TCPConn)}} // both are of the network tcp
		p.mu.Lock()
		if p.closed {
			l.close()
		}
		p.links[l] = true
		p.mu.Unlock()
		p.work.Go(func() { p.forward(l) })
	}
}

// forward copies until an end closes.
func (p *Proxy) forward(l *link) {
	var both sync.WaitGroup
	for i, from := range l.ends {
		both.Go(func() {
			_, err := io.Copy(&lossy{proxy: p, link: l, to: l.ends[1-i], asks: i == 0}, delayed(from, &p.delay))
			if !l.lost.Load() || errors.Is(err, net.ErrClosed) {
				l.close()
			}
		})
	}
	both.Wait()
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (l *link) close() {
	for _, end := range l.ends {
		_ = end.Close() // it may be closed already
	}
}

// lossy writes to an end of a link until that is lost, and discards from then on.
type lossy struct {
	proxy *Proxy
	link  *link
	to    io.Writer
	asks  bool // the writer is the client

	answers messages // of the server
}

// Write is io.Writer's.
func (w *lossy) Write(b []byte) (int, error) {
	if w.link.lost.Load() {
		return len(b), nil
	}
	if w.link.asks.Swap(w.asks) != w.asks && w.asks && !bytes.Equal(b, pingMessage) {
		w.proxy.turns.Add(1)
	}
	if !w.asks {
		w.answers.scan(b, &w.proxy.statements, &w.proxy.commits)
	}
	return w.to.Write(b)
}
