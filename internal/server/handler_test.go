package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
)

// answer is a response. code is the code of a problem document.
type answer struct {
	status int
	header http.Header
	body   string
	code   string
}

// ask sends a request. It does not follow redirects.
func ask(t *testing.T, method, url, content string, change ...func(*http.Request)) answer {
	t.Helper()
	r := expect.Must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(content)))
	r.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(r)
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	response, err := transport.RoundTrip(r)
	expect.OK(t, err)
	defer func() { expect.NoError(t, response.Body.Close()) }()
	body := io.Reader(response.Body)
	if response.Header.Get("Content-Type") == "text/event-stream" {
		body = io.LimitReader(body, int64(len("retry: 2000\n"))) // it does not end
	}
	text, err := io.ReadAll(body)
	expect.OK(t, err)
	a := answer{status: response.StatusCode, header: response.Header, body: string(text)}
	if response.Header.Get("Content-Type") == "application/problem+json" && method != http.MethodHead {
		var problem struct{ Code string }
		if err := json.Unmarshal(text, &problem); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		a.code = problem.Code
	}
	return a
}

func TestErrorResponses(t *testing.T) {
	base := startServer(t, Config{}).url
	for _, path := range []string{"/healthz", "/readyz", "/status", "/metrics"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			a := ask(t, method, base+path, "")
			if a.status != http.StatusMethodNotAllowed || a.code != "method_not_allowed" || a.header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow: %s, %s", method, path, a.status, a.header.Get("Allow"), a.body)
			}
		}
		if a := ask(t, http.MethodGet, base+path, ""); a.status == http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %d", path, a.status)
		}
	}
	for _, path := range []string{
		"//", "//api/invoices", "/api//invoices", "/api/../x", "/api/./invoices", "/api/invoices/..", "/api", "/checkout", "/x", "//checkout/x",
		"/api/invoices//", "/api/invoices/../invoices", "/checkout/x/authorization//", "/checkout//x/authorization/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := ask(t, method, base, "{}", func(r *http.Request) { r.URL.Path = path })
			if a.status != http.StatusNotFound || a.code != "not_found" {
				t.Errorf("%s %s: %d %q %s", method, path, a.status, a.code, a.body)
			}
		}
	}
	if a := ask(t, http.MethodGet, base+"/api/invoices", ""); a.status != http.StatusOK {
		t.Errorf("a clean path: %d %s", a.status, a.body)
	}
}

func TestHosts(t *testing.T) {
	base := startServer(t, Config{Hosts: []string{"pay.example.com"}}).url
	for host, ours := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LocalHost:1": true, "127.0.0.1": true, "127.9.8.7:80": true,
		"[::1]": true, "[::1]:8080": true, "::1": true,
		"pay.example.com": true, "Pay.Example.com:443": true, "pay.example.com.": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"example.com": false, "x.pay.example.com": false, "pay.example.com.evil.example": false,
		"192.168.1.2": false, "0.0.0.0": false, "[::]:80": false, "xlocalhost": false,
	} {
		ofHost := func(r *http.Request) { r.Host = host }
		for _, path := range []string{"/api/invoices", "/healthz", "/metrics", "/checkout/x"} {
			if a := ask(t, http.MethodGet, base+path, "", ofHost); (a.status != http.StatusForbidden) != ours || (a.code != "forbidden") != ours {
				t.Errorf("%s on %q: %d %s; allowed should be %t", path, host, a.status, a.code, ours)
			}
		}
		if a := ask(t, http.MethodPost, base+"/api/webhooks/circle", "{}", ofHost); a.status == http.StatusForbidden {
			t.Errorf("a provider's notice for %q is refused before its signature is checked", host)
		}
	}
}

// TestFormerPublicURL changes the public URL. Links to payers' pages at the former host lead to the
// new one. The former host serves no other page, and other hosts are not redirected.
func TestFormerPublicURL(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	start := func(host string) *running {
		t.Helper()
		return startServer(t, Config{Database: database, PublicURL: "https://" + host, Hosts: []string{host}})
	}
	start("old.example").end(t)
	base := start("new.example").url
	for path, want := range map[string]string{
		"/checkout/inv_1?lang=de": "https://new.example/checkout/inv_1?lang=de", "/pay/x": "https://new.example/pay/x", "/refunds/r": "https://new.example/refunds/r",
		"/api/invoices": "", "/dashboard": "", "/checkout/inv_1/authorization": "", "/checkout//x": "", "//evil.example/checkout/": "",
	} {
		for _, host := range []string{"old.example", "OLD.example:443", "evil.example"} {
			ofHost := func(r *http.Request) { r.Host = host }
			to, status := want, http.StatusTemporaryRedirect
			if host == "evil.example" || want == "" {
				to, status = "", http.StatusForbidden
			}
			if a := ask(t, http.MethodGet, base+path, "", ofHost); a.status != status || a.header.Get("Location") != to {
				t.Errorf("%s at %s: %d, %q; want %d, %q", path, host, a.status, a.header.Get("Location"), status, to)
			}
			if a := ask(t, http.MethodPost, base+path, "{}", ofHost); a.status != http.StatusForbidden {
				t.Errorf("POST %s at %s: %d", path, host, a.status)
			}
		}
	}
	for host, want := range map[string]int{"old.example": http.StatusNotFound, "evil.example": http.StatusForbidden} {
		ofHost := func(r *http.Request) { r.Host = host }
		if a := ask(t, http.MethodPost, base+"/mails/unknown-to-everybody-12", "List-Unsubscribe=One-Click", ofHost); a.status != want {
			t.Errorf("mails are stopped at %s: %d, want %d", host, a.status, want)
		}
	}
	if a := ask(t, http.MethodGet, base+"/checkout/inv_1", "", func(r *http.Request) { r.Host = "new.example" }); a.status != http.StatusNotFound {
		t.Errorf("at the new host: %d %s", a.status, a.body)
	}
}

// TestHostOfTheConnection allows requests for the connection's local address, and requests without a Host.
func TestHostOfTheConnection(t *testing.T) {
	g := newRequestFilter(nil, http.NewCrossOriginProtection(), api.New(api.Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}), nil, unlimited,
		func(*http.Request) webpage.Route { return webpage.Route{} }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	local := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8080}
	for host, ours := range map[string]bool{"10.1.2.3:8080": true, "10.1.2.3": true, "": true, "10.1.2.4": false, "a.example": false} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local), http.MethodGet, "/x", nil)
		r.Host = host
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if allowed := w.Code == http.StatusTeapot; allowed != ours {
			t.Errorf("host %q: %d; allowed should be %t", host, w.Code, ours)
		}
	}
}

// TestCrossOrigin sends every unsafe request of openapi.yaml, and others, as a browser
// does for a page of a foreign origin. Each is rejected before it has an effect. The
// same requests from the service's own pages and from programs are not.
func TestCrossOrigin(t *testing.T) {
	base := startServer(t, Config{
		Hosts: []string{"pay.example.com"}, Merchants: Merchants{AcceptAll: true},
		TestWallet: func(context.Context, invoice.Invoice) (string, error) {
			t.Error("a page of another origin paid")
			return "", nil
		},
	}).url
	headers := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	behindProxy := func(r *http.Request) { r.Host = "127.0.0.1:8080" }
	unsafe := unsafeRequests(t)
	unsafe = append(unsafe, [2]string{http.MethodPost, "/checkout/inv_1/test-payment"}, [2]string{http.MethodPost, "/checkout/x"},
		[2]string{http.MethodPost, "/"}, [2]string{http.MethodPut, "/status"}, [2]string{http.MethodPatch, "/api/invoices"})
	for _, request := range unsafe {
		method, path := request[0], request[1]
		for name, change := range map[string]func(*http.Request){
			"cross-site":      headers("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"),
			"same-site":       headers("Sec-Fetch-Site", "same-site", "Origin", "https://evil.example.com"),
			"an old browser":  headers("Origin", "https://evil.example"),
			"an opaque frame": headers("Origin", "null"),
		} {
			a := ask(t, method, base+path, "", change)
			if refused := a.status == http.StatusForbidden; refused == strings.HasPrefix(path, "/api/webhooks/") {
				t.Errorf("%s %s, %s: %d %s", method, path, name, a.status, a.body)
			}
		}
		if path == "/checkout/inv_1/test-payment" {
			continue // the requests below would pay
		}
		for name, change := range map[string]func(*http.Request){
			"a program":                   headers(),
			"our own page":                headers("Sec-Fetch-Site", "same-origin", "Origin", base),
			"our page, behind a proxy":    func(r *http.Request) { headers("Origin", "https://pay.example.com")(r); behindProxy(r) },
			"our page, an older browser":  headers("Origin", base),
			"typed into the address line": headers("Sec-Fetch-Site", "none"),
		} {
			if a := ask(t, method, base+path, "", change); a.status == http.StatusForbidden {
				t.Errorf("%s %s, %s: %d %s", method, path, name, a.status, a.body)
			}
		}
	}
}

// unsafeRequests returns the methods and paths of openapi.yaml with unsafe methods.
func unsafeRequests(t *testing.T) (all [][2]string) {
	t.Helper()
	raw := expect.Must(os.ReadFile(testdeps.Repo("openapi.yaml")))
	var spec struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	expect.OK(t, yaml.Unmarshal(raw, &spec))
	names := regexp.MustCompile(`\{\w+\}`)
	for path, methods := range spec.Paths {
		for method := range methods {
			switch method = strings.ToUpper(method); method {
			case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
				all = append(all, [2]string{method, names.ReplaceAllString(path, "x")})
			}
		}
	}
	if len(all) < 8 {
		t.Fatalf("openapi.yaml has only %v", all)
	}
	return all
}

// TestSeriesAreBounded expects one series per route, whatever paths are requested.
func TestSeriesAreBounded(t *testing.T) {
	base := startServer(t, Config{}).url
	for _, path := range []string{"/a", "/b", "/api/c", "/api//d", "/api/invoices/inv_1", "/api/invoices/inv_2"} {
		ask(t, http.MethodGet, base+path, "")
		ask(t, http.MethodGet, base+path, "", func(r *http.Request) { r.Host = "evil.example" })
	}
	ask(t, http.MethodPut, base+"/api/invoices/inv_3", "")
	ask(t, http.MethodDelete, base+"/api/events/redeliver", "")
	text := ask(t, http.MethodGet, base+"/metrics", "").body
	for _, want := range []string{
		`quittance_http_request_duration_seconds_count{route="/",status="404"} 2`,
		`quittance_http_request_duration_seconds_count{route="/api/",status="404"} 1`,
		`quittance_http_request_duration_seconds_count{route="/api/invoices/{id}",status="404"} 2`,
		`quittance_http_request_duration_seconds_count{route="/api/invoices/{id}",status="405"} 1`,
		`quittance_http_request_duration_seconds_count{route="/api/events/redeliver",status="405"} 1`,
		`quittance_http_request_duration_seconds_count{route="",status="403"} 6`,
		"go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "inv_1") || strings.Contains(text, "evil") {
		t.Error("a path of a request is a label")
	}
}

// FuzzIsClean compares isClean with ServeMux.
func FuzzIsClean(f *testing.F) {
	for _, path := range []string{"/", "//", "/a", "/a/", "/a//", "/a/./b", "/a/../b", "/..", "/%2e%2e/", "/a/.."} {
		f.Add(path)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	f.Fuzz(func(t *testing.T, path string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL.Path = "/" + strings.TrimPrefix(path, "/")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if taken := w.Code == http.StatusTeapot; taken != isClean(r.URL.EscapedPath()) {
			t.Errorf("%q: ServeMux answers %d, isClean says %t", r.URL.EscapedPath(), w.Code, !taken)
		}
	})
}

// TestVersions names versions of the interface in requests.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newMatrixWorld(t, dbtest.Migrated(t))
	key := w.key("acme", access.Admin)
	for _, c := range []struct {
		named  []string
		status int
	}{{nil, 200}, {[]string{"2026-11-22"}, 200}, {[]string{"2026-11-21"}, 400}, {[]string{""}, 400}, {[]string{"latest"}, 400}, {[]string{"2026-11-22", "2026-11-22"}, 400}} {
		a := ask(t, http.MethodGet, w.url+"/api/invoices", "", authorized(key), func(r *http.Request) { r.Header["Quittance-Version"] = c.named })
		if a.status != c.status || a.header.Get("Quittance-Version") != "2026-11-22" {
			t.Errorf("%q answers %d with the version %q", c.named, a.status, a.header.Get("Quittance-Version"))
		}
		if c.status == 400 && (a.code != "invalid_field" || !strings.Contains(a.body, `"field":"Quittance-Version"`) || !strings.Contains(a.body, "2026-11-22")) {
			t.Errorf("%q: %s", c.named, a.body)
		}
	}
	var made struct{ Key struct{ ID, Version string } }
	w.decode(w.call("POST /api/keys", "acme", "", key), &made)
	w.ids["acme"]["keys"] = made.Key.ID
	first := made.Key.Version
	w.decode(w.call("POST /api/keys/{id}/rotate", "acme", "", key), &made)
	if first != "2026-11-22" || made.Key.Version != first {
		t.Errorf("the key has version %q, rotated %q", first, made.Key.Version)
	}
	if a := w.call("GET /api/keys", "acme", "", key); strings.Count(a.body, `"version":"2026-11-22"`) < 3 {
		t.Errorf("the list of keys: %s", a.body)
	}
}
