package limits

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// ours are the proxies of the tests.
var ours = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:aaaa::/48"), netip.MustParsePrefix("127.0.0.1/32")}

func request(peer, header string, lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	for _, line := range lines {
		r.Header.Add(header, line)
	}
	return r
}

func TestXForwardedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"no header":                       {"10.0.0.1:1", nil, "10.0.0.1"},
		"an untrusted peer":               {"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		"one client":                      {"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"a client that claims another":    {"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"a client that claims a proxy":    {"10.0.0.1:1", []string{"10.0.0.9, 198.51.100.1"}, "198.51.100.1"},
		"two proxies":                     {"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.1, 10.7.7.7"}, "198.51.100.1"},
		"doubled lines":                   {"10.0.0.1:1", []string{"1.1.1.1", "198.51.100.1"}, "198.51.100.1"},
		"all proxies":                     {"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"a port":                          {"10.0.0.1:1", []string{"198.51.100.1:5555"}, "198.51.100.1"},
		"IPv6":                            {"[2001:db8:aaaa::1]:1", []string{"2001:db8::5"}, "2001:db8::5"},
		"IPv6 in brackets":                {"[2001:db8:aaaa::1]:1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		"IPv6 with a port":                {"[2001:db8:aaaa::1]:1", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
		"a zone":                          {"10.0.0.1:1", []string{"fe80::1%eth0"}, "fe80::1"},
		"mapped IPv4":                     {"[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		"garbage":                         {"10.0.0.1:1", []string{"<script>"}, "10.0.0.1"},
		"garbage before the client":       {"10.0.0.1:1", []string{"<script>, 198.51.100.1"}, "198.51.100.1"},
		"garbage behind the client":       {"10.0.0.1:1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"garbage before a proxy":          {"10.0.0.1:1", []string{"1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		"empty elements":                  {"10.0.0.1:1", []string{"1.1.1.1,,"}, "10.0.0.1"},
		"an empty line":                   {"10.0.0.1:1", []string{""}, "10.0.0.1"},
		"a host name":                     {"10.0.0.1:1", []string{"client.example"}, "10.0.0.1"},
		"a number":                        {"10.0.0.1:1", []string{"3405803777"}, "10.0.0.1"},
		"leading zeros":                   {"10.0.0.1:1", []string{"010.1.1.1"}, "10.0.0.1"},
		"spaces":                          {"10.0.0.1:1", []string{"\t 198.51.100.1 \t"}, "198.51.100.1"},
		"a connection without an address": {"pipe", []string{"198.51.100.1"}, "invalid IP"},
	} {
		p := Proxies{ours, XForwardedFor}
		if got := p.Client(request(test.peer, XForwardedFor, test.lines...)); got.String() != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestForwarded(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		`for=198.51.100.1`:                                      "198.51.100.1",
		`For="[2001:db8:cafe::17]:4711"`:                        "2001:db8:cafe::17",
		`for=198.51.100.1;proto=https;by=10.0.0.1;host="a,b;c"`: "198.51.100.1",
		`proto=https; for=198.51.100.1`:                         "198.51.100.1",
		`for=1.1.1.1, for=198.51.100.1, for=10.0.0.7`:           "198.51.100.1",
		`for="1.1.1.1, for=2.2.2.2", for=198.51.100.1`:          "198.51.100.1",
		`for="198.51.100.1:80"`:                                 "198.51.100.1",
		`for="198\.51.100.1"`:                                   "198.51.100.1",
		`for=unknown`:                                           "10.0.0.1",
		`for=_hidden`:                                           "10.0.0.1",
		`for=_SEVKISEK, for=10.0.0.7`:                           "10.0.0.7",
		`for=1.1.1.1, for=unknown, for=10.0.0.7`:                "10.0.0.7",
		`proto=https`:                                           "10.0.0.1",
		`for=1.1.1.1;for=198.51.100.1`:                          "10.0.0.1",
		`for=1.1.1.1;for=198.51.100.1;for=3.3.3.3`:              "10.0.0.1",
		`for="198.51.100.1`:                                     "10.0.0.1",
		`for=198.51.100.1, for="unterminated`:                   "10.0.0.1",
		`for="198.51.100.1\`:                                    "10.0.0.1",
		`for=198.51.100.1,`:                                     "10.0.0.1",
		`for`:                                                   "10.0.0.1",
		`,;=`:                                                   "10.0.0.1",
		`for=""`:                                                "10.0.0.1",
		`for="198.51.100.1"x`:                                   "10.0.0.1",
	} {
		p := Proxies{ours, Forwarded}
		if got := p.Client(request("10.0.0.1:1", Forwarded, header)); got.String() != want {
			t.Errorf("%s: %s, want %s", header, got, want)
		}
		if got := p.Client(request("203.0.113.9:1", Forwarded, header)); got.String() != "203.0.113.9" {
			t.Errorf("%s of an untrusted peer: %s", header, got)
		}
	}
}

// TestOtherHeader sets the header that the proxies do not set.
func TestSecure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		peer, header string
		proto        []string // X-Forwarded-Proto
		forwarded    []string
		want         bool
	}{
		{"10.0.0.1:1", XForwardedFor, []string{"https"}, nil, true},
		{"10.0.0.1:1", XForwardedFor, []string{" HTTPS "}, nil, true},
		{"10.0.0.1:1", XForwardedFor, []string{"https, http"}, nil, true},
		{"10.0.0.1:1", XForwardedFor, []string{"https", "http"}, nil, true},
		{"10.0.0.1:1", XForwardedFor, []string{"http"}, nil, false},
		{"10.0.0.1:1", XForwardedFor, []string{"httpsx"}, nil, false},
		{"10.0.0.1:1", XForwardedFor, nil, nil, false},
		{"10.0.0.1:1", XForwardedFor, nil, []string{"proto=https"}, false},
		{"203.0.113.9:1", XForwardedFor, []string{"https"}, nil, false},
		{"10.0.0.1:1", Forwarded, nil, []string{"for=198.51.100.1;proto=https"}, true},
		{"10.0.0.1:1", Forwarded, nil, []string{`Proto="HTTPS";for=198.51.100.1, for=10.0.0.2;proto=http`}, true},
		{"10.0.0.1:1", Forwarded, nil, []string{"for=198.51.100.1;proto=http"}, false},
		{"10.0.0.1:1", Forwarded, nil, []string{"proto=https;proto=http"}, false},
		{"10.0.0.1:1", Forwarded, nil, nil, false},
		{"10.0.0.1:1", Forwarded, []string{"https"}, nil, false},
		{"203.0.113.9:1", Forwarded, nil, []string{"proto=https"}, false},
	} {
		r := request(test.peer, xForwardedProto, test.proto...)
		for _, line := range test.forwarded {
			r.Header.Add(Forwarded, line)
		}
		expect.Equal(t, (Proxies{ours, test.header}).Secure(r), test.want, "%+v:", test)
	}
	r := request("203.0.113.9:1", xForwardedProto)
	r.TLS = new(tls.ConnectionState)
	if !(Proxies{}).Secure(r) {
		t.Error("a request by HTTPS to the service itself is not secure")
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	r := request("10.0.0.1:1", xForwardedProto, "https")
	r.Host = "pay.example.com"
	expect.Equal(t, BaseURL(r), "http://pay.example.com", "a header that was not checked:")
	expect.Equal(t, BaseURL(r.WithContext(WithSecure(r.Context()))), "https://pay.example.com", "by HTTPS:")
	r.TLS = new(tls.ConnectionState)
	expect.Equal(t, BaseURL(r), "https://pay.example.com", "by HTTPS to the service:")
}

func TestOtherHeader(t *testing.T) {
	t.Parallel()
	for header, other := range map[string]string{XForwardedFor: Forwarded, Forwarded: XForwardedFor} {
		r := request("10.0.0.1:1", other, "for=1.1.1.1", "1.1.1.1")
		if got := (Proxies{ours, header}).Client(r); got.String() != "10.0.0.1" {
			t.Errorf("%s is believed where the proxies set %s: %s", other, header, got)
		}
	}
}

// FuzzClient compares with a client that is the last element of the header: earlier elements, which a
// client can forge, do not change the result.
func FuzzClient(f *testing.F) {
	for _, sent := range []string{"", "1.1.1.1", "for=1.1.1.1", `for="`, `for="a,b"`, ",", ";", "unknown", "\"", "[::1]:80", "10.0.0.1"} {
		f.Add(sent)
	}
	want := netip.MustParseAddr("198.51.100.1")
	f.Fuzz(func(t *testing.T, sent string) {
		r := request("10.0.0.1:1", XForwardedFor, sent, want.String()+", 10.0.0.2")
		expect.Equal(t, (Proxies{ours, XForwardedFor}).Client(r), want, "%q makes the client", sent)
		r = request("10.0.0.1:1", Forwarded, sent+", for="+want.String()+`, for="10.0.0.2"`)
		got := (Proxies{ours, Forwarded}).Client(r)
		if open := strings.Contains(sent, `"`); got != want && !open {
			t.Errorf("%q makes the client %s", sent, got)
		} else if got != want && got.String() != "10.0.0.1" && got.String() != "10.0.0.2" {
			t.Errorf("%q makes the client %s, which is no proxy of ours", sent, got)
		}
	})
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"198.51.100.1": "198.51.100.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "::1": "::/64",
	} {
		if got := Network(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if Network(netip.Addr{}).IsValid() || Site(netip.Addr{}).IsValid() {
		t.Error("the zero address has a network")
	}
}

func TestSite(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"198.51.100.1": "198.51.100.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1::/48"} {
		if got := Site(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

// TestPeer checks trusted proxies and other peers, with and without a port.
func TestPeer(t *testing.T) {
	t.Parallel()
	p := Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for remote, want := range map[string]bool{"10.1.2.3:4567": true, "[::ffff:10.1.2.3]:80": true, "11.1.2.3:4567": false, "": false} {
		if addr, trusted := p.Peer(remote); trusted != want || addr.IsValid() != (remote != "") {
			t.Errorf("%q is %v, trusted %t", remote, addr, trusted)
		}
	}
}

// TestIsShared names proxies that report the clients, so that no address is shared.
func TestIsShared(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"10.1.2.3": true, "127.0.0.1": true, "fe80::1": true, "fd00::1": true, "198.51.100.1": false, "2001:db8::1": false} {
		addr := netip.MustParseAddr(address)
		ctx := NewContext(t.Context(), addr)
		if IsShared(addr, false) != want || IsSharedIn(ctx) != want {
			t.Errorf("without proxies, %s is shared: %t", addr, IsShared(addr, false))
		}
		if IsShared(addr, true) || IsSharedIn(WithProxied(ctx)) {
			t.Errorf("behind proxies, %s is shared", addr)
		}
	}
	if !IsSharedIn(t.Context()) {
		t.Error("no address is not shared")
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr("198.51.100.1")
	if got := FromContext(NewContext(t.Context(), addr)); got != addr {
		t.Errorf("%s, want %s", got, addr)
	}
	if FromContext(t.Context()).IsValid() {
		t.Error("an empty context carries an address")
	}
}
