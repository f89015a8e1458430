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
	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/checkout"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
)

// routeList is the expected table of routes: the pattern, its door, the credential, and the scope of a
// key.
const routeList = `
DELETE /api/invoices/{id} api key invoices:write
DELETE /api/keys/{id} api key keys:write
DELETE /api/merchants/{id}/addresses/{address} api key keys:write
DELETE /api/merchants/{id}/logo api key keys:write
DELETE /api/merchants/{id}/webhook/secret api key webhooks:write
GET /api/audit api key events:read
GET /api/claims api key payments:read
GET /api/customers api key invoices:read
GET /api/events api key events:read
GET /api/events/stream api key events:read
GET /api/events/{id} api key events:read
GET /api/inbox api key payments:read
GET /api/inbox/counts api key payments:read
GET /api/inbox/decisions api key payments:read
GET /api/invoices api key invoices:read
GET /api/invoices/{id} api key invoices:read
GET /api/invoices/{id}/payments api key payments:read
GET /api/invoices/{id}/timeline api key invoices:read
GET /api/keys api key keys:write
GET /api/merchants api key invoices:read
GET /api/merchants/{id} api key invoices:read
GET /api/merchants/{id}/logo api key invoices:read
GET /api/merchants/{id}/webhook api key events:read
GET /api/operator/merchants api key events:read
GET /api/operator/status api key events:read
GET /api/payment-links api key invoices:read
GET /api/payment-links/{id} api key invoices:read
GET /api/payments api key payments:read
GET /api/payments/{id} api key payments:read
GET /api/payments/{id}/refunds api key payments:read
GET /api/refunds api key payments:read
GET /api/refunds/{id} api key payments:read
GET /api/reports/invoices api key invoices:read
GET /api/reports/settlement api key payments:read
GET /api/reports/statement api key payments:read
GET /api/reports/summary api key payments:read
GET /api/requests api key events:read
GET /checkout/static/* public none
GET /checkout/{id} public none
GET /checkout/{id}/authorization public none
GET /checkout/{id}/check public none
GET /checkout/{id}/events public none
GET /checkout/{id}/logo public none
GET /checkout/{id}/receipt public none
GET /checkout/{id}/status public none
GET /checkout/{id}/terms public none
GET /checkout/{id}/wallet public none
GET /dashboard api session
GET /dashboard/confirm api session
GET /dashboard/customers api session invoices:read
GET /dashboard/customers.csv api session invoices:read
GET /dashboard/customers/customer api session invoices:read
GET /dashboard/events api session events:read
GET /dashboard/events/redeliver api session events:redeliver
GET /dashboard/events/{id} api session events:read
GET /dashboard/events/{id}/json api session events:read
GET /dashboard/inbox api session payments:read
GET /dashboard/inbox/decisions api session payments:read
GET /dashboard/invoices api session invoices:read
GET /dashboard/invoices.csv api session invoices:read
GET /dashboard/invoices/new api session invoices:write
GET /dashboard/invoices/{id} api session invoices:read
GET /dashboard/invoices/{id}/edit api session invoices:write
GET /dashboard/invoices/{id}/json api session invoices:read
GET /dashboard/keys api session keys:write
GET /dashboard/keys/new api session keys:write
GET /dashboard/keys/{id} api session keys:write
GET /dashboard/links api session invoices:read
GET /dashboard/links.csv api session invoices:read
GET /dashboard/links/new api session invoices:write
GET /dashboard/links/{id} api session invoices:read
GET /dashboard/links/{id}/edit api session invoices:write
GET /dashboard/live api session
GET /dashboard/operator api operator session events:read
GET /dashboard/operator/audit api operator session events:read
GET /dashboard/operator/chains/{chainKey} api operator session events:read
GET /dashboard/operator/merchants api operator session events:read
GET /dashboard/payments api session payments:read
GET /dashboard/payments.csv api session payments:read
GET /dashboard/payments/{id} api session payments:read
GET /dashboard/payments/{id}/refund api session invoices:write
GET /dashboard/refunds api session payments:read
GET /dashboard/refunds.csv api session payments:read
GET /dashboard/refunds/{id} api session payments:read
GET /dashboard/refunds/{id}/safe.json api session payments:read
GET /dashboard/refunds/{id}/wallet api session payments:read
GET /dashboard/requests api session events:read
GET /dashboard/search api session invoices:read
GET /dashboard/search/suggestions api session invoices:read
GET /dashboard/sessions api session
GET /dashboard/settings api session invoices:read
GET /dashboard/settings/logo api session invoices:read
GET /dashboard/sign-in api none
GET /dashboard/statement api session payments:read
GET /dashboard/statement.csv api session payments:read
GET /dashboard/static/* api none
GET /dashboard/webhook api session events:read
GET /debug/pprof/ operator none
GET /debug/pprof/profile operator none
GET /debug/pprof/symbol operator none
GET /debug/pprof/trace operator none
GET /dev/world api none
GET /docs api none
GET /docs/redoc.standalone.js api none
GET /docs/reference.css api none
GET /docs/reference.js api none
GET /embed.js public none
GET /healthz operator none
GET /metrics operator operator
GET /openapi.json api none
GET /openapi.yaml api none
GET /pay/{merchant}/{slug} public none
GET /pay/{merchant}/{slug}/logo public none
GET /pay/{merchant}/{slug}/qr public none
GET /readyz operator optional
GET /refunds/{token} public none
GET /status operator operator
GET /x402/invoices/{id} public none
GET /x402/supported api key invoices:read
HEAD /api/webhooks/{provider} public signature
PATCH /api/invoices/{id} api key invoices:write
PATCH /api/merchants/{id} api key keys:write
PATCH /api/payment-links/{id} api key invoices:write
POST /api/customers/erase api key invoices:write
POST /api/events/redeliver api key events:redeliver
POST /api/events/{id}/redeliver api key events:redeliver
POST /api/inbox/decisions api key attribution:write
POST /api/inbox/decisions/{id}/undo api key attribution:write
POST /api/invoices api key invoices:write
POST /api/invoices/{id}/finalize api key invoices:write
POST /api/invoices/{id}/void api key invoices:write
POST /api/keys api key keys:write
POST /api/keys/{id}/rotate api key keys:write
POST /api/merchants api key keys:write
POST /api/merchants/{id}/webhook/ping api key webhooks:write
POST /api/merchants/{id}/webhook/secret api key webhooks:write
POST /api/merchants/{id}/webhook/secret/promote api key webhooks:write
POST /api/operator/audit/verify api key events:read
POST /api/operator/chains/{chainKey}/rescan api key keys:write
POST /api/operator/chains/{chainKey}/resume api key keys:write
POST /api/payment-links api key invoices:write
POST /api/payments/{id}/attribution api key attribution:write
POST /api/payments/{id}/refunds api key invoices:write
POST /api/refunds/{id}/approve api key invoices:write
POST /api/refunds/{id}/cancel api key invoices:write
POST /api/refunds/{id}/submissions api key invoices:write
POST /api/refunds/{id}/submissions/{submissionId}/withdraw api key invoices:write
POST /api/sign-in-links api key invoices:read
POST /api/webhooks/{provider} public signature
POST /checkout/{id}/authorization public none
POST /checkout/{id}/claim public none
POST /checkout/{id}/receipt public none
POST /checkout/{id}/sent public none
POST /checkout/{id}/test-payment public none
POST /dashboard/confirm api session
POST /dashboard/customers/erase api session invoices:write
POST /dashboard/events/redeliver api session events:redeliver
POST /dashboard/events/{id}/redeliver api session events:redeliver
POST /dashboard/filters/remove api session
POST /dashboard/filters/save api session
POST /dashboard/inbox/decide api session attribution:write
POST /dashboard/inbox/decisions/{id}/undo api session attribution:write
POST /dashboard/invoices/new api session invoices:write
POST /dashboard/invoices/{id}/delete api session invoices:write
POST /dashboard/invoices/{id}/edit api session invoices:write
POST /dashboard/invoices/{id}/finalize api session invoices:write
POST /dashboard/invoices/{id}/void api session invoices:write
POST /dashboard/keys api session keys:write
POST /dashboard/keys/{id}/link api session keys:write
POST /dashboard/keys/{id}/revoke api session keys:write
POST /dashboard/keys/{id}/rotate api session keys:write
POST /dashboard/language api session
POST /dashboard/links/new api session invoices:write
POST /dashboard/links/{id}/archive api session invoices:write
POST /dashboard/links/{id}/edit api session invoices:write
POST /dashboard/operator/audit/verify api operator session events:read
POST /dashboard/operator/chains/{chainKey}/rescan api operator session keys:write
POST /dashboard/operator/chains/{chainKey}/resume api operator session keys:write
POST /dashboard/payments/{id}/attribute api session attribution:write
POST /dashboard/payments/{id}/refund api session invoices:write
POST /dashboard/refunds/{id}/approve api session invoices:write
POST /dashboard/refunds/{id}/cancel api session invoices:write
POST /dashboard/refunds/{id}/submissions api session invoices:write
POST /dashboard/refunds/{id}/submissions/{submission}/transaction api session invoices:write
POST /dashboard/refunds/{id}/submissions/{submission}/withdraw api session invoices:write
POST /dashboard/sessions/{id}/end api session
POST /dashboard/settings api session keys:write
POST /dashboard/settings/addresses api session keys:write
POST /dashboard/settings/logo api session keys:write
POST /dashboard/settings/logo/remove api session keys:write
POST /dashboard/sign-in api none
POST /dashboard/sign-out api session
POST /dashboard/webhook api session webhooks:write
POST /dashboard/webhook/ping api session webhooks:write
POST /dashboard/webhook/secret api session webhooks:write
POST /dashboard/webhook/secret/drop api session webhooks:write
POST /dashboard/webhook/secret/promote api session webhooks:write
POST /pay/{merchant}/{slug} public none
POST /refunds/{token} public none
POST /x402/settle api key invoices:write
POST /x402/verify api key invoices:read
PUT /api/merchants/{id}/logo api key keys:write
PUT /api/merchants/{id}/webhook api key webhooks:write
PUT /api/refunds/{id}/submissions/{submissionId} api key invoices:write
`

// testTable returns the table of a server with all routes, and its renderers of errors.
func testTable(t *testing.T) ([]route, renderers) {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	listeners := threeDoors(t)
	t.Cleanup(func() {
		if err := closeAll(listeners); err != nil {
			t.Error(err)
		}
	})
	s, err := newServer(Config{Listeners: listeners, Routes: map[string]http.Handler{"GET /dev/world": http.NotFoundHandler()}, Now: time.Now, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	rest := api.New(api.Config{Reader: fakeReader{}, Now: time.Now, Logger: logger})
	page := checkout.New(checkout.Config{
		Reader: fakeReader{}, Claims: noClaims{}, Reports: noReports{}, Refunds: refunds{}, Links: noLinks{}, Feed: noFeed{}, Mails: new(mailer.Mailer), PublicURL: "https://pay.example.com", Now: time.Now, Logger: logger,
		TestWallet: func(context.Context, invoice.Invoice) (string, error) { return "", errors.New("no wallet") },
	})
	s.sessions = new(access.SessionManager)
	board := s.buildDashboard(rest)
	return s.routes(rest, page, board), renderers{rest, page, board}
}

func TestRouteTable(t *testing.T) {
	t.Parallel()
	asset := regexp.MustCompile(`static/.*`)
	var got []string
	table, _ := testTable(t)
	for _, r := range table {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", asset.ReplaceAllString(r.pattern, "static/*"), r.door, r.credential, r.scope)))
		if (r.credential == keyCredential) != slices.Contains(access.AllScopes, r.scope) && (r.credential != sessionCredential && r.credential != operatorSession || r.scope != "" && !slices.Contains(access.AllScopes, r.scope)) {
			t.Errorf("%s wants the credential %s with the scope %q", r.pattern, r.credential, r.scope)
		}
		if !slices.Contains(Doors, r.door) {
			t.Errorf("%s belongs to the door %q", r.pattern, r.door)
		}
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(routeList), "\n")
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the list in this test (-) and the table (+):\n%s", diff)
	}
}

// TestRoutesOfOpenAPI compares the operations of openapi.yaml, with the scopes that they
// name, with the table.
func TestRoutesOfOpenAPI(t *testing.T) {
	t.Parallel()
	var spec struct {
		Paths map[string]map[string]struct {
			Security []map[string][]access.Scope `yaml:"security"`
		} `yaml:"paths"`
	}
	if err := yaml.Unmarshal(quittance.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
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
		isPayerPage := r.credential == noCredential && !strings.HasSuffix(r.pattern, "/authorization")
		if !strings.Contains(r.pattern, " /api/") && isPayerPage || !slices.Contains([]credential{noCredential, keyCredential, signatureCredential}, r.credential) {
			continue
		}
		text := r.pattern
		if r.credential == keyCredential {
			text += fmt.Sprintf(" [%s]", r.scope)
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
	if err := yaml.Unmarshal(quittance.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	for path, operations := range spec.Paths {
		for method, operation := range operations {
			if operation.Responses["403"] == nil && (method != "head" || !strings.HasPrefix(path, noticePath)) {
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
	for _, door := range Doors {
		rt := newRouter(table, []Door{door}, noMiddleware, unlimited, errs)
		for _, r := range table {
			method, path, _ := strings.Cut(r.pattern, " ")
			request, err := http.NewRequestWithContext(t.Context(), method, variable.ReplaceAllString(path, "x"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, pattern := rt.Handler(request); (pattern == r.pattern) != (door == r.door) {
				t.Errorf("the %s door takes %s by %q", door, r.pattern, pattern)
			}
		}
	}
}
