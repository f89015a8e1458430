package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answer is what came back, with a problem's code when it is one.
type answer struct {
	status int
	header http.Header
	body   string
	code   string
}

// ask sends a request, following no redirect.
func ask(t *testing.T, method, url, body string, change ...func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(r)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: string(text)}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		var problem struct{ Code string }
		if err := json.Unmarshal(text, &problem); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		a.code = problem.Code
	}
	return a
}

func TestRefusals(t *testing.T) {
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
	open, guarded := startServer(t, Config{}).url, startServer(t, Config{LoopbackHosts: true}).url
	for host, local := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LocalHost:1": true, "127.0.0.1": true, "127.9.8.7:80": true,
		"[::1]": true, "[::1]:8080": true, "::1": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"192.168.1.2": false, "0.0.0.0": false, "[::]:80": false, "xlocalhost": false,
	} {
		ofHost := func(r *http.Request) { r.Host = host }
		for _, path := range []string{"/api/invoices", "/healthz", "/metrics", "/checkout/x"} {
			if a := ask(t, http.MethodGet, guarded+path, "", ofHost); (a.status != http.StatusForbidden) != local || (a.code != "forbidden") != local {
				t.Errorf("%s on %q: %d %s; let in should be %t", path, host, a.status, a.code, local)
			}
			if a := ask(t, http.MethodGet, open+path, "", ofHost); a.status == http.StatusForbidden {
				t.Errorf("%s on %q is refused though any host may ask", path, host)
			}
		}
	}
	if isLoopback("") {
		t.Error("a request without a host is let in")
	}
}

// TestSeriesAreBounded asks much and expects little of it in the metrics.
func TestSeriesAreBounded(t *testing.T) {
	base := startServer(t, Config{LoopbackHosts: true}).url
	for _, path := range []string{"/a", "/b", "/api/c", "/api//d", "/api/invoices/inv_1", "/api/invoices/inv_2"} {
		ask(t, http.MethodGet, base+path, "")
		ask(t, http.MethodGet, base+path, "", func(r *http.Request) { r.Host = "evil.example" })
	}
	text := ask(t, http.MethodGet, base+"/metrics", "").body
	for _, want := range []string{
		`quittance_http_request_duration_seconds_count{route="/",status="404"} 2`,
		`quittance_http_request_duration_seconds_count{route="/api/invoices/{id}",status="404"} 2`,
		`quittance_http_request_duration_seconds_count{route="",status="403"} 6`,
		"go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "inv_1") || strings.Contains(text, "evil") {
		t.Error("what a caller sends names a series")
	}
}

// FuzzIsClean holds isClean against what ServeMux does.
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
