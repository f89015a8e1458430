package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
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
