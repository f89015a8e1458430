package chain

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gorilla/websocket"
)

// pingAfter is how long an HTTP/2 connection may be silent before it is pinged,
// and how long a ping or a write may take. Without it, calls over a dead connection
// time out until the operating system notices.
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

// isLocal reports whether a host is this machine or on a private network, where
// compression takes longer than it saves.
func isLocal(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (a.IsLoopback() || a.IsPrivate())
}

// connect returns the RPC connection, and dials it if necessary.
func (c *Client) connect(ctx context.Context) (*rpc.Client, error) {
	if client, err := c.current(nil); client != nil || err != nil {
		return client, err
	}
	select {
	case c.dialLock <- struct{}{}:
		defer func() { <-c.dialLock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if client, err := c.current(nil); client != nil || err != nil {
		return client, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.conf.Timeout)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	client, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	return c.current(client)
}

// dial dials the node. It returns when ctx ends, although a WebSocket handshake continues until ctx's deadline.
func (c *Client) dial(ctx context.Context) (*rpc.Client, error) {
	type result struct {
		client *rpc.Client
		err    error
	}
	dialed := make(chan result)
	go func() {
		client, err := rpc.DialOptions(ctx, c.conf.URL, c.options()...)
		select {
		case dialed <- result{client, err}:
		case <-ctx.Done():
			if err == nil {
				client.Close()
			}
		}
	}()
	select {
	case r := <-dialed:
		return r.client, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// options returns the options of the RPC connection.
func (c *Client) options() []rpc.ClientOption {
	options := []rpc.ClientOption{
		rpc.WithHTTPClient(&http.Client{
			Transport:     transport{Transport{Base: c.http}, c.conf.MaxAnswer},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       2 * c.conf.Timeout, // for calls that are not made through do
		}),
		rpc.WithWebsocketMessageSizeLimit(c.conf.MaxAnswer),
		rpc.WithHeaders(c.conf.Headers),
	}
	if c.conf.Dial != nil {
		options = append(options, rpc.WithWebsocketDialer(websocket.Dialer{NetDialContext: c.conf.Dial}))
	}
	return options
}

// current returns the RPC connection. Without a connection it becomes dialed, which may be nil. It fails if the client is
// closed.
func (c *Client) current(dialed *rpc.Client) (*rpc.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil {
		if dialed != nil {
			dialed.Close()
		}
		return nil, rpc.ErrClientQuit
	}
	if c.rpc == nil {
		c.rpc = dialed
	}
	return c.rpc, nil
}

// Dial returns go-ethereum's client for the node at a URL, with the limits of a Client, and a function that closes it.
func Dial(ctx context.Context, rawURL string) (client *ethclient.Client, done func(), err error) {
	c, err := NewClient(ClientConfig{URL: rawURL})
	if err != nil {
		return nil, nil, err
	}
	raw, err := c.connect(ctx)
	if err != nil {
		c.Close()
		return nil, nil, sanitize(err)
	}
	return ethclient.NewClient(raw), c.Close, nil
}
