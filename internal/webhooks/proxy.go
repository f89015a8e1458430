package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
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
	address string // host and port of proxy
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	direct  func(ctx context.Context, network, address string) (net.Conn, error) // checks addresses
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // to the proxy
}

// newEgress returns the egress through a proxy. direct dials receivers.
func newEgress(g *Guard, proxy *url.URL, dialer net.Dialer, direct func(ctx context.Context, network, address string) (net.Conn, error)) *egress {
	port := proxy.Port()
	if port == "" {
		port = defaultPorts[proxy.Scheme]
	}
	return &egress{g, proxy, net.JoinHostPort(proxy.Hostname(), port), lookup, direct, dialer.DialContext}
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
	way := routeOf(r.Context())
	way.phase.Store(connected)
	addresses := []netip.Addr{}
	if a, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		addresses = append(addresses, a)
	} else if addresses, err = e.lookup(r.Context(), r.URL.Hostname()); err != nil {
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
	way.phase.Store(towardsProxy)
	return e.proxy, nil
}

// dialContext implements http.Transport's DialContext. Only the proxy is dialed without a check of its address:
// proxyFor has refused a receiver at that address.
func (e *egress) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address != e.address {
		return e.direct(ctx, network, address)
	}
	return e.dial(ctx, network, address)
}

// connectHeader implements http.Transport's GetProxyConnectHeader, which is called once the
// connection to the proxy is open. It adds no header.
func connectHeader(ctx context.Context, _ *url.URL, _ string) (http.Header, error) {
	routeOf(ctx).phase.CompareAndSwap(towardsProxy, askedProxy)
	return nil, nil
}

// refusal implements http.Transport's OnProxyConnectResponse. Its error shows that an answer comes from the proxy and
// not from the receiver.
func refusal(ctx context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		routeOf(ctx).phase.CompareAndSwap(askedProxy, connected)
		return nil
	case http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return &proxyError{fmt.Errorf("it answered %d", answer.StatusCode)}
	}
	return &refusedError{answer.StatusCode}
}

// refusedError is the error of a proxy that refuses to connect to one receiver. Proxies use 500, 502, 503 and 504 for
// receivers that cannot be reached, so such an answer does not show that the proxy fails.
type refusedError struct{ status int }

// Error returns the text for merchants.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the proxy of the service answered %d instead of connecting to this host", e.status)
}

// errNotConnected is the error of an exchange that timed out before the proxy answered. The proxy may have waited for
// the receiver.
var errNotConnected = errors.New("the proxy of the service did not connect to this host")

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

// The phases of an exchange's connection to the receiver. Without a proxy there is only connected.
const (
	connected    int32 = iota // connected to the receiver, or dialing it directly
	towardsProxy              // the connection to the proxy, including TLS, is not open yet
	askedProxy                // the proxy has not answered CONNECT yet
)

// route tracks one exchange's connection to its receiver. Hooks of a dial may run after the exchange has got another
// connection, so each hook only advances from the phase before its phase.
type route struct{ phase atomic.Int32 }

// routeKey is the key of routeOf's value.
type routeKey struct{}

// routeOf returns the route of the exchange with a context.
func routeOf(ctx context.Context) *route {
	if r, ok := ctx.Value(routeKey{}).(*route); ok {
		return r
	}
	return new(route)
}

// attach returns a context for an exchange that the route tracks.
func (r *route) attach(ctx context.Context) context.Context {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { r.phase.Store(connected) }})
	return context.WithValue(ctx, routeKey{}, r)
}

// blame returns an exchange's error. It is a *proxyError if the exchange failed because of the proxy.
func (r *route) blame(ctx context.Context, err error) error {
	var refused *refusedError
	var proxy *proxyError
	if errors.As(err, &refused) || errors.As(err, &proxy) || errors.Is(err, errNoConnection) {
		return err
	}
	stopped := ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout) // by the caller
	switch phase := r.phase.Load(); {
	case phase == connected || stopped:
		return err
	case phase == askedProxy && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errNotConnected, err)
	}
	return &proxyError{err}
}
