package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quittance/quittance/internal/limits"
)

// Names of the doors.
const (
	PublicDoor   = "public"
	APIDoor      = "api"
	OperatorDoor = "operator"
)

// Address is an address at which some doors listen.
type Address struct {
	Listen string   // address and port
	Doors  []string // in the order public, api, operator
	HTTPS  bool
}

type doorsFile struct {
	Public   string `yaml:"public"`
	API      string `yaml:"api"`
	Operator string `yaml:"operator"`
}

// MaxProxies is the largest number of proxies' networks.
const MaxProxies = 64

// addresses returns the addresses of the doors. A door without an address uses the setting listen.
func (r *resolver) addresses(f *file, hasTLS, hasProxy bool) []Address {
	f.Listen = cmp.Or(f.Listen, DefaultListen)
	shared := sync.OnceValue(func() Address { return r.listenAddress("listen", f.Listen, hasTLS, hasProxy) })
	var all []Address
	for _, door := range []struct{ name, text string }{
		{PublicDoor, f.Doors.Public}, {APIDoor, f.Doors.API}, {OperatorDoor, f.Doors.Operator},
	} {
		var a Address
		path := "doors." + door.name
		if door.text == "" {
			a = shared()
		} else {
			a = r.listenAddress(path, door.text, hasTLS, hasProxy)
		}
		i := slices.IndexFunc(all, func(other Address) bool { return other.Listen == a.Listen })
		if i < 0 {
			i, all = len(all), append(all, a)
		}
		if all[i].HTTPS != a.HTTPS {
			r.fail(path, "is %q, where another door is served with the other scheme; want another port", door.text)
		}
		all[i].Doors = append(all[i].Doors, door.name)
	}
	return all
}

// listenAddress parses an address and port, with an optional scheme. It refuses plain
// HTTP on an address that others can reach, unless a proxy is named that terminates TLS.
func (r *resolver) listenAddress(path, text string, hasTLS, hasProxy bool) Address {
	a := Address{Listen: text, HTTPS: hasTLS}
	if rest, ok := strings.CutPrefix(text, "https://"); ok {
		a = Address{Listen: rest, HTTPS: true}
	} else if rest, ok := strings.CutPrefix(text, "http://"); ok {
		a = Address{Listen: rest}
	}
	loopback, err := checkListen(a.Listen)
	switch {
	case err != nil:
		r.fail(path, "%w", err)
	case a.HTTPS && !hasTLS:
		r.fail(path, "is %q, but there is no certificate; want tls.certificateFile and tls.keyFile, or tls.acme", text)
	case !a.HTTPS && !loopback && !hasProxy:
		r.fail(path, "is %q, which others can reach without TLS; want a loopback address such as %s, a certificate (tls), or the networks of the proxy before it (http.trustedProxies)",
			text, DefaultListen)
	}
	return a
}

// checkListen parses an address and port, and reports whether it is on a loopback
// interface.
func checkListen(listen string) (loopback bool, err error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("is %q; want an address and a port such as %s", listen, DefaultListen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("is %q; want a port of 0 to %d", listen, math.MaxUint16)
	}
	_, err = netip.ParseAddr(host)
	if host != "" && host != "localhost" && err != nil {
		return false, fmt.Errorf("is %q; want an IP address and a port such as %s", listen, DefaultListen)
	}
	return IsLoopback(host), nil
}

// CheckLoopback refuses an address and port that is not on a loopback interface.
func CheckLoopback(listen string) error {
	loopback, err := checkListen(listen)
	if err == nil && !loopback {
		err = fmt.Errorf("is %q, which others can reach; want a loopback address such as %s", listen, DefaultListen)
	}
	return err
}

// proxies checks the networks of the reverse proxies and the header that they set.
func (r *resolver) proxies(f *httpFile) limits.Proxies {
	f.ForwardedHeader = cmp.Or(f.ForwardedHeader, limits.XForwardedFor)
	p := limits.Proxies{Header: f.ForwardedHeader}
	if n := len(f.TrustedProxies); n > MaxProxies {
		r.fail("http.trustedProxies", "has %d networks; want at most %d", n, MaxProxies)
		return p
	}
	for i, text := range f.TrustedProxies {
		network := r.prefix(fmt.Sprintf("http.trustedProxies[%d]", i), text)
		if network.IsValid() && network.Bits() == 0 {
			r.fail(fmt.Sprintf("http.trustedProxies[%d]", i), "is %q, which would let every client claim any address; want the networks of the proxies alone", text)
		}
		p.Trusted = append(p.Trusted, network)
	}
	if p.Header != limits.XForwardedFor && p.Header != limits.Forwarded {
		r.fail("http.forwardedHeader", "is %q; want %s or %s", f.ForwardedHeader, limits.XForwardedFor, limits.Forwarded)
	}
	return p
}

// LocalDoor is how a program on the same machine reaches a door. The name in the URL need not resolve
// to this machine, and the port need not be open there, so the program connects to Dial.
type LocalDoor struct {
	URL  string // base URL, with the host that the door's certificate names
	Dial string // host and port where the door listens
}

// LocalOperator returns how a program on the same machine reaches the operator door.
func (c Config) LocalOperator() LocalDoor { return c.local(OperatorDoor) }

// LocalAPI is LocalOperator for the API's door.
func (c Config) LocalAPI() LocalDoor { return c.local(APIDoor) }

func (c Config) local(door string) LocalDoor {
	for _, a := range c.Addresses {
		if !slices.Contains(a.Doors, door) {
			continue
		}
		scheme := "http://"
		host, port, err := net.SplitHostPort(a.Listen)
		if ip, notIP := netip.ParseAddr(host); err == nil && (host == "" || notIP == nil && ip.IsUnspecified()) {
			host = "127.0.0.1"
		}
		dial := net.JoinHostPort(host, port)
		if a.HTTPS {
			scheme = "https://"
			if len(c.Hosts) > 0 {
				host = c.Hosts[0] // the certificate names this host, not the address
			}
		}
		return LocalDoor{scheme + net.JoinHostPort(host, port), dial}
	}
	return LocalDoor{}
}
