package server

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/certstest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// listenOn listens on a free port for each of the addresses.
func listenOn(t *testing.T, addresses ...Address) []*Listener {
	t.Helper()
	for i := range addresses {
		addresses[i].Listen = "127.0.0.1:0"
	}
	all, err := ListenAll(t.Context(), addresses)
	expect.OK(t, err)
	return all
}

// threeDoors listens on an address for each door.
func threeDoors(t *testing.T) []*Listener {
	t.Helper()
	return listenOn(t, Address{Doors: []webpage.Door{webpage.PublicDoor}}, Address{Doors: []webpage.Door{webpage.APIDoor}}, Address{Doors: []webpage.Door{webpage.OperatorDoor}})
}

// doorPaths has a path of each door, with the status of a GET.
var doorPaths = map[webpage.Door]map[string]int{
	webpage.PublicDoor:   {"/checkout/inv_x": 404, "/refunds/x": 404, "/api/webhooks/circle": 405},
	webpage.APIDoor:      {"/api/invoices": 200, "/api/payments": 200},
	webpage.OperatorDoor: {"/healthz": 200, "/status": 200, "/metrics": 200},
}

func TestDoors(t *testing.T) {
	t.Parallel()
	listeners := threeDoors(t)
	s := startServer(t, Config{Listeners: listeners})
	if s.url != listeners[1].url() {
		t.Errorf("the base URL is %s; want the API's, %s", s.url, listeners[1].url())
	}
	for _, l := range listeners {
		for door, paths := range doorPaths {
			for path, status := range paths {
				if door != l.doors[0] {
					status = http.StatusNotFound
				}
				if a := ask(t, http.MethodGet, l.url()+path, ""); a.status != status {
					t.Errorf("%s at the %s door: %d, want %d", path, l.doors[0], a.status, status)
				}
				if a := ask(t, http.MethodGet, l.url()+path, "", func(r *http.Request) { r.Host = "evil.example" }); a.status != http.StatusForbidden && !strings.HasPrefix(path, "/api/webhooks/") {
					t.Errorf("%s at the %s door for a foreign host: %d", path, l.doors[0], a.status)
				}
			}
		}
	}
	if a := ask(t, http.MethodGet, listeners[2].url()+"/debug/pprof/goroutine?debug=1", ""); a.status != http.StatusOK || !strings.Contains(a.body, "goroutine profile:") {
		t.Errorf("a profile: %d %.100s", a.status, a.body)
	}
	s.stop()
	expect.NoError(t, <-s.ended)
	for _, l := range listeners {
		if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()); err == nil {
			_ = conn.Close()
			t.Errorf("the %s door is open after the stop", l.doors[0])
		}
	}
}

// TestCheckoutPage creates an invoice of a service with a public URL. Its page is served under that name.
func TestCheckoutPage(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{
		Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}, PublicURL: "https://pay.example.com:8443", Hosts: []string{"pay.example.com"},
	}).url
	var made struct{ ID, CheckoutURL, CheckoutPage string }
	if a := create(t, base, "house"); json.Unmarshal([]byte(a.body), &made) != nil || a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	if path := "/checkout/" + made.ID; made.CheckoutURL != path || made.CheckoutPage != "https://pay.example.com:8443"+path {
		t.Errorf("the page is %q at %q", made.CheckoutURL, made.CheckoutPage)
	}
	public := func(r *http.Request) {
		r.Host = "pay.example.com:8443"
		r.Header.Set("Origin", "https://pay.example.com:8443")
	}
	if a := ask(t, http.MethodGet, base+made.CheckoutURL, "", public); a.status != http.StatusOK || a.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("the page: %d %v", a.status, a.header)
	}
	if a := ask(t, http.MethodPost, base+made.CheckoutURL+"/claim", "", public); a.status == http.StatusForbidden {
		t.Error("a form of the page is refused")
	}
}

// TestNoProfilesAtSharedDoors asks for profiles while the operator door shares an address.
func TestNoProfilesAtSharedDoors(t *testing.T) {
	t.Parallel()
	for _, doors := range [][]webpage.Door{webpage.Doors, {webpage.APIDoor, webpage.OperatorDoor}} {
		listeners := listenOn(t, Address{Doors: doors})
		startServer(t, Config{Listeners: listeners})
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"} {
			if a := ask(t, http.MethodGet, listeners[0].url()+path, ""); a.status != http.StatusNotFound {
				t.Errorf("%s answers %d where the operator door shares an address", path, a.status)
			}
		}
	}
}

// TestPublicNameIsNotPrivate asks for the operator's pages at shared loopback doors. Under a public
// name, a proxy passes on requests from the internet, even if the configuration does not name it.
func TestPublicNameIsNotPrivate(t *testing.T) {
	t.Parallel()
	for _, hosts := range [][]string{nil, {"pay.example.com"}} {
		want := http.StatusOK
		if hosts != nil {
			want = http.StatusUnauthorized
		}
		base := startServer(t, Config{Hosts: hosts, Access: Access{Mode: access.Live}}).url
		for _, path := range []string{"/status", "/metrics"} {
			if a := ask(t, http.MethodGet, base+path, ""); a.status != want {
				t.Errorf("%s of a service with the names %q: %d, want %d", path, hosts, a.status, want)
			}
		}
	}
}

// TestBusyDoorLeavesOthers holds all connections of a door with unfinished requests. The others are served.
func TestBusyDoorLeavesOthers(t *testing.T) {
	t.Parallel()
	listeners := threeDoors(t)
	startServer(t, Config{Listeners: listeners, OpenFiles: 256})
	for range 256 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listeners[0].Addr().String())
		expect.OK(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		expect.Success(t)(io.WriteString(conn, "GET /checkout/inv_x HTTP/1.1\r\n"))
	}
	begun := time.Now()
	for _, l := range listeners[1:] {
		if a := ask(t, http.MethodGet, l.url()+"/healthz", ""); a.status == 0 || time.Since(begun) > readHeaderTimeout/2 {
			t.Errorf("the %s door answered %d after %s", l.doors[0], a.status, time.Since(begun))
		}
	}
}

// secure starts a server with HTTPS at all doors but the operator's.
func secure(t *testing.T, first certstest.Pair, now func() time.Time, doors ...[]webpage.Door) []*Listener {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certstest.Write(t, cert, first.Certificate, key, first.Key)
	var addresses []Address
	for _, d := range doors {
		addresses = append(addresses, Address{Doors: d, HTTPS: !slices.Contains(d, webpage.OperatorDoor)})
	}
	listeners := listenOn(t, addresses...)
	startServer(t, Config{Listeners: listeners, TLS: &TLS{CertificateFile: cert, KeyFile: key}, Now: now})
	return listeners
}

// get sends a GET over HTTPS and returns the response's major version of HTTP and header.
func get(t *testing.T, url string, p certstest.Pair, change ...func(*tls.Config)) (version int, header http.Header, err error) {
	t.Helper()
	conf := &tls.Config{RootCAs: p.Pool(), MinVersion: tls.VersionTLS12}
	for _, f := range change {
		f(conf)
	}
	transport := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	return answer.ProtoMajor, answer.Header, answer.Body.Close()
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	p := certstest.New(t, time.Now().Add(time.Hour))
	listeners := secure(t, p, time.Now, []webpage.Door{webpage.PublicDoor, webpage.APIDoor}, []webpage.Door{webpage.OperatorDoor})
	base := listeners[0].url()
	for _, path := range []string{"/checkout/inv_x", "/api/invoices", "/dashboard/sign-in", "/docs"} {
		version, header, err := get(t, base+path, p)
		expect.OK(t, err)
		if got := header.Get("Strict-Transport-Security"); version != 2 || got != hsts {
			t.Errorf("%s: answered by HTTP/%d with Strict-Transport-Security %q", path, version, got)
		}
	}
	if _, _, err := get(t, base+"/api/invoices", p, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	if a := ask(t, http.MethodGet, listeners[1].url()+"/readyz", ""); a.header.Get("Strict-Transport-Security") != "" || strings.Contains(a.body, "certificate") {
		t.Errorf("the operator door answers %v %s", a.header, a.body)
	}
	// Plain HTTP on the port of HTTPS.
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listeners[0].Addr().String())
	expect.OK(t, err)
	defer func() { _ = conn.Close() }()
	expect.Success(t)(io.WriteString(conn, "GET /api/invoices HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "400") {
		t.Errorf("plain HTTP is answered %q, %v", line, err)
	}
}

// TestCertificateProblem starts with a certificate that has expired. The service runs, and reports the problem.
func TestCertificateProblem(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(time.Hour)
	p := certstest.New(t, end)
	listeners := secure(t, p, func() time.Time { return end.Add(time.Minute) }, []webpage.Door{webpage.PublicDoor, webpage.APIDoor}, []webpage.Door{webpage.OperatorDoor})
	a := ask(t, http.MethodGet, listeners[1].url()+"/readyz", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"certificate":"the certificate in use expired at `) {
		t.Errorf("/readyz answers %d %s", a.status, a.body)
	}
	text := ask(t, http.MethodGet, listeners[1].url()+"/metrics", "").body
	expiry := strconv.FormatFloat(float64(end.Unix()), 'g', -1, 64)
	for _, want := range []string{"quittance_tls_certificate_problem 1\n", "quittance_tls_certificate_expiry_timestamp_seconds " + expiry + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
}

// TestHTTPSWithoutCertificate listens with HTTPS without a certificate.
func TestHTTPSWithoutCertificate(t *testing.T) {
	t.Parallel()
	listeners := listenOn(t, Address{HTTPS: true})
	err := Run(t.Context(), Config{Listeners: listeners, Database: dbtest.Migrated(t), Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("it ended with %v", err)
	}
}

// The public door has the connections for all streams of open pages once the process may open
// enough files, whether or not it shares its address.
func TestDoorConnections(t *testing.T) {
	for _, c := range []struct{ accepted, public, api, operator int }{
		{64, 32, 24, 8},
		{468, 235, 175, 58},
		{16_384, 8192, 6144, 2048},
		{24_576, 16_384, 6144, 2048},
	} {
		got := doorConnections(c.accepted)
		if got[webpage.PublicDoor] != c.public || got[webpage.APIDoor] != c.api || got[webpage.OperatorDoor] != c.operator {
			t.Errorf("%d are divided as %v, want %+v", c.accepted, got, c)
		}
	}
}

// TestAuthorizationsNeedNoKey submits and reads an authorization at the public door of a service with
// an API that wants keys.
func TestAuthorizationsNeedNoKey(t *testing.T) {
	t.Parallel()
	base := startServer(t, Config{Access: Access{Mode: access.Live}}).url
	const body = `{"from":"0x00000000000000000000000000000000000000bb","to":"0x00000000000000000000000000000000000000aa","value":"1","validAfter":0,` +
		`"validBefore":2000000000,"nonce":"0x9b2e4fc5bd1a5b1c8d3a6b7e0f4c2d1e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d","signature":"0x01"}`
	const path = "/checkout/inv_06gzm3qz9dvav7zw89t2fgt6g8/authorization?wait=1"
	for method, text := range map[string]string{http.MethodPost: body, http.MethodGet: ""} {
		if a := ask(t, method, base+path, text); a.status != http.StatusNotFound || a.code != "not_found" {
			t.Errorf("%s: answered %d %s, want 404 not_found", method, a.status, a.body)
		}
	}
}

// listensOn is a listener that only has an address.
type listensOn struct {
	net.Listener
	address net.TCPAddr
}

func (l listensOn) Addr() net.Addr { return &l.address }

// TestPrivateListeners checks at which listeners /status and /metrics want no key.
func TestPrivateListeners(t *testing.T) {
	t.Parallel()
	behindProxy := limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		address string
		doors   []webpage.Door
		cfg     Config
		want    bool
	}{
		{"127.0.0.1", []webpage.Door{webpage.OperatorDoor}, Config{}, true},
		{"127.0.0.1", []webpage.Door{webpage.OperatorDoor}, Config{Proxies: behindProxy, Hosts: []string{"pay.example.com"}}, true},
		{"127.0.0.1", webpage.Doors, Config{}, true},
		{"127.0.0.1", webpage.Doors, Config{Proxies: behindProxy}, false},
		{"127.0.0.1", webpage.Doors, Config{Hosts: []string{"pay.example.com"}}, false},
		{"0.0.0.0", []webpage.Door{webpage.OperatorDoor}, Config{}, false},
		{"0.0.0.0", []webpage.Door{webpage.OperatorDoor}, Config{Proxies: behindProxy}, false},
		{"10.0.0.1", webpage.Doors, Config{}, false},
	} {
		s := &Server{cfg: c.cfg}
		l := &Listener{Listener: listensOn{address: net.TCPAddr{IP: net.ParseIP(c.address)}}, doors: c.doors}
		if got := s.isPrivate(l); got != c.want {
			t.Errorf("%s: private %t, want %t", fmt.Sprint(c.address, c.doors, c.cfg.Hosts, c.cfg.Proxies.Trusted), got, c.want)
		}
	}
}

// TestPrivateClientsHaveOneRule compares the limits at a door with the limits for payers. In both, a
// client with a private address has a share only if proxies are named.
func TestPrivateClientsHaveOneRule(t *testing.T) {
	for proxy, want := range map[string]int{"": 0, "10.9.0.0/16": 1} {
		s, _ := newObserved(slog.LevelInfo)
		if proxy != "" {
			s.cfg.Proxies = limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix(proxy)}, Header: limits.XForwardedFor}
		}
		l := newLimits(s.cfg, s.metrics)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "10.1.2.3:4567"
		s.observeRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			atDoor, asPayer := l.networks(limits.FromContext(r.Context())), limits.Networks(r.Context())
			if len(atDoor) != want || len(asPayer) != want {
				t.Errorf("behind %q, a private address has %d shares at the door and %d as a payer, want %d", proxy, len(atDoor), len(asPayer), want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}
