package poster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// errProxy is the error of a proxy that cannot be used, as merchants read it.
var errProxy = errors.New("the proxy of the service cannot be used")

// Ports of schemes, for the address of a proxy.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// egress decides how receivers are reached: through a proxy, or directly if all of a receiver's
// addresses are in the guard's own ranges.
//
// The proxy looks the receiver's name up itself. The guard has checked the addresses that this
// machine finds, but the owner of the name can answer the proxy differently. The proxy has to
// refuse connections to the networks behind it.
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

// lookup returns the addresses of a host, IPv4 ones in their own form.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range all {
		all[i] = a.Unmap()
	}
	return all, err
}

// proxyFor implements http.Transport's Proxy. It returns the proxy for a request, or nil for a
// receiver that is reached directly, and an error if one of the receiver's addresses is
// forbidden.
func (e *egress) proxyFor(r *http.Request) (*url.URL, error) {
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
	return e.proxy, nil
}

// dialContext implements http.Transport's DialContext. Nothing but the proxy is dialled without
// a check of its address: proxyFor has refused a receiver there.
func (e *egress) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address != e.address {
		return e.direct(ctx, network, address)
	}
	conn, err := e.dial(ctx, network, address)
	if err != nil {
		return nil, &proxyError{err}
	}
	return conn, nil
}

// refusal implements http.Transport's OnProxyConnectResponse. Its error shows that an answer is the
// proxy's and not the receiver's.
func refusal(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return &proxyError{errors.New("it wants another account")}
	}
	return fmt.Errorf("the proxy of the service answered %d instead of connecting to this host", answer.StatusCode)
}

// proxyError is the error of a proxy that cannot be used, which is not the receiver's fault.
type proxyError struct{ cause error }

// Error returns the text for merchants, which does not show where the proxy is.
func (e *proxyError) Error() string { return errProxy.Error() }

// Unwrap returns the cause.
func (e *proxyError) Unwrap() error { return e.cause }
