package chain

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

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
