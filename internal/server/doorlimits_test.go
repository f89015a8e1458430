package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/certs/certstest"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// behindProxy is a configuration with the tests as a proxy, so that they may send any client address (fromClient).
func behindProxy() Config {
	return Config{Proxies: limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Header: limits.XForwardedFor}}
}

// fromClient sends a request on behalf of a client address.
func fromClient(client string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(limits.XForwardedFor, client) }
}

// TestKeylessRequestsAreLimited sends requests without a key or a session to each route, and to paths that no route
// takes. They count for the client's address. A client that has used up its requests is answered 429.
func TestKeylessRequestsAreLimited(t *testing.T) {
	t.Parallel()
	cfg, now := behindProxy(), time.Now()
	cfg.PerAddress, cfg.Access, cfg.Now = 1, Access{Mode: access.Live}, func() time.Time { return now } // no token comes back
	base := startServer(t, cfg).url
	type asked struct{ method, path, host string }
	all := []asked{
		{"GET", "/nothing", ""}, {"GET", "/api/nothing", ""}, {"GET", "/checkout/", ""}, {"PUT", "/healthz", ""}, {"PUT", "/api/invoices/x", ""}, {"GET", "/api/events/redeliver", ""},
		{"GET", "/api//x", ""}, {"GET", "/api/keys", ""}, {"POST", "/x402/settle", ""}, {"GET", "/status", ""}, {"GET", "/api/invoices", "evil.example"},
	}
	table, _ := testTable(t)
	for _, r := range table {
		method, path, _ := strings.Cut(regexp.MustCompile(`\{\w+\}`).ReplaceAllString(r.Pattern, "x"), " ")
		if !strings.Contains(path, "/static/") {
			all = append(all, asked{method, path, ""})
		}
	}
	if len(all) < 180 {
		t.Fatalf("only %d", len(all))
	}
	send := func(a asked, client string) answer {
		return ask(t, a.method, base+a.path, "", fromClient(client), func(r *http.Request) { r.Host = a.host })
	}
	const spent = "203.0.113.1"
	for range int(addressWindow / time.Second) {
		send(all[0], spent)
	}
	for i, a := range all {
		fresh := netip.AddrFrom4([4]byte{198, 51, byte(100 + i/200), byte(i % 200)}).String()
		if got := send(a, fresh); got.status == http.StatusTooManyRequests || got.header.Get("RateLimit") != `"address";r=9;t=9` {
			t.Errorf("the first request of a client, %v, is answered %d with RateLimit %s", a, got.status, got.header.Get("RateLimit"))
		}
		if got := send(a, spent); got.status != http.StatusTooManyRequests {
			t.Errorf("%v is answered %d beyond the limit", a, got.status)
		}
	}
}

// TestSettingsOfHTTP2 connects to a door over HTTP/2. The server's settings announce how many
// requests a connection may have, and how much of each may be sent before it is read.
func TestSettingsOfHTTP2(t *testing.T) {
	t.Parallel()
	p := certstest.New(t, time.Now().Add(time.Hour))
	for _, l := range secure(t, p, time.Now, []webpage.Door{webpage.PublicDoor}, []webpage.Door{webpage.APIDoor}, []webpage.Door{webpage.OperatorDoor})[:2] {
		d := tls.Dialer{Config: &tls.Config{RootCAs: p.Pool(), MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}}
		conn, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		expect.OK(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		expect.Success(t)(io.WriteString(conn, http2.ClientPreface))
		frames := http2.NewFramer(conn, conn)
		expect.OK(t, frames.WriteSettings())
		frame, err := frames.ReadFrame()
		expect.OK(t, err)
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			t.Fatalf("the first frame is %v", frame)
		}
		for id, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: streamsOfConnection, http2.SettingInitialWindowSize: maxUnreadStream} {
			if got, _ := settings.Value(id); got != want {
				t.Errorf("the %s door says %v %d, want %d", l.doors[0], id, got, want)
			}
		}
	}
}

// TestRequestsOfAnAddress keeps requests of a client in flight until it is refused. It then has half
// of them, and others are served.
func TestRequestsOfAnAddress(t *testing.T) {
	t.Parallel()
	const most = 10
	l := newLimited(Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	h := l.entered(limits.NewShares[sharer]("requests", most), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("hold") {
			entered <- struct{}{}
			<-leave
		}
	}))
	ended := make(chan struct{})
	hold := func(client string) {
		go func() {
			answerOf(h, apiPath+"?hold", "", client)
			ended <- struct{}{}
		}()
		<-entered
	}
	for range most / 2 {
		hold("198.51.100.1")
	}
	wantBare(t, answerOf(h, apiPath, "", "198.51.100.1"), http.StatusTooManyRequests)
	if w := answerOf(h, apiPath, "", "203.0.113.9"); w.Code != http.StatusOK {
		t.Errorf("another client is answered %d", w.Code)
	}
	for range most / 2 {
		hold("127.0.0.1") // it may be a proxy's, and has no share
	}
	wantBare(t, answerOf(h, apiPath, "", "203.0.113.9"), http.StatusServiceUnavailable)
	close(leave)
	for range most {
		<-ended
	}
	if w := answerOf(h, apiPath, "", "198.51.100.1"); w.Code != http.StatusOK {
		t.Errorf("after the others it is answered %d", w.Code)
	}
}

// wantBare fails unless an answer has the status, Retry-After and no body.
func wantBare(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if h := w.Header(); w.Code != status || h.Get("Retry-After") != "1" || h.Get("Content-Length") != "0" || w.Body.Len() > 0 {
		t.Errorf("answered %d %v %s, want %d without a body", w.Code, h, w.Body, status)
	}
}

// TestInFlightShares keeps requests in flight, of one owner of keys or one client network, until it is
// refused. It then has half of them, and others are served.
func TestInFlightShares(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		first, other *http.Request
	}{
		"owners":   {requestOf("key_a", "198.51.100.1"), requestOf("key_b", "198.51.100.1")},
		"networks": {requestOf("", "198.51.100.1"), requestOf("", "198.51.100.2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(Config{})
			entered, leave, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			h := l.capped(webpage.Route{Door: webpage.OperatorDoor, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				entered <- struct{}{}
				<-leave
			})}, l.writeError)
			serve := func(r *http.Request) {
				go func() {
					serveTest(h, r)
					ended <- struct{}{}
				}()
				<-entered
			}
			for range maxInFlight[webpage.OperatorDoor] / 2 {
				serve(of.first)
			}
			w := serveTest(h, of.first)
			wantErrorFor(t, w, apiPath, http.StatusTooManyRequests, "rate_limited")
			if w.Header().Get("Retry-After") != "1" {
				t.Errorf("headers %v", w.Header())
			}
			serve(of.other)
			close(leave)
			for range maxInFlight[webpage.OperatorDoor]/2 + 1 {
				<-ended
			}
		})
	}
}

// requestOf is a request with a key and from an address.
func requestOf(keyID, client string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, apiPath, nil)
	ctx := access.WithPrincipal(r.Context(), access.Principal{KeyID: keyID})
	return r.WithContext(limits.NewContext(ctx, netip.MustParseAddr(client)))
}
