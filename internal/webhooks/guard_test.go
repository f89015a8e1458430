package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

// public are addresses that anyone may reach.
var public = []string{
	"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
	"168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
	"191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
	"198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
	"2000::1", "2001:200::1", "2001:db7:ffff::", "2001:db9::", "2003::1", "2606:4700::1111", "2620:4f:7fff::1", "2620:4f:8001::",
	"3ffe:ffff::", "3fff:1000::",
}

// forbidden are addresses at both ends of the forbidden ranges.
var forbidden = []string{
	"0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255",
	"127.0.0.0", "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.170.2",
	"169.254.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.0", "192.0.2.255",
	"192.31.196.1", "192.52.193.1", "192.88.99.0", "192.88.99.1", "192.88.99.255", "192.168.0.0", "192.168.255.255",
	"192.175.48.1", "198.18.0.0", "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255",
	"224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255",
	"::", "::1", "::7f00:1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::1.1.1.1", "64:ff9b:1::7f00:1",
	"100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:1ff:ffff::", "2001:db8::1",
	"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2002::1", "2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:ffff::", "2620:4f:8000::1",
	"3fff::1", "3fff:fff:ffff::", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fe80::1%eth0", "febf::1",
	"fec0::1", "ff02::1", "ff0e::1",
	"::ffff:0.0.0.0", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:192.168.0.1", "::ffff:1.1.1.1", "2606:4700::1111%eth0",
}

func TestGuard(t *testing.T) {
	t.Parallel()
	g := NewGuard(nil)
	for _, text := range public {
		a := netip.MustParseAddr(text)
		if err := g.Check(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		if err := g.CheckPlain(a); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s may be reached without TLS", a)
		}
	}
	for _, text := range forbidden {
		if err := g.Check(netip.MustParseAddr(text)); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s may be reached", text)
		}
	}
}

func TestGuardAllows(t *testing.T) {
	t.Parallel()
	g := NewGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("1.1.1.1/32")})
	for text, allowed := range map[string]bool{
		"10.1.0.0": true, "10.1.255.255": true, "::ffff:10.1.2.3": true, "fd00::1": true, "1.1.1.1": true,
		"10.0.255.255": false, "10.2.0.0": false, "fc00::1": false, "127.0.0.1": false, "1.1.1.2": false, "fd00::1%eth0": false,
	} {
		if err := g.CheckPlain(netip.MustParseAddr(text)); (err == nil) != allowed {
			t.Errorf("%s without TLS: %v, want allowed %t", text, err, allowed)
		}
	}
}

// canary is a listener on every loopback address that no request may reach.
type canary struct {
	port    string
	reached atomic.Int64
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	expect.OK(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	expect.OK(t, err)
	c := &canary{port: port}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.reached.Add(1)
			expect.NoError(t, conn.Close())
		}
	}()
	t.Cleanup(func() {
		expect.NoError(t, l.Close())
		<-done
		expect.Equal(t, c.reached.Load(), 0, "times that the canary was reached:")
	})
	return c
}

// forms are spellings of hosts that are, or could be mistaken for, forbidden ones.
func forms() []string {
	hosts := []string{
		"localhost", "LOCALHOST", "localhost.", "foo.localhost", "ip6-localhost", "ip6-loopback",
		"127.1", "127.0.1", "0", "0.0", "0x7f.1", "0x7f000001", "0x7f.0x0.0x0.0x1", "2130706433", "017700000001", "0177.0.0.1",
		"0177.0.0.01", "127.000.000.001", "127.0.0.1.", "①②⑦.⓪.⓪.①", "127。0。0。1", "127%2e0%2e0%2e1", "3232235521", "0xa9fea9fe",
		"2852039166", "0251.0376.0251.0376", "169.254.43518", "0xa9.0xfe.0xa9.0xfe", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]",
		"[0000:0000:0000:0000:0000:0000:0000:0001]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:0:7f00:1]",
		"[64:ff9b::127.0.0.1]", "[2002:7f00:0001::]", "[::127.0.0.1]", "[fe80::1%25lo]", "[::1%25lo]",
		"user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1#example.com", "127.0.0.1?example.com", `127.0.0.1\@example.com`,
	}
	for _, text := range forbidden {
		a := netip.MustParseAddr(text)
		if a.Zone() != "" {
			continue // the same host without the zone is another address
		}
		host := a.String()
		if a.Is6() {
			host = "[" + host + "]"
			b := a.As16()
			var long []string
			for i := 0; i < len(b); i += 2 {
				long = append(long, fmt.Sprintf("%02X%02X", b[i], b[i+1]))
			}
			hosts = append(hosts, "["+strings.Join(long, ":")+"]")
		} else {
			b := a.As4()
			hosts = append(hosts, fmt.Sprintf("[::ffff:%s]", text), fmt.Sprintf("[::ffff:%x:%x]", uint16(b[0])<<8|uint16(b[1]), uint16(b[2])<<8|uint16(b[3])))
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// nameServer answers every query for an IPv4 address with the result of answers, and every other query with an empty
// answer (RFC 1035).
func nameServer(t *testing.T, answers func() []netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	expect.OK(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 1500); ; {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if _, err := pc.WriteTo(reply(buf[:n], answers), from); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() {
		expect.NoError(t, pc.Close())
		<-done
	})
	var dialer net.Dialer
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// reply makes the reply to a query with one question.
func reply(query []byte, answers func() []netip.Addr) []byte {
	const header, typeA = 12, 1
	end := header
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root label, the type and the class
	r := append([]byte(nil), query[:end]...)
	r[2], r[3] = 0x84, 0                                    // an authoritative answer without an error
	r[6], r[7], r[8], r[9], r[10], r[11] = 0, 0, 0, 0, 0, 0 // no records
	if query[end-3] != typeA {
		return r
	}
	for _, a := range answers() {
		r = append(r, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		r = append(r, a.AsSlice()...)
		r[7]++
	}
	return r
}

// get requests a URL and returns the error. There is always one: no URL here may be reached.
func get(t *testing.T, client *http.Client, rawURL string) error {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(WithScheme(t.Context(), u.Scheme), http.MethodPost, rawURL, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close() // reaching it is the failure
		t.Fatalf("%s was reached", rawURL)
	}
	return err
}

// TestForbiddenForms tries every spelling of a forbidden host, with a name server that returns 127.0.0.1 for every host
// that Go does not parse as an address.
func TestForbiddenForms(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	resolver := nameServer(t, func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} })
	client := newClient(ClientConfig{Guard: NewGuard(nil)}, net.Dialer{Timeout: 5 * time.Second, Resolver: resolver})
	t.Cleanup(client.CloseIdleConnections)
	tried := 0
	for _, host := range forms() {
		for _, scheme := range []string{"http", "https"} {
			err := get(t, client, scheme+"://"+host+":"+c.port+"/")
			var noName *net.DNSError
			var noURL *url.Error
			if errors.As(err, &noURL) && noURL.Op == "parse" || errors.As(err, &noName) {
				continue // no address was dialed
			}
			expect.Error(t, ErrForbidden, "%s", host)(err)
			tried++
		}
	}
	if tried < 200 {
		t.Errorf("only %d forms came as far as the guard", tried)
	}
}

// TestRebinding dials a name 1,000 times while its name server keeps changing the answer. The guard must check the
// address of the connection. The test stops allowed connections, so that it reaches no host.
func TestRebinding(t *testing.T) {
	t.Parallel()
	const dials = 1000
	c := newCanary(t)
	random := rand.New(rand.NewPCG(1, 2)) // only the name server's goroutine uses it
	inside, outside := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr(public[0])
	sets := [][]netip.Addr{{inside}, {outside}, {inside, outside}, {outside, inside}}
	resolver := nameServer(t, func() []netip.Addr { return sets[random.IntN(len(sets))] })

	guard, errPassed := NewGuard(nil), errors.New("let pass")
	var refused, passed atomic.Int64
	dialer := net.Dialer{Timeout: 5 * time.Second, Resolver: resolver, ControlContext: func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if err := guard.control(ctx, network, address, conn); err != nil {
			refused.Add(1)
			return err
		}
		if !strings.HasPrefix(address, outside.String()+":") {
			t.Errorf("%s was let pass", address)
		}
		passed.Add(1)
		return errPassed
	}}
	client := newClient(ClientConfig{Guard: guard}, net.Dialer{})
	client.Transport.(chain.Transport).Base.(*http.Transport).DialContext = dialer.DialContext
	for range dials {
		if err := get(t, client, "https://rebound.example:"+c.port+"/"); !errors.Is(err, ErrForbidden) && !errors.Is(err, errPassed) {
			t.Fatal(err)
		}
	}
	if refused.Load() < dials/4 || passed.Load() < dials/4 {
		t.Errorf("of %d dials %d were refused and %d let pass", dials, refused.Load(), passed.Load())
	}
}
