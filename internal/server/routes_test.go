package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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
	t.Cleanup(func() {
		if err := closeAll(listeners); err != nil {
			t.Error(err)
		}
	})
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
			request, err := http.NewRequestWithContext(t.Context(), method, variable.ReplaceAllString(path, "x"), nil)
			expect.OK(t, err)
			if _, pattern := rt.Handler(request); (pattern == r.Pattern) != (door == r.Door) {
				t.Errorf("the %s door takes %s by %q", door, r.Pattern, pattern)
			}
		}
	}
}
