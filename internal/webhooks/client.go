package webhooks

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/limits"
)

// ClientConfig configures a client.
type ClientConfig struct {
	Guard *Guard // required
	// DialTimeout bounds the lookup and connection, and again the TLS handshake, because net/http continues both after
	// a request was given up. Default DefaultTimeout.
	DialTimeout time.Duration
	// Connections is the maximum number of open connections, in use or idle; 0 means no limit. Idle is how many of them
	// may be idle; default 512.
	Connections, Idle int
	// CA has certificates in PEM. Receivers' certificates are checked with them and with the
	// certificates that the machine trusts.
	CA []byte
	// Proxy, if set, is the proxy through which receivers are reached, except receivers in the guard's allowed ranges:
	// see egress. Its scheme is http or https.
	Proxy *url.URL
	// Dial replaces the network if it is not nil. The guard still checks addresses in URLs.
	Dial chain.DialFunc
	// lookup replaces the lookup of a host's addresses before the proxy is used.
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// NewClient returns the client of all exchanges. It keeps connections open for the next event. It speaks only HTTP/1.1,
// because over HTTP/2 a receiver could send status codes without a bound, more of an answer than is read, and pings. It
// uses no other proxy, follows no redirect, decompresses no body, and connects to no address that the guard refuses.
func NewClient(c ClientConfig) *http.Client {
	return newClient(c, net.Dialer{Timeout: cmp.Or(c.DialTimeout, DefaultTimeout)})
}

func newClient(c ClientConfig, dialer net.Dialer) *http.Client {
	// Read the roots now, while there is a file descriptor for them. If reading them later failed, there would be no
	// roots for the rest of the process.
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = nil // as package tls does, which tries again
	}
	if len(c.CA) > 0 {
		if roots == nil {
			roots = x509.NewCertPool()
		}
		roots.AppendCertsFromPEM(c.CA)
	}
	toProxy, conf := dialer, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	dialer.ControlContext = c.Guard.control
	dial := c.Dial
	if dial == nil {
		dial = dialer.DialContext
	}
	bound := &boundDialer{dial: c.Guard.dial(dial), limit: int64(c.Connections)}
	transport := &http.Transport{
		DialContext:            bound.dialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    dialer.Timeout,
		DisableCompression:     true, // so that a compressed answer cannot exhaust the memory
		MaxResponseHeaderBytes: MaxResponseHeader,
		MaxIdleConns:           cmp.Or(c.Idle, 512),
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
	}
	if c.Proxy != nil {
		e := newEgress(c.Guard, c.Proxy, toProxy, conf, bound.dial)
		if c.lookup != nil {
			e.lookup = c.lookup
		}
		bound.dial, transport.Proxy = e.dialContext, e.proxyFor
		transport.OnProxyConnectResponse = refusal
	}
	bound.dropIdle = transport.CloseIdleConnections
	return &http.Client{
		Transport:     chain.Transport{Base: transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dial checks an address in the URL before the dialer converts it, because the dialer turns a mapped IPv4 address into
// plain IPv4.
func (g *Guard) dial(dial chain.DialFunc) chain.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if at, err := netip.ParseAddrPort(address); err == nil {
			if err := g.check(ctx, at.Addr()); err != nil {
				return nil, err
			}
		}
		return dial(ctx, network, address)
	}
}

// control implements net.Dialer's ControlContext, which is called with each address before connecting to it.
func (g *Guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.check(ctx, at.Addr())
}

func (g *Guard) check(ctx context.Context, a netip.Addr) error {
	if secured(ctx) {
		return g.Check(a)
	}
	return g.CheckPlain(a)
}

// securedKey is the key of secured's value.
type securedKey struct{}

// WithScheme passes a request's scheme to the dialer. A connection is never reused for a request of the other scheme,
// so a check at dialing holds for all of its requests.
func WithScheme(ctx context.Context, scheme string) context.Context {
	return context.WithValue(ctx, securedKey{}, scheme == "https")
}

// secured reports whether a connection is for TLS; false if its scheme is unknown.
func secured(ctx context.Context) bool {
	is, _ := ctx.Value(securedKey{}).(bool)
	return is
}

// errNoConnection is the error of a dial at the limit of open connections.
var errNoConnection = errors.New("as many connections are open as this process may have")

// boundDialer limits the number of open connections.
type boundDialer struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	limit    int64 // 0 means no limit
	dropIdle func()
	open     atomic.Int64 // including connections that are being dialed
}

// dialContext implements http.Transport's DialContext. At the limit, and when the system refuses more connections, it
// closes idle ones.
func (d *boundDialer) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if n := d.open.Add(1); d.limit > 0 && n > d.limit {
		d.dropIdle()
		if d.open.Load() > d.limit {
			d.open.Add(-1)
			return nil, errNoConnection
		}
	}
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		d.open.Add(-1)
		if limits.IsShortage(err) {
			d.dropIdle()
		}
		return nil, err
	}
	return &boundConn{Conn: conn, closed: sync.OnceFunc(func() { d.open.Add(-1) })}, nil
}

// boundConn counts as open until it is closed.
type boundConn struct {
	net.Conn
	closed func()
}

// Close closes the connection.
func (c *boundConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
