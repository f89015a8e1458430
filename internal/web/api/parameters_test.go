package api_test

import (
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
)

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
	raw, err := os.ReadFile(testdeps.Repo("openapi.yaml"))
	expect.OK(t, err)
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
	raw, err := os.ReadFile(testdeps.Repo("openapi.yaml"))
	expect.OK(t, err)
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
