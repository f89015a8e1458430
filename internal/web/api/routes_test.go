package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/webhook"
)

func TestHead(t *testing.T) {
	server := httptest.NewServer(newAPI(t, newListBackend(1)))
	defer server.Close()
	for path, status := range map[string]int{"/api/invoices": 200, "/api/invoices/" + invoiceID(0): 200, "/api/payments": 200, "/api/invoices/inv_x": 404} {
		get, getLength := fetch(t, server, "GET", path)
		head, headLength := fetch(t, server, "HEAD", path)
		if get != status || head != status || headLength != getLength || headLength <= 0 {
			t.Errorf("%s: GET %d (%d bytes), HEAD %d (%d bytes), want %d", path, get, getLength, head, headLength, status)
		}
	}
}

// fetch returns a response's status and Content-Length.
func fetch(t *testing.T, server *httptest.Server, method, path string) (status int, length int64) {
	t.Helper()
	r := expect.Must(http.NewRequestWithContext(t.Context(), method, server.URL+path, nil))
	answer, err := server.Client().Do(r)
	expect.OK(t, err)
	expect.NoError(t, answer.Body.Close())
	return answer.StatusCode, answer.ContentLength
}

func TestHeaders(t *testing.T) {
	h := newAPI(t, newListBackend(1))
	for _, path := range []string{"/api/invoices", "/api/invoices/none"} {
		header := do(h, "GET", path, "").Header()
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

// Internal errors are logged, and hidden from the client.
func TestInternalErrorsAreHidden(t *testing.T) {
	const inside = "no route to db-7.internal"
	requests := map[string]string{ // with their bodies
		"POST /api/invoices": request(), "GET /api/invoices/inv_1": "", "GET /api/invoices": "", "GET /api/claims": "",
		"GET /api/payments": "", "GET /api/payments/pay_1": "", "POST /api/payments/pay_1/attribution": `{"invoiceId":"inv_1","by":"maria"}`,
		"POST /api/payments/pay_1/refunds": `{}`, "GET /api/refunds": "", "GET /api/refunds/ref_1": "", "POST /api/refunds/ref_1/cancel": "",
		"POST /api/refunds/ref_1/approve": `{"to":"0x00000000000000000000000000000000000000AA"}`,
		"GET /api/events":                 "", "GET /api/events?after=end": "", "GET /api/events/evt_1": "", "POST /api/events/evt_1/redeliver": "",
		"POST /api/events/redeliver": `{"failedOnly":true}`, "GET /api/merchants/acme/webhook": "",
		"PUT /api/merchants/acme/webhook": `{"url":"https://acme.example/"}`, "POST /api/merchants/acme/webhook/ping": "",
		"POST /api/merchants/acme/webhook/secret": "", "DELETE /api/merchants/acme/webhook/secret": "",
		"POST /api/merchants/acme/webhook/secret/promote": "", "POST /api/webhooks/circle": goodNotice,
	}
	for name, body := range requests {
		method, path, _ := strings.Cut(name, " ")
		for kind, test := range map[string]struct {
			backend *backend
			status  int
			code    string
		}{
			"error":   {&backend{err: errors.New(inside)}, http.StatusInternalServerError, "internal"},
			"timeout": {&backend{err: fmt.Errorf("%s: %w", inside, context.DeadlineExceeded)}, http.StatusServiceUnavailable, "unavailable"},
			"cancel":  {&backend{err: fmt.Errorf("%s: %w", inside, context.Canceled)}, http.StatusServiceUnavailable, "unavailable"},
			"away":    {&backend{err: fmt.Errorf("%s: %w", inside, db.ErrTimeout)}, http.StatusServiceUnavailable, "unavailable"},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				var log bytes.Buffer
				w := do(newLoggedAPI(t, test.backend, &log), method, path, body, webhook.HeaderProviderSignature, webhook.Sign(secret, testClock(), []byte(body)))
				wantProblem(t, w, test.status, test.code, "")
				if strings.Contains(w.Body.String(), "db-7") {
					t.Errorf("answered %s", w.Body)
				}
				if !strings.Contains(log.String(), inside) || !strings.Contains(log.String(), "level=ERROR") {
					t.Errorf("logged %q", log.String())
				}
			})
		}
	}
}

// Every code is documented, and has an error status.
func TestCodesAreDocumented(t *testing.T) {
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/errors.md")))
	for code, status := range api.Statuses() {
		if !code.Valid() || status < 400 {
			t.Errorf("%s answers %d", code, status)
		}
		if heading := fmt.Sprintf("\n## %s\n\n%d. ", code, status); !strings.Contains(string(text), heading) {
			t.Errorf("docs/errors.md lacks %q", heading)
		}
	}
	if got, want := len(api.Statuses()), strings.Count(string(text), "\n## "); got != want {
		t.Errorf("%d codes, and docs/errors.md explains %d", got, want)
	}
	if apitypes.ErrorCode("none").Valid() {
		t.Error("any code is valid")
	}
}

// TestCodesHaveStatuses wants a status for each code of openapi.yaml.
func TestCodesHaveStatuses(t *testing.T) {
	text := expect.Must(os.ReadFile(testdeps.Repo("openapi.yaml")))
	var spec struct {
		Components struct {
			Schemas struct {
				ErrorCode struct {
					Enum []apitypes.ErrorCode
				} `yaml:"ErrorCode"`
			}
		}
	}
	expect.OK(t, yaml.Unmarshal(text, &spec))
	codes := spec.Components.Schemas.ErrorCode.Enum
	for _, code := range codes {
		if api.Statuses()[code] == 0 {
			t.Errorf("%s has no status", code)
		}
	}
	if len(codes) != len(api.Statuses()) {
		t.Errorf("openapi.yaml lists %d codes, and %d have statuses", len(codes), len(api.Statuses()))
	}
}

// A query parameter that the operation does not have is refused and named, with the parameter that it may be meant for.
func TestUnknownParameters(t *testing.T) {
	h := newAPI(t, newListBackend(3))
	const end = " is not a parameter of this operation"
	for _, test := range []struct{ method, path, field, detail string }{
		{"GET", "invoices?limt=5", "limt", end + "; did you mean limit?"},
		{"GET", "invoices?merchant_id=acme", "merchant_id", end + "; did you mean merchantId?"},
		{"GET", "invoices?STATUS=open&limit=2", "STATUS", end + "; did you mean status?"},
		{"GET", "invoices?x=1&cursor=", "x", end + ", which has "},
		{"GET", "payments?chain=base", "chain", end + ", which has "},
		{"GET", "payments?chainKy=base", "chainKy", end + "; did you mean chainKey?"},
		{"GET", "events?deliver=failed", "deliver", end + "; did you mean delivery?"},
		{"GET", "invoices?=1", "query", " has a parameter without a name."},
		{"GET", "invoices?%ff%00=1", "?\x00", end},
		{"GET", "invoices?" + strings.Repeat("é", 5000) + "=1", strings.Repeat("é", 40), end},
		{"GET", "merchants?merchantId=acme", "merchantId", end + ", which has limit, cursor."},
		{"HEAD", "invoices?limt=5", "", ""},
		{"GET", "invoices/" + invoiceID(0) + "?expand=payments", "expand", end},
		{"POST", "invoices?dryRun=1", "dryRun", end + ", which has none."},
		{"POST", "events/redeliver?limit=1", "limit", end + ", which has none."},
		{"GET", "invoices?a=%zz", "query", " does not parse"},
		{"GET", "payments?limit=1&limit=1", "limit", " must occur once"},
	} {
		w := do(h, test.method, "/api/"+test.path, "")
		if test.method == "HEAD" {
			if w.Code != http.StatusBadRequest {
				t.Errorf("HEAD %s: answered %d", test.path, w.Code)
			}
			continue
		}
		if p := wantProblem(t, w, http.StatusBadRequest, "invalid_field", test.field); !strings.HasPrefix(p.Detail, test.field+test.detail) {
			t.Errorf("%.40s: detail is %.200q, want %.100q", test.path, p.Detail, test.field+test.detail)
		}
	}
	if w := notify(h, goodNotice); w.Code != http.StatusOK { // the provider's URL may have any query
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

// TestParametersOfOpenAPI compares the query parameters of openapi.yaml with those that routes accept.
func TestParametersOfOpenAPI(t *testing.T) {
	raw := expect.Must(os.ReadFile(testdeps.Repo("openapi.yaml")))
	var spec struct {
		Paths      map[string]map[string]struct{ Parameters []map[string]any }
		Components struct{ Parameters map[string]map[string]any }
	}
	expect.OK(t, yaml.Unmarshal(raw, &spec))
	documented := make(map[string][]string)
	for path, methods := range spec.Paths {
		for method, operation := range methods {
			for _, p := range operation.Parameters {
				if ref, ok := p["$ref"].(string); ok {
					p = spec.Components.Parameters[ref[strings.LastIndex(ref, "/")+1:]]
				}
				if p["in"] == "query" {
					pattern := strings.ToUpper(method) + " " + path
					name := p["name"].(string)
					if p["style"] == "deepObject" {
						name += "[key]"
					}
					documented[pattern] = append(documented[pattern], name)
				}
			}
			slices.Sort(documented[strings.ToUpper(method)+" "+path])
		}
	}
	for _, r := range api.New(api.Config{Now: testClock, Logger: slog.New(slog.DiscardHandler)}).Routes() {
		if diff := cmp.Diff(documented[r.Pattern], slices.Sorted(slices.Values(r.Parameters))); diff != "" {
			t.Errorf("%s: openapi.yaml (-) and the route (+):\n%s", r.Pattern, diff)
		}
	}
}

// TestRepeatedWritesOfOpenAPI expects openapi.yaml to have an Idempotency-Key for the routes that take one, and to explain
// what a repeated request of each other write does.
func TestRepeatedWritesOfOpenAPI(t *testing.T) {
	raw := expect.Must(os.ReadFile(testdeps.Repo("openapi.yaml")))
	var spec struct {
		Paths map[string]map[string]struct {
			Description string
			Parameters  []map[string]any
		}
	}
	expect.OK(t, yaml.Unmarshal(raw, &spec))
	routes := make(map[string]webpage.Route)
	for _, r := range api.New(api.Config{Now: testClock, Logger: slog.New(slog.DiscardHandler)}).Routes() {
		routes[r.Pattern] = r
	}
	writes := 0
	for path, methods := range spec.Paths {
		for method, operation := range methods {
			pattern := strings.ToUpper(method) + " " + path
			if method == "get" || method == "head" {
				continue
			}
			writes++
			keyed := slices.ContainsFunc(operation.Parameters, func(p map[string]any) bool { return p["name"] == "Idempotency-Key" })
			if keyed != routes[pattern].Idempotent {
				t.Errorf("%s takes an Idempotency-Key: %t in openapi.yaml, %t of the route", pattern, keyed, !keyed)
			}
			if !keyed && !regexp.MustCompile(`(?i)repeat|repetition`).MatchString(operation.Description) {
				t.Errorf("openapi.yaml does not explain what a repeated %s does", pattern)
			}
		}
	}
	if writes < 40 {
		t.Errorf("openapi.yaml has %d writes", writes)
	}
}
