package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/webpage"
)

// testTable returns the table of a server with all routes, and its renderers of errors.
func testTable(t *testing.T) ([]webpage.Route, renderers) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	listeners := threeDoors(t)
	t.Cleanup(func() { expect.NoError(t, closeAll(listeners)) })
	s, err := newServer(Config{Listeners: listeners, Routes: map[string]http.Handler{"GET /dev/world": http.NotFoundHandler()}, Now: time.Now, Logger: logger})
	expect.OK(t, err)
	rest := api.New(api.Config{Reader: fakeReader{}, Now: time.Now, Logger: logger})
	page := checkout.New(checkout.Config{
		Reader: fakeReader{}, Claims: noClaims{}, Reports: noReports{}, Refunds: refunds{}, Links: noLinks{}, Feed: noFeed{}, Mails: new(mailer.Mailer), PublicURL: "https://pay.example.com", Now: time.Now, Logger: logger,
		TestWallet: func(context.Context, invoice.Invoice) (string, error) { return "", errors.New("no wallet") },
	})
	s.sessions = new(access.SessionManager)
	board := s.buildDashboard(rest)
	return s.routes(rest, page, board), renderers{rest, page, board}
}

// TestRouteTable wants a valid door, credential and scope for each route, and facts that fit them.
func TestRouteTable(t *testing.T) {
	t.Parallel()
	doors := map[webpage.Credential][]webpage.Door{
		webpage.NoCredential: webpage.Doors, webpage.SignatureCredential: {webpage.PublicDoor},
		webpage.KeyCredential: {webpage.APIDoor}, webpage.SessionCredential: {webpage.APIDoor}, webpage.OperatorSession: {webpage.APIDoor},
		webpage.OperatorCredential: {webpage.OperatorDoor}, webpage.OptionalCredential: {webpage.OperatorDoor},
	}
	table, _ := testTable(t)
	for _, r := range table {
		method, path, _ := strings.Cut(r.Pattern, " ")
		if !slices.Contains(methods, method) || !strings.HasPrefix(path, "/") {
			t.Errorf("%q is not the pattern of a route", r.Pattern)
		}
		if !slices.Contains(doors[r.Credential], r.Door) {
			t.Errorf("%s has the credential %q at the door %q", r.Pattern, r.Credential, r.Door)
		}
		switch r.Credential {
		case webpage.KeyCredential:
			if !slices.Contains(access.AllScopes, r.Scope) {
				t.Errorf("%s needs a key with the scope %q", r.Pattern, r.Scope)
			}
		case webpage.SessionCredential, webpage.OperatorSession:
			if r.Scope != "" && !slices.Contains(access.AllScopes, r.Scope) {
				t.Errorf("%s needs a session with the scope %q", r.Pattern, r.Scope)
			}
		default:
			if r.Scope != "" {
				t.Errorf("%s has the scope %q, and needs no key", r.Pattern, r.Scope)
			}
		}
		reads := method == http.MethodGet || method == http.MethodHead
		if r.Standby && !reads || (r.Idempotent || r.Isolated || r.MaxBody > 0) && reads {
			t.Errorf("%s has facts that do not fit its method", r.Pattern)
		}
		if r.MaxDrained > 0 && r.MaxDrained <= r.MaxBody {
			t.Errorf("%s is read up to %d bytes, and its limit is %d", r.Pattern, r.MaxDrained, r.MaxBody)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(r.Parameters)))) != len(r.Parameters) {
			t.Errorf("%s has a parameter twice: %s", r.Pattern, r.Parameters)
		}
	}
}

// TestRoutesOfOpenAPI compares the operations of openapi.yaml, with the scopes that they name, with the table.
func TestRoutesOfOpenAPI(t *testing.T) {
	t.Parallel()
	var spec struct {
		Paths map[string]map[string]struct {
			Security []map[string][]access.Scope `yaml:"security"`
		} `yaml:"paths"`
	}
	expect.OK(t, yaml.Unmarshal(quittance.OpenAPI, &spec))
	var documented, declared []string
	for path, operations := range spec.Paths {
		for method, operation := range operations {
			text := strings.ToUpper(method) + " " + path
			for _, s := range operation.Security {
				text += fmt.Sprint(" ", s["bearerKey"])
			}
			documented = append(documented, text)
		}
	}
	table, _ := testTable(t)
	for _, r := range table {
		isPayerPage := r.Credential == webpage.NoCredential && !strings.HasSuffix(r.Pattern, "/authorization")
		if !strings.Contains(r.Pattern, " /api/") && isPayerPage || !slices.Contains([]webpage.Credential{webpage.NoCredential, webpage.KeyCredential, webpage.SignatureCredential}, r.Credential) {
			continue
		}
		text := r.Pattern
		if r.Credential == webpage.KeyCredential {
			text += fmt.Sprintf(" [%s]", r.Scope)
		}
		declared = append(declared, text)
	}
	slices.Sort(documented)
	slices.Sort(declared)
	if diff := cmp.Diff(documented, declared); diff != "" {
		t.Errorf("openapi.yaml (-) and the table of routes (+):\n%s", diff)
	}
}

// TestRefusalsAreDocumented wants 403 at each operation: with a key, for its scope or its merchant;
// without one, for the host, or for a copy of the service that is read-only. Probes of notices are
// exempt from both. 401 is documented at operations that need a key.
func TestRefusalsAreDocumented(t *testing.T) {
	t.Parallel()
	var spec struct {
		Paths map[string]map[string]struct {
			Security  []map[string]any `yaml:"security"`
			Responses map[string]any   `yaml:"responses"`
		} `yaml:"paths"`
	}
	expect.OK(t, yaml.Unmarshal(quittance.OpenAPI, &spec))
	for path, operations := range spec.Paths {
		for method, operation := range operations {
			if operation.Responses["403"] == nil && (method != "head" || !strings.HasPrefix(path, "/api/webhooks/")) {
				t.Errorf("%s %s does not document 403", method, path)
			}
			if operation.Responses["401"] == nil && len(operation.Security) > 0 {
				t.Errorf("%s %s does not document 401", method, path)
			}
		}
	}
}

// TestRoutesOfDoors expects each route only at its door.
func TestRoutesOfDoors(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`\{\w+\}`)
	table, errs := testTable(t)
	for _, door := range webpage.Doors {
		rt := newRouter(table, []webpage.Door{door}, noMiddleware, unlimited, errs)
		for _, r := range table {
			method, path, _ := strings.Cut(r.Pattern, " ")
			request := expect.Must(http.NewRequestWithContext(t.Context(), method, variable.ReplaceAllString(path, "x"), nil))
			if _, pattern := rt.Handler(request); (pattern == r.Pattern) != (door == r.Door) {
				t.Errorf("the %s door takes %s by %q", door, r.Pattern, pattern)
			}
		}
	}
}

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

// noMiddleware returns a route's handler as it is.
func noMiddleware(r webpage.Route) http.Handler { return r.Handler }
