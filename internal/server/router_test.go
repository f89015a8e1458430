package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance"

	"github.com/quittance/quittance/internal/test/expect"
)

func found(context.Context) error { return nil }

func TestUnknownPaths(t *testing.T) {
	h := testRoutes(t, io.Discard, found)
	for _, path := range []string{
		"/", "/api", "/api/", "/api/invoice", "/api/invoices/", "/api/invoices/a/b", "/api/webhooks", "/api/webhooks/", "/API/invoices", "/favicon.ico",
		"/checkout", "/checkout/", "/checkout/x/more", "/checkout/static/checkout.css",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			w := serveTest(h, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			wantErrorFor(t, w, path, http.StatusNotFound, "not_found")
		}
	}
}

// TestBrowserPaths expects pages for browsers where programs get a problem.
func TestBrowserPaths(t *testing.T) {
	base := startServer(t, Config{}).url
	for path, want := range map[string]struct {
		status   int
		location string
	}{
		"/": {http.StatusFound, "/dashboard"}, "/docs/": {http.StatusFound, "/docs"}, "/dashboard/sign-in/?next=%2Fx": {http.StatusFound, "/dashboard/sign-in?next=%2Fx"},
		"/checkout/inv_1/": {http.StatusFound, "/checkout/inv_1"}, "/nope": {status: http.StatusNotFound}, "/nope/": {status: http.StatusNotFound}, "/checkout": {status: http.StatusNotFound},
	} {
		a := ask(t, http.MethodGet, base+path, "", func(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") })
		isPage := strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || want.location != ""
		if a.status != want.status || a.header.Get("Location") != want.location || !isPage {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		if want.status == http.StatusNotFound && !strings.Contains(a.body, "href=\"/dashboard\"") {
			t.Errorf("%s leads nowhere: %s", path, a.body)
		}
		if a := ask(t, http.MethodGet, base+path, "", func(r *http.Request) { r.Header.Set("Accept", "application/json") }); a.status != http.StatusNotFound {
			t.Errorf("%s for a program: %d", path, a.status)
		}
	}
	if a := ask(t, http.MethodGet, base+"/api/nope", "", func(r *http.Request) { r.Header.Set("Accept", "text/html") }); a.code != "not_found" {
		t.Errorf("/api/nope: %d %s", a.status, a.body)
	}
}

// TestPathsWithASlash adds a slash to each path of openapi.yaml.
func TestPathsWithASlash(t *testing.T) {
	var document struct {
		Paths map[string]any `yaml:"paths"`
	}
	expect.OK(t, yaml.Unmarshal(quittance.OpenAPI, &document))
	h := testRoutes(t, io.Discard, found)
	for path := range document.Paths {
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x") + "/"
		for _, method := range methods {
			w := serveTest(h, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
			}
		}
	}
}

func TestWrongMethods(t *testing.T) {
	h := testRoutes(t, io.Discard, found)
	for path, allow := range map[string]string{
		"/api/invoices":                 "GET, HEAD, POST",
		"/api/invoices/inv_1":           "DELETE, GET, HEAD, PATCH",
		"/api/events/redeliver":         "POST",
		"/api/webhooks/circle":          "HEAD, POST",
		"/checkout/inv_1":               "GET, HEAD",
		"/checkout/inv_1/authorization": "GET, HEAD, POST",
		"/checkout/inv_1/test-payment":  "POST",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if strings.Contains(", "+allow+",", " "+method+",") {
				continue
			}
			w := serveTest(h, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: answered %d, Allow: %s; want 405, Allow: %s", method, path, w.Code, w.Header().Get("Allow"), allow)
			}
			if method != "HEAD" {
				wantErrorFor(t, w, path, http.StatusMethodNotAllowed, "method_not_allowed")
			}
		}
	}
}

func TestHead(t *testing.T) {
	base := startServer(t, Config{}).url
	for path, status := range map[string]int{
		"/api/invoices": 200, "/api/invoices/inv_x": 404, "/api/x": 404, "/x": 404, "/checkout/inv_x": 404, "/checkout/x/y": 404,
		"/healthz": 200, "/status": 200, "/metrics": 200,
	} {
		get := ask(t, http.MethodGet, base+path, "")
		head := ask(t, http.MethodHead, base+path, "")
		if get.status != status || head.status != status || head.body != "" {
			t.Errorf("%s: GET %d, HEAD %d with a body of %d bytes, want %d", path, get.status, head.status, len(head.body), status)
		}
		if length := head.header.Get("Content-Length"); path != "/metrics" && length != get.header.Get("Content-Length") {
			t.Errorf("%s: Content-Length is %s for GET and %s for HEAD", path, get.header.Get("Content-Length"), length)
		}
	}
}
