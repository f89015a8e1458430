package webhooks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"
)

// errProxy is the error for merchants if the proxy cannot be used.
var errProxy = errors.New("the proxy of the service cannot be used")

// Default ports of schemes, for the address of a proxy.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// egress decides how receivers are reached: through a proxy, or directly if all of a receiver's addresses are in the
// guard's allowed ranges.
//
// The proxy looks up the receiver's name again. The guard has checked the addresses that this machine finds, but the
// owner of the name can answer the proxy differently. The proxy has to refuse connections to the networks behind it.
type egress struct {
	guard   *Guard
	proxy   *url.URL
	address string      // host and port of proxy
	tls     *tls.Config // of the connection to the proxy; nil without TLS
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	direct  func(ctx context.Context, network, address string) (net.Conn, error) // checks addresses
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // to the proxy
}

// proxyTimeout bounds the connection to the proxy, including TLS. It is shorter than an exchange, so that a proxy that
// does not answer is known as the reason.
const proxyTimeout = 3 * time.Second

// newEgress returns the egress through a proxy. direct dials receivers.
func newEgress(g *Guard, proxy *url.URL, dialer net.Dialer, conf *tls.Config, direct func(ctx context.Context, network, address string) (net.Conn, error)) *egress {
	port := proxy.Port()
	if port == "" {
		port = defaultPorts[proxy.Scheme]
	}
	e := &egress{guard: g, address: net.JoinHostPort(proxy.Hostname(), port), lookup: lookup, direct: direct, dial: dialer.DialContext}
	if proxy.Scheme == "https" {
		e.tls = conf.Clone()
		e.tls.ServerName = proxy.Hostname()
	}
	e.proxy = &url.URL{Scheme: "http", User: proxy.User, Host: e.address} // dialContext returns a connection with TLS
	return e
}

// lookup returns the addresses of a host, with mapped IPv4 addresses as IPv4.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range all {
		all[i] = a.Unmap()
	}
	return all, err
}

// proxyFor implements http.Transport's Proxy. It returns the proxy for a request, or nil for a receiver that is reached
// directly. It fails if one of the receiver's addresses is forbidden. net/http calls it again before each further
// attempt to send a request.
func (e *egress) proxyFor(r *http.Request) (*url.URL, error) {
	addresses := []netip.Addr{}
	host, err := httpguts.PunycodeHostPort(r.URL.Hostname()) // as net/http does
	if err != nil {
		return nil, err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, a)
	} else if addresses, err = e.lookup(r.Context(), host); err != nil {
		return nil, err
	}
	own := true
	for _, a := range addresses {
		if err := e.guard.check(r.Context(), a); err != nil {
			return nil, err
		}
		own = own && e.guard.Allowed(a)
	}
	if own {
		return nil, nil
	}
	return e.proxy, nil
}

// dialContext implements http.Transport's DialContext. Only the proxy is dialed without a check of its address:
// proxyFor has refused a receiver at that address. Its error is a *proxyError if the proxy cannot be reached.
func (e *egress) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address != e.address {
		return e.direct(ctx, network, address)
	}
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	conn, err := e.dial(ctx, network, address)
	if err != nil {
		return nil, &proxyError{err}
	}
	if e.tls == nil {
		return conn, nil
	}
	secured := tls.Client(conn, e.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake failed
		return nil, &proxyError{err}
	}
	return secured, nil
}

// refusal implements http.Transport's OnProxyConnectResponse. Its error shows that an answer comes from the proxy and
// not from the receiver. Only 407 shows that the proxy serves no request of this process.
func refusal(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return &proxyError{fmt.Errorf("it answered %d", answer.StatusCode)}
	}
	return &refusedError{answer.StatusCode}
}

// refusedError is the error of a proxy that refuses to connect to one receiver. Proxies use 500, 502, 503 and 504 for
// receivers that cannot be reached, and 429 for receivers that are asked often, so such an answer does not show that the
// proxy fails. Neither does a connection that it closes.
type refusedError struct{ status int }

// Error returns the text for merchants.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the proxy of the service answered %d instead of connecting to this host", e.status)
}

// proxyError is the error of a proxy that cannot be used, which is not the receiver's fault.
type proxyError struct{ cause error }

// Error returns the text for merchants, which does not reveal the proxy's address.
func (e *proxyError) Error() string { return errProxy.Error() }

// Unwrap returns the cause.
func (e *proxyError) Unwrap() error { return e.cause }

// detail returns the text for the operator, without the receiver's URL.
func (e *proxyError) detail() string {
	cause := e.cause
	if withURL := (*url.Error)(nil); errors.As(cause, &withURL) {
		cause = withURL.Err
	}
	return fmt.Sprintf("%v: %v", errProxy, cause)
}
