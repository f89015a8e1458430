package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/certstest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/webpage"
)

// limited is limits under test.
type limited struct {
	*requestLimits
	renderers
	now time.Time
}

func newLimited(cfg Config) *limited {
	logger := slog.New(slog.DiscardHandler)
	l := &limited{now: time.Unix(1_764_000_000, 0), renderers: renderers{
		api: api.New(api.Config{Reader: fakeReader{}, Now: time.Now, Logger: logger}), checkout: checkout.New(checkout.Config{Reader: fakeReader{}, Now: time.Now, Logger: logger}),
	}}
	cfg.Now = func() time.Time { return l.now }
	l.requestLimits = newLimits(cfg, newMetrics(prometheus.NewRegistry()))
	return l
}

// answerOf sends a request with a key and from an address.
func answerOf(h http.Handler, path, keyID, client string) *httptest.ResponseRecorder {
	ctx := access.WithPrincipal(context.Background(), access.Principal{KeyID: keyID})
	if client != "" {
		ctx = limits.NewContext(ctx, netip.MustParseAddr(client))
	}
	return serveTest(h, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
}

// wantLimit fails unless the answer has the status and the header RateLimit.
func wantLimit(t *testing.T, what string, w *httptest.ResponseRecorder, status int, limit string) {
	t.Helper()
	if got := w.Header().Get("RateLimit"); w.Code != status || got != limit {
		t.Errorf("%s: %d with RateLimit %s; want %d with %s", what, w.Code, got, status, limit)
	}
}

// unlimited returns a handler unchanged.
func unlimited(h http.Handler) http.Handler { return h }

var ok = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func TestOwnerLimit(t *testing.T) {
	t.Parallel()
	l := newLimited(Config{PerOwner: 2})
	h := l.perOwner(l.writeError, ok)
	for _, left := range []string{`"owner";r=3;t=2`, `"owner";r=2;t=1`, `"owner";r=1;t=1`, `"owner";r=0;t=1`} {
		wantLimit(t, "within the quota", answerOf(h, apiPath, "key_a", "198.51.100.1"), 200, left)
	}
	w := answerOf(h, apiPath, "key_a", "198.51.100.2")
	wantLimit(t, "beyond the quota", w, 429, `"owner";r=0;t=1`)
	wantErrorFor(t, w, apiPath, http.StatusTooManyRequests, "rate_limited")
	if got := w.Header(); got.Get("Retry-After") != "1" || got.Get("RateLimit-Policy") != `"owner";q=4;w=2` {
		t.Errorf("headers %v", got)
	}
	wantLimit(t, "another key", answerOf(h, apiPath, "key_b", "198.51.100.1"), 200, `"owner";r=3;t=2`)
	for i, left := range []string{`"owner";r=3;t=2`, `"owner";r=2;t=1`, `"owner";r=1;t=1`, `"owner";r=0;t=1`, `"owner";r=0;t=1`} {
		ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: fmt.Sprint("key_", i), MerchantID: "key_a"})
		wantLimit(t, "another key of one merchant", serveTest(h, httptest.NewRequestWithContext(ctx, http.MethodGet, apiPath, nil)), 200+i/4*229, left)
	}
	l.now = l.now.Add(500 * time.Millisecond)
	wantLimit(t, "after the interval", answerOf(h, apiPath, "key_a", "198.51.100.1"), 200, `"owner";r=0;t=1`)
	for range 10 {
		wantLimit(t, "no key", answerOf(h, apiPath, "", "198.51.100.1"), 200, "")
	}
}

// TestOwnerLimitOfRefusedRequests sends requests for which a key lacks the scope. They count,
// and are logged with the key's id.
func TestOwnerLimitOfRefusedRequests(t *testing.T) {
	t.Parallel()
	url, log, start := dbtest.SQLite(t), new(logtest.Buffer), time.Now()
	now := func() time.Time { return start } // so that no token comes back
	keys := access.NewKeyManager(access.KeyManagerConfig{Store: dbtest.Open(t, url), Mode: access.Live, Known: func(string) bool { return true }, Now: now, Rand: rand.Reader})
	r, key, err := keys.Create(t.Context(), access.Open(), access.KeyRequest{Name: "reader", Scopes: access.Read})
	expect.OK(t, err)
	base := startServer(t, Config{
		Database: url, PerOwner: 1, Access: Access{Mode: access.Live}, Now: now, Logger: slog.New(slog.NewJSONHandler(log, nil)),
	}).url
	for _, want := range []int{http.StatusForbidden, http.StatusForbidden, http.StatusTooManyRequests} {
		before := len(logLines(t, log))
		a := ask(t, http.MethodPost, base+"/api/keys", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key.Reveal()) })
		if line := awaitLine(t, log, before); a.status != want || line["key"] != r.ID {
			t.Errorf("answered %d, want %d; logged %v", a.status, want, line)
		}
	}
}

func TestAddressLimit(t *testing.T) {
	t.Parallel()
	l := newLimited(Config{PerAddress: 1})
	h := l.perAddress(l.writeError, ok)
	for range 10 {
		if w := answerOf(h, checkoutPath, "", "2001:db8:1:2::1"); w.Code != http.StatusOK {
			t.Fatalf("within the quota: %d", w.Code)
		}
	}
	w := answerOf(h, checkoutPath, "", "2001:db8:1:2:ffff::9")
	wantLimit(t, "another address of the network", w, 429, `"address";r=0;t=1`)
	wantErrorFor(t, w, checkoutPath, http.StatusTooManyRequests, "rate_limited")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("headers %v", w.Header())
	}
	wantLimit(t, "another network", answerOf(h, checkoutPath, "", "2001:db8:1:3::1"), 200, `"address";r=9;t=9`)
	for n := range 10*limits.SiteWeight - 11 {
		wantLimit(t, "a network of the site", answerOf(h, checkoutPath, "", fmt.Sprintf("2001:db8:1:%x::1", 100+n)), 200, `"address";r=9;t=9`)
	}
	wantLimit(t, "one network of the site too many", answerOf(h, checkoutPath, "", "2001:db8:1:99::1"), 429, `"address";r=0;t=1`)
	wantLimit(t, "another site", answerOf(h, checkoutPath, "", "2001:db8:2::1"), 200, `"address";r=9;t=9`)
	for _, shared := range []string{"127.0.0.1", "10.1.2.3", "::1", ""} {
		for range 11 {
			wantLimit(t, shared, answerOf(h, checkoutPath, "", shared), 200, "")
		}
	}
	proxied := newLimited(Config{PerAddress: 1, Proxies: limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}})
	h = proxied.perAddress(proxied.writeError, ok)
	for range 10 {
		answerOf(h, checkoutPath, "", "10.1.2.3")
	}
	wantLimit(t, "an address behind a proxy", answerOf(h, checkoutPath, "", "10.1.2.3"), 429, `"address";r=0;t=1`)
}

// TestInFlight keeps as many requests in flight as a door serves.
func TestInFlight(t *testing.T) {
	t.Parallel()
	l := newLimited(Config{})
	entered, leave := make(chan struct{}), make(chan struct{})
	h := l.capped(webpage.Route{Door: webpage.OperatorDoor, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}), Long: func(r *http.Request) bool { return r.URL.Query().Has("wait") }}, l.writeError)
	var group sync.WaitGroup
	for range maxInFlight[webpage.OperatorDoor] {
		group.Go(func() { answerOf(h, "/status", "", "") })
		<-entered
	}
	w := answerOf(h, "/status", "", "")
	wantErrorFor(t, w, "/status", http.StatusServiceUnavailable, "unavailable")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("headers %v", w.Header())
	}
	if w := answerOf(l.capped(webpage.Route{Door: webpage.APIDoor, Handler: ok}, l.writeError), apiPath, "", ""); w.Code != http.StatusOK {
		t.Errorf("another door answers %d", w.Code)
	}
	long := make(chan struct{})
	go func() {
		answerOf(h, "/status?wait=1", "", "")
		close(long)
	}()
	<-entered // although the door is full
	close(leave)
	<-long
	group.Wait()
	go func() { <-entered }()
	if w := answerOf(h, "/status", "", ""); w.Code != http.StatusOK {
		t.Errorf("after the others it answers %d", w.Code)
	}
}

const mib = 1 << 20

// TestPercentOf checks the percentages at the edges.
func TestPercentOf(t *testing.T) {
	for _, test := range []struct {
		live uint64
		want int
	}{
		{0, 400}, {16 * mib, 400}, {20 * mib, 320}, {32 * mib, 200}, {64*mib - 1, 100}, {64 * mib, 100}, {1024 * mib, 100},
	} {
		if got := percentOf(test.live); got != test.want {
			t.Errorf("%d live bytes: %d %%; want %d", test.live, got, test.want)
		}
	}
}

// TestKeep checks the setting and Go's heap goal, with few live bytes, some and many.
func TestKeep(t *testing.T) {
	limit := debug.SetMemoryLimit(math.MaxInt64)
	percent := debug.SetGCPercent(leastPercent)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})
	t.Setenv("GOGC", "100") // it restores the setting when the test ends, and fails in parallel tests
	stop := KeepHeap()
	reach(t, "with GOGC set", leastPercent, leastPercent)
	stop()
	expect.OK(t, os.Unsetenv("GOGC"))
	stop = KeepHeap()
	reach(t, "with few live bytes", mostPercent, mostPercent)
	some := make([]byte, 32*mib)
	reach(t, "with 32 MiB", 150, 200)
	if goal := read("/gc/heap/goal:bytes"); goal < 90*mib || goal > 110*mib {
		t.Errorf("with 32 MiB, the heap may grow to %d MiB; want about 96", goal/mib)
	}
	runtime.KeepAlive(some)
	many := make([]byte, 80*mib)
	reach(t, "with 80 MiB", leastPercent, leastPercent)
	runtime.KeepAlive(many)
	reach(t, "with few again", mostPercent, mostPercent)
	stop()
	reach(t, "after its end", leastPercent, leastPercent)
}

// reach collects until the percentage is the wanted one, which happens soon after a collection.
func reach(t *testing.T, when string, least, most uint64) {
	t.Helper()
	var got uint64
	for range 1000 {
		runtime.GC()
		if got = read("/gc/gogc:percent"); got >= least && got <= most {
			return
		}
	}
	t.Errorf("%s, after 1000 collections: %d %%; want %d to %d", when, got, least, most)
}

func read(name string) uint64 {
	sample := []runtimemetrics.Sample{{Name: name}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestAuditQuotaOfRoutes makes the request of each route with which a merchant's key can make a
// change: for a merchant that has used up its audit entries, and for another one. If the request
// writes an entry for the second, it is refused for the first, unless it only stops something.
func TestAuditQuotaOfRoutes(t *testing.T) {
	t.Parallel()
	table, _ := testTable(t)
	dbtest.EachURL(t, func(t *testing.T, url string) {
		w := newMatrixWorld(t, url)
		for _, merchant := range []string{"acme", "globex"} { // which the routes drop
			w.decode(w.call("POST /api/merchants/{id}/webhook/secret", merchant, "", w.key(merchant, access.Admin)), nil)
		}
		w.setAuditQuota("acme", 1)
		stops := []string{
			"DELETE /api/keys/{id}", "DELETE /api/merchants/{id}/webhook/secret", "POST /api/refunds/{id}/cancel", "POST /api/inbox/decisions/{id}/undo",
		}
		var writes, refused []string
		for _, r := range table {
			if r.Credential != webpage.KeyCredential || strings.HasPrefix(r.Pattern, "GET ") {
				continue
			}
			before := w.auditSeq()
			if a := w.call(r.Pattern, "globex", "", w.key("globex", access.Admin)); a.status >= http.StatusInternalServerError {
				t.Errorf("%s: %d %s", r.Pattern, a.status, a.body)
			}
			between := w.auditSeq()
			a := w.call(r.Pattern, "acme", "", w.key("acme", access.Admin))
			if between > before {
				writes = append(writes, r.Pattern)
			}
			if a.status == http.StatusTooManyRequests {
				refused = append(refused, r.Pattern)
			}
			if wrote := w.auditSeq() > between; wrote != slices.Contains(stops, r.Pattern) {
				t.Errorf("beyond the quota, %s writes an entry: %t, and answers %d", r.Pattern, wrote, a.status)
			}
		}
		for _, pattern := range writes {
			if slices.Contains(stops, pattern) == slices.Contains(refused, pattern) {
				t.Errorf("%s writes an entry, and is refused beyond the quota: %t", pattern, slices.Contains(refused, pattern))
			}
		}
		if len(writes) < 12 {
			t.Errorf("only these write entries: %q", writes)
		}
	})
}

func (w *matrixWorld) setAuditQuota(merchantID string, bytes int64) {
	w.t.Helper()
	expect.OK(w.t, w.store.Update(w.t.Context(), func(tx *db.Tx) error {
		return access.SetQuotas(context.WithoutCancel(w.t.Context()), tx, merchantID, bytes, 0)
	}))
}

// auditSeq returns the number of the newest entry of the audit log.
func (w *matrixWorld) auditSeq() int64 {
	w.t.Helper()
	head, err := access.NewReader(w.store).AuditHead(w.t.Context())
	expect.OK(w.t, err)
	return head.Seq
}

// TestInventedTokensAreLimited presents invented cookies and sign-in links from one client address, a
// new one each time. Beyond the limit they are refused without a database read. Another client's are
// not refused. They share the limit with wrong keys.
func TestInventedTokensAreLimited(t *testing.T) {
	t.Parallel()
	cfg, now := behindProxy(), time.Now()
	cfg.Access, cfg.Now = Access{Mode: access.Live}, func() time.Time { return now } // no token comes back
	base := startServer(t, cfg).url
	invented := func(prefix string, i int) string { return fmt.Sprintf("%s_%052d", prefix, i) }
	for client, send := range map[string]func(i int, client string) int{
		"203.0.113.1": func(i int, client string) int {
			return ask(t, "GET", base+"/dashboard", "", fromClient(client), func(r *http.Request) {
				r.AddCookie(&http.Cookie{Name: "quittance", Value: invented("qs", i)})
			}).status
		},
		"203.0.113.2": func(i int, client string) int {
			form := url.Values{"link": {invented("ql", i)}}.Encode()
			return ask(t, "POST", base+"/dashboard/sign-in", form, fromClient(client), func(r *http.Request) {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}).status
		},
	} {
		for i := range maxLookups {
			if status := send(i, client); status == http.StatusTooManyRequests {
				t.Fatalf("%s: token %d of %d is refused", client, i, maxLookups)
			}
		}
		if status := send(maxLookups, client); status != http.StatusTooManyRequests {
			t.Errorf("%s: beyond the limit the answer is %d", client, status)
		}
		if status := send(maxLookups, "198.51.100.1"); status == http.StatusTooManyRequests {
			t.Error("another client is refused")
		}
	}
}

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

// fakeKeys is a database of keys.
type fakeKeys struct {
	known   map[[access.HashSize]byte]access.Record
	reads   atomic.Int64
	failure error
	hold    chan struct{} // if not nil, reads wait until it is closed
}

func (f *fakeKeys) KeysVersion(context.Context) (int64, error) { return 1, nil }

func (f *fakeKeys) Key(context.Context, string) (access.Record, error) {
	return access.Record{}, db.ErrNotFound
}

func (f *fakeKeys) RecordKeyUses(context.Context, map[string]time.Time) error { return nil }

func (f *fakeKeys) KeyByHash(_ context.Context, hash [access.HashSize]byte) (access.Record, error) {
	f.reads.Add(1)
	if f.hold != nil {
		<-f.hold
	}
	if r, ok := f.known[hash]; ok {
		return r, f.failure
	}
	return access.Record{}, errors.Join(db.ErrNotFound, f.failure)
}

// guessed is an authenticator under guesses.
type guessed struct {
	*limited
	keys *fakeKeys
	auth limitedAuthenticator
}

func newGuessed() *guessed {
	g := &guessed{limited: newLimited(Config{}), keys: &fakeKeys{known: make(map[[access.HashSize]byte]access.Record)}}
	g.auth = limitedAuthenticator{access.NewAuthenticator(access.AuthenticatorConfig{
		Store: g.keys, Admit: g.requestLimits.guesses.admit, Mode: access.Live, Now: func() time.Time { return g.now }, Logger: slog.New(slog.DiscardHandler),
	}), g.requestLimits}
	return g
}

// newKey returns a key, which the database knows or not.
func (g *guessed) newKey(t *testing.T, known bool) string {
	t.Helper()
	k := expect.Must(access.NewKey(access.Live, rand.Reader))
	if known {
		g.keys.known[k.Hash()] = access.Record{ID: "key_1", Hash: k.Hash(), Scopes: access.Read}
	}
	return k.Reveal()
}

// try presents a key from an address.
func (g *guessed) try(t *testing.T, from, text string) error {
	t.Helper()
	_, err := g.auth.Authenticate(limits.NewContext(t.Context(), netip.MustParseAddr(from)), text)
	return err
}

// want presents a key from the guesser's address, and fails unless it gets the wanted error and number
// of database reads. A nil error means that the key is accepted.
func (g *guessed) want(t *testing.T, what, text string, reads int64, want error) {
	t.Helper()
	before := g.keys.reads.Load()
	err := g.try(t, guesser, text)
	if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) {
		err = errLimited
		if exceeded.RetryAfter != "1" {
			t.Errorf("%s: retry after %s", what, exceeded.RetryAfter)
		}
	}
	if got := g.keys.reads.Load() - before; !errors.Is(err, want) || got != reads {
		t.Errorf("%s: %v after %d reads; want %v after %d", what, err, got, want, reads)
	}
}

const guesser = "198.51.100.1"

var errLimited = errors.New("answered 429")

// TestLookups presents unknown keys up to the limit and beyond it.
func TestLookups(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	held, fresh, other := g.newKey(t, true), g.newKey(t, true), g.newKey(t, true)
	g.want(t, "a right key", held, 1, nil)
	for range 3 * maxLookups {
		g.want(t, "another right key", g.newKey(t, true), 1, nil)
		g.want(t, "no key", "", 0, access.ErrMissing)
	}
	g.keys.failure = errors.New("no database")
	g.want(t, "a failed lookup", fresh, 1, g.keys.failure)
	g.keys.failure = nil
	repeated := g.newKey(t, false)
	g.want(t, "a wrong key", repeated, 1, access.ErrUnknown)
	for range maxLookups - 1 {
		g.want(t, "the same wrong key", repeated, 0, access.ErrUnknown)
	}
	for range maxLookups - 1 {
		g.want(t, "a guess", g.newKey(t, false), 1, access.ErrUnknown)
	}
	guess := g.newKey(t, false)
	g.want(t, "a guess beyond the limit", guess, 0, errLimited)
	g.want(t, "a right key beyond the limit that was never read", fresh, 0, errLimited)
	g.want(t, "a right key that was read", held, 0, nil)
	g.want(t, "no key", "", 0, access.ErrMissing)
	for _, from := range []string{"198.51.100.2", "127.0.0.1"} {
		if err := g.try(t, from, other); err != nil {
			t.Errorf("a right key from %s: %v", from, err)
		}
	}
	g.now = g.now.Add(lookupWindow / maxLookups)
	g.want(t, "a guess after the interval", g.newKey(t, false), 1, access.ErrUnknown)
	g.want(t, "the next one", g.newKey(t, false), 0, errLimited)
	for range 2 * maxLookups {
		if err := g.try(t, "127.0.0.1", g.newKey(t, false)); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("a guess on this machine: %v", err)
		}
	}
}

// TestRepeatedKeys repeats a right key that was never read from the address of a guesser who uses up all lookups.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	guessAll := func() {
		for range maxLookups {
			g.requestLimits.guesses.lookups.TakeOf(netip.MustParseAddr(guesser))
		}
	}
	guessAll()
	for range maxRepeated + 5 { // right keys do not count
		right := g.newKey(t, true)
		g.want(t, "a right key", right, 0, errLimited)
		g.now = g.now.Add(retryPause - 1)
		guessAll()
		g.want(t, "the same before the pause", right, 0, errLimited)
		g.now = g.now.Add(1)
		guessAll()
		g.want(t, "the same after the pause", right, 1, nil)
	}
	guesses := make([]string, maxRepeated+1)
	for i := range guesses {
		guesses[i] = g.newKey(t, false)
		g.want(t, "a guess", guesses[i], 0, errLimited)
	}
	g.now = g.now.Add(retryPause)
	guessAll()
	for i, guess := range guesses {
		if i < maxRepeated {
			g.want(t, "a repeated guess", guess, 1, access.ErrUnknown)
		} else {
			g.want(t, "a repeated guess beyond the limit", guess, 0, errLimited)
		}
	}
}

// TestConcurrentGuesses presents keys while no lookup ends.
func TestConcurrentGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuessed()
		held := g.newKey(t, true)
		g.want(t, "a right key", held, 1, nil)
		g.keys.hold = make(chan struct{})
		var group sync.WaitGroup
		var unknown, exceeded atomic.Int64
		for range 10 * maxLookups {
			guess := g.newKey(t, false)
			group.Go(func() {
				if err := g.try(t, guesser, guess); errors.Is(err, access.ErrUnknown) {
					unknown.Add(1)
				} else if errors.As(err, new(*limits.ExceededError)) {
					exceeded.Add(1)
				}
			})
		}
		synctest.Wait()
		if reads := g.keys.reads.Load() - 1; reads != maxLookups || exceeded.Load() != 9*maxLookups {
			t.Errorf("%d lookups are in progress and %d keys were answered 429", reads, exceeded.Load())
		}
		g.want(t, "a right key that was read", held, 0, nil)
		close(g.keys.hold)
		group.Wait()
		if unknown.Load() != maxLookups {
			t.Errorf("%d keys were answered 401", unknown.Load())
		}
	})
}

// TestRefusals presents wrong keys that cost no lookup.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	mistyped := strings.Replace(g.newKey(t, true), "qk_live_", "qk_test_", 1)
	for range maxRefusals {
		g.want(t, "a mistyped key", mistyped, 0, access.ErrChecksum)
	}
	g.want(t, "a mistyped key beyond the limit", mistyped, 0, errLimited)
	right := g.newKey(t, true)
	g.want(t, "a right key that was never read", right, 1, nil)
	g.want(t, "a right key that was read", right, 0, nil)
	g.now = g.now.Add(refusalWindow / maxRefusals)
	g.want(t, "a mistyped key after the interval", mistyped, 0, access.ErrChecksum)
	g.want(t, "the next one", mistyped, 0, errLimited)
}

// TestRefusalsBeyondTheLimit expires a key after its address has used up its refusals. The error is a
// limit error and also a refusal, which ends streams of the key.
func TestRefusalsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	key, err := access.NewKey(access.Live, rand.Reader)
	expect.OK(t, err)
	g.keys.known[key.Hash()] = access.Record{ID: "key_1", Hash: key.Hash(), Scopes: access.Read, ExpiresAt: g.now.Add(time.Second)}
	g.want(t, "the key", key.Reveal(), 1, nil)
	g.now = g.now.Add(time.Second)
	for range maxRefusals {
		g.want(t, "the expired key", key.Reveal(), 0, access.ErrExpired)
	}
	err = g.try(t, guesser, key.Reveal())
	if !errors.As(err, new(*limits.ExceededError)) || !access.IsRefusal(err) {
		t.Errorf("beyond the limit the error is %v", err)
	}
}
