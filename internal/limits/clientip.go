package limits

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Headers in which proxies report the client's address.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
)

// xForwardedProto is the header in which proxies that set XForwardedFor report the scheme of
// the client's request. Those that set Forwarded report it there.
const xForwardedProto = "X-Forwarded-Proto"

// Proxies are the reverse proxies of a service. The zero value trusts no proxy.
type Proxies struct {
	// Trusted are the networks of the proxies.
	Trusted []netip.Prefix
	// Header is the header that the proxies set: XForwardedFor, or Forwarded. The other
	// one is ignored, because a client could set it.
	Header string
}

// Client returns the address of a request's client, or the zero Addr if the connection has no address.
//
// It is the peer's address, unless the peer is a trusted proxy. Then the addresses in the header are
// followed from the last, which the peer added, to the first that does not belong to a trusted proxy.
// An element that is not an address ends the search; the client is then the proxy that reported it.
func (p Proxies) Client(r *http.Request) netip.Addr {
	client, ok := parseAddr(r.RemoteAddr)
	if !ok || !p.trusts(client) {
		return client
	}
	list := strings.Join(r.Header.Values(p.Header), ",") // repeated lines are one list (RFC 9110, section 5.3)
	if list == "" {
		return client
	}
	hops := strings.Split(list, ",")
	if p.Header == Forwarded {
		hops = forwardedValues(list, "for")
	}
	for _, hop := range slices.Backward(hops) {
		addr, ok := parseAddr(strings.TrimSpace(hop))
		if !ok {
			break
		}
		client = addr
		if !p.trusts(addr) {
			break
		}
	}
	return client
}

// Trust reports whether the peer of a request is a trusted proxy.
func (p Proxies) Trust(r *http.Request) bool {
	_, trusted := p.Peer(r.RemoteAddr)
	return trusted
}

// Peer returns the address of the other end of a connection, without its port, and whether
// it is a trusted proxy.
func (p Proxies) Peer(remote string) (addr netip.Addr, trusted bool) {
	addr, ok := parseAddr(remote)
	return addr, ok && p.trusts(addr)
}

func (p Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// parseAddr parses an IP address with or without a port. An IPv4 address that is
// mapped to IPv6 becomes IPv4, and a zone is cut off.
func parseAddr(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

// Network returns the network that counts as one client: an IPv4 address, or the /64
// network of an IPv6 address, of which a client has all addresses.
func Network(addr netip.Addr) netip.Prefix {
	const ipv6Bits = 64
	return prefixOf(addr, ipv6Bits)
}

// Site returns the network that one subscriber may have, which contains many client networks: the /48
// network of an IPv6 address. An IPv4 address is its own site.
func Site(addr netip.Addr) netip.Prefix {
	const siteBits = 48
	return prefixOf(addr, siteBits)
}

// prefixOf returns the network of an IPv6 address with ipv6Bits bits, or an IPv4 address.
func prefixOf(addr netip.Addr, ipv6Bits int) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = ipv6Bits
	}
	return netip.PrefixFrom(addr, bits).Masked()
}

// IsShared reports whether many clients may have the address: those behind a proxy or
// load balancer of this network that does not report them. If proxied is set, proxies are named that do,
// and each address belongs to one client.
func IsShared(addr netip.Addr, proxied bool) bool {
	return !proxied && isOfThisNetwork(addr)
}

func isOfThisNetwork(addr netip.Addr) bool {
	return !addr.IsValid() || addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()
}

type contextKey struct{}

// NewContext returns a context that carries the address of a request's client.
func NewContext(ctx context.Context, client netip.Addr) context.Context {
	return context.WithValue(ctx, contextKey{}, client)
}

type proxiedKey struct{}

// WithProxied returns a context for requests to a service that names its proxies.
func WithProxied(ctx context.Context) context.Context {
	return context.WithValue(ctx, proxiedKey{}, true)
}

// IsSharedIn is IsShared for the address that ctx carries.
func IsSharedIn(ctx context.Context) bool {
	proxied, _ := ctx.Value(proxiedKey{}).(bool)
	return IsShared(FromContext(ctx), proxied)
}

// FromContext returns the address that ctx carries, or the zero Addr.
func FromContext(ctx context.Context) netip.Addr {
	client, _ := ctx.Value(contextKey{}).(netip.Addr)
	return client
}
