package webhooks

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// ErrForbidden means that webhooks must not reach an address.
var ErrForbidden = errors.New("webhooks must not reach this address")

// ErrPlain means that an address must be reached with TLS. It wraps ErrForbidden.
var ErrPlain = fmt.Errorf("%w without TLS; use https, or have the operator allow it under webhooks.allow", ErrForbidden)

// Guard decides which addresses webhooks may reach. Merchants choose their URLs, and the owner of a name chooses its
// addresses. Without a guard both could make the service post to addresses that only its network can reach (server-side
// request forgery). The guard checks every address when it is dialed, after the name was looked up, so an earlier or
// different answer to the same lookup does not help an attacker.
type Guard struct {
	allow []netip.Prefix
}

// NewGuard returns a guard that allows public internet addresses and addresses in the ranges.
func NewGuard(allow []netip.Prefix) *Guard { return &Guard{allow} }

// Loopback returns the ranges of the machine's loopback addresses.
func Loopback() []netip.Prefix { return prefixes("127.0.0.0/8", "::1/128") }

// global are the ranges of public internet addresses, apart from the special ranges: all of IPv4, and the IPv6 ranges
// that IANA has assigned as global unicast. All other addresses are refused, such as NAT64 (RFC 6052), mapped (RFC
// 4291), unique local (RFC 4193), link-local and multicast addresses of IPv6.
var global = prefixes("0.0.0.0/0", "2000::/3")

// special are ranges within global that are not public: IANA's registries of special-purpose addresses (RFC 6890), and
// one that a cloud uses internally.
var special = prefixes(
	"0.0.0.0/8",         // this network (RFC 791), unspecified
	"10.0.0.0/8",        // private (RFC 1918)
	"100.64.0.0/10",     // behind carrier-grade NAT (RFC 6598)
	"127.0.0.0/8",       // loopback (RFC 1122)
	"168.63.129.16/32",  // Azure's host agent
	"169.254.0.0/16",    // link-local (RFC 3927), metadata services of clouds
	"172.16.0.0/12",     // private (RFC 1918)
	"192.0.0.0/24",      // protocol assignments (RFC 6890)
	"192.0.2.0/24",      // documentation (RFC 5737)
	"192.31.196.0/24",   // AS112 (RFC 7535)
	"192.52.193.0/24",   // multicast tunnels (RFC 7450)
	"192.88.99.0/24",    // 6to4 relays (RFC 7526)
	"192.168.0.0/16",    // private (RFC 1918)
	"192.175.48.0/24",   // AS112 (RFC 7534)
	"198.18.0.0/15",     // benchmarks (RFC 2544)
	"198.51.100.0/24",   // documentation (RFC 5737)
	"203.0.113.0/24",    // documentation (RFC 5737)
	"224.0.0.0/4",       // multicast (RFC 1112)
	"240.0.0.0/4",       // reserved (RFC 1112), broadcast
	"2001::/23",         // protocol assignments (RFC 2928), including Teredo and ORCHID
	"2001:db8::/32",     // documentation (RFC 3849)
	"2002::/16",         // 6to4 (RFC 3056)
	"2620:4f:8000::/48", // AS112 (RFC 7534)
	"3fff::/20",         // documentation (RFC 9637)
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

func covered(by []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(by, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Allowed reports whether the address is in one of the guard's allowed ranges. Those may be reached without TLS, too.
func (g *Guard) Allowed(a netip.Addr) bool {
	return a.Zone() == "" && (covered(g.allow, a) || a.Is4In6() && covered(g.allow, a.Unmap()))
}

// Check returns ErrForbidden for an address that webhooks must not reach.
func (g *Guard) Check(a netip.Addr) error {
	if g.Allowed(a) || covered(global, a) && !covered(special, a) {
		return nil
	}
	return fmt.Errorf("%w: %s is not on the public internet; the operator can allow it under webhooks.allow", ErrForbidden, a)
}

// CheckPlain is Check for a connection without TLS. Public internet addresses are refused, because the event could be
// read on its way.
func (g *Guard) CheckPlain(a netip.Addr) error {
	if err := g.Check(a); err != nil {
		return err
	}
	if !g.Allowed(a) {
		return fmt.Errorf("%w: %s", ErrPlain, a)
	}
	return nil
}
