package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// pingAfter is how long an HTTP/2 connection may be silent before it is pinged, and how long a ping or a write may
// take. Without it, calls over a dead connection time out until the operating system notices.
const pingAfter = 3 * time.Second

// maxHeader is the size of the largest accepted header of an answer, in bytes.
const maxHeader = 256 << 10

// DialFunc connects to an address, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newHTTPTransport returns the HTTP transport of a client. dial may be nil.
func newHTTPTransport(host string, dial DialFunc) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if dial != nil {
		t.DialContext, t.Proxy = dial, nil
	}
	t.DisableCompression = isLocal(host)
	t.MaxResponseHeaderBytes = maxHeader
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter, WriteByteTimeout: pingAfter}
	return t
}

// isLocal reports whether a host is this machine or on a private network, where compression takes longer than it saves.
func isLocal(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (a.IsLoopback() || a.IsPrivate())
}

// options returns the options of the RPC connection.
func (c *Client) options() []rpc.ClientOption {
	return []rpc.ClientOption{
		rpc.WithHTTPClient(&http.Client{
			Transport:     transport{Transport{Base: c.http}, c.conf.MaxAnswer},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       2 * c.conf.Timeout, // for calls that are not made through do
		}),
		rpc.WithHeaders(c.conf.Headers),
	}
}

// Dial returns go-ethereum's client for the node at a URL, with the limits of a Client, and a function that closes it.
func Dial(rawURL string) (client *ethclient.Client, done func(), err error) {
	c, err := NewClient(ClientConfig{URL: rawURL})
	if err != nil {
		return nil, nil, err
	}
	return ethclient.NewClient(c.rpc), c.Close, nil
}

// OpenPool returns a pool of clients for the chain's RPC URLs. conf.Clients must be empty. Close closes the clients.
func OpenPool(conf PoolConfig) (*Pool, error) {
	conf.Clients = make([]*Client, len(conf.Chain.RPC))
	for i, url := range conf.Chain.RPC {
		settings := ClientConfig{URL: url, Timeout: conf.Timeout, MaxAnswer: conf.Chain.MaxAnswer, Dial: conf.Dial}
		if i < len(conf.Chain.Nodes) {
			settings.NodeSettings = conf.Chain.Nodes[i]
		}
		c, err := NewClient(settings)
		if err != nil {
			return nil, err // the earlier clients have no connection yet
		}
		conf.Clients[i] = c
	}
	return NewPool(conf), nil
}

// Close closes the pool's clients. Later calls fail.
func (p *Pool) Close() {
	for _, node := range p.nodes {
		node.Close()
	}
}

// errBlank is the error of a URL with a character that URLs cannot have.
var errBlank = errors.New("has a blank, a line break or another control character; encode it as %XX, or take it out")

// CheckURL returns an error that explains what is wrong with a URL that package url accepts but that
// cannot be requested: it has a blank, for example at its end, or a port that does not exist.
func CheckURL(text string) error {
	if strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return errBlank
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil //nolint:nilerr // the caller explains what it expects
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("has the port %.20s; want 1 to 65535", port)
		}
	}
	return nil
}

// ErrSwitched is the error of a request that was answered 101 Switching Protocols. No request of the service asks for
// an upgrade, and neither the request's context nor the client's timeout closes the body of such a response.
var ErrSwitched = errors.New("answered 101 Switching Protocols, which was not asked for")

// Transport is an http.RoundTripper with exchanges that end with the request's context, whatever the peer does. It
// rejects 101 Switching Protocols, and closes a response body when the context ends, even during a read.
type Transport struct {
	Base http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It returns ErrSwitched for a response with status 101.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if err := resp.Body.Close(); err != nil {
			return nil, fmt.Errorf("%w (and closing the connection: %w)", ErrSwitched, err)
		}
		return nil, ErrSwitched
	}
	b := &body{ReadCloser: resp.Body, ctx: r.Context()}
	b.stop = context.AfterFunc(b.ctx, func() {
		_ = b.ReadCloser.Close() // the reader gets the error of the context
	})
	resp.Body = b
	return resp, nil
}

// CloseIdleConnections closes the idle connections of Base.
func (t Transport) CloseIdleConnections() {
	if base, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// body is a response body that is closed when the request's context ends.
type body struct {
	io.ReadCloser
	ctx  context.Context // of the request
	stop func() bool
}

// Read returns the context's error once the context has ended, except at the end of the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

// Close closes the body.
func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}
