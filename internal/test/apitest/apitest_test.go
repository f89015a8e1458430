package apitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance"

	"github.com/quittance/quittance/internal/test/expect"
)

const invoiceJSON = `{"id":"inv_06ajrm4k5xwqz8v3d0n7c2b9hr","merchantId":"acme",
	"merchantAddress":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","amount":"1","currency":"USDC","chainKey":"base",
	"status":"open","lineItems":[],"createdAt":1,"expiresAt":2,"amountPaid":"0","amountRefunded":"0"}`

const problemJSON = `{"type":"https://example.com/#x","title":"No","status":404,"detail":"None.","code":"not_found"}`

// TestSpecificationIsValid validates openapi.yaml with its examples, which takes too long
// for each test binary that loads it.
func TestSpecificationIsValid(t *testing.T) {
	expect.NoError(t, load(t).doc.Validate(t.Context()))
}

// TestComponentNamesAreUnique wants no name of a component twice, in whatever case: generators make
// types of components of several kinds, in one package.
func TestComponentNamesAreUnique(t *testing.T) {
	var document struct {
		Components map[string]map[string]any `yaml:"components"`
	}
	expect.OK(t, yaml.Unmarshal(quittance.OpenAPI, &document))
	kinds := make(map[string]string)
	for kind, components := range document.Components {
		for name := range components {
			folded := strings.ToLower(name)
			if other, taken := kinds[folded]; taken {
				t.Errorf("%s is a name in components/%s and in components/%s", name, kind, other)
			}
			kinds[folded] = kind
		}
	}
	if len(kinds) < 100 {
		t.Errorf("the document has %d components", len(kinds))
	}
}

// Without this test, a check that accepts everything would go unnoticed.
func TestCheckFindsWhatDiffers(t *testing.T) {
	for name, test := range map[string]struct {
		method, path string
		status       int
		mediaType    string
		body         string
		ok           bool
	}{
		"invoice":            {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":` + invoiceJSON + `}`, true},
		"host and query":     {"GET", "http://h.example:1/api/invoices?limit=1", 200, "application/json", `{"invoices":[` + invoiceJSON + `]}`, true},
		"other site's page":  {"GET", "/checkout/inv_1", 200, "text/html", "<html>", true},
		"head":               {"HEAD", "/api/invoices/inv_1", 200, "application/json", "", true},
		"problem":            {"GET", "/api/invoices/inv_1", 404, "application/problem+json", problemJSON, true},
		"unknown path":       {"GET", "/api/none", 404, "application/problem+json", problemJSON, true},
		"member missing":     {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":{"id":"inv_1"}}`, false},
		"amount a number":    {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":` + strings.Replace(invoiceJSON, `"1"`, `1`, 1) + `}`, false},
		"status unheard of":  {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":` + strings.Replace(invoiceJSON, `open`, `fine`, 1) + `}`, false},
		"null for a list":    {"GET", "/api/invoices", 200, "application/json", `{"invoices":null}`, false},
		"label":              {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":` + strings.Replace(invoiceJSON, `[]`, `[{"label":"caf\u00e9 \u05e9","amount":"1"}]`, 1) + `}`, true},
		"label in disguise":  {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":` + strings.Replace(invoiceJSON, `[]`, `[{"label":"\u202e","amount":"1"}]`, 1) + `}`, false},
		"label with control": {"GET", "/api/invoices/inv_1", 200, "application/json", `{"invoice":` + strings.Replace(invoiceJSON, `[]`, `[{"label":"a\u0085","amount":"1"}]`, 1) + `}`, false},
		"wrong media type":   {"GET", "/api/invoices/inv_1", 200, "text/plain", `{"invoice":` + invoiceJSON + `}`, false},
		"undocumented":       {"GET", "/api/invoices/inv_1", 418, "application/problem+json", problemJSON, false},
		"other status":       {"GET", "/api/invoices/inv_1", 500, "application/problem+json", problemJSON, false},
		"plain text problem": {"GET", "/api/none", 404, "text/plain", "404 page not found", false},
		"path that is not":   {"GET", "/api/none", 200, "application/json", "{}", false},
		"method that is not": {"DELETE", "/api/invoices", 404, "application/problem+json", problemJSON, false},
		"no location":        {"POST", "/api/invoices", 201, "application/json", `{"id":"inv_06ajrm4k5xwqz8v3d0n7c2b9hr","onChainInvoiceId":"0x` + strings.Repeat("0", 64) + `","checkoutUrl":"/","invoice":` + invoiceJSON + `}`, false},
		"field, other code":  {"GET", "/api/none", 404, "application/problem+json", strings.Replace(problemJSON, "{", `{"field":"a",`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {test.mediaType}}}
			r := httptest.NewRequest(test.method, test.path, nil)
			probe := &recorder{TB: t}
			load(t).report(probe, r, answer, []byte(test.body))
			if probe.failed == test.ok {
				t.Errorf("failed = %v: %s", probe.failed, probe.text)
			}
		})
	}
}

// TestCheckFindsHeaders checks responses with a header.
func TestCheckFindsHeaders(t *testing.T) {
	for name, ok := range map[string]bool{"X-Request-Id": true, "Quittance-Version": true, "Vary": true, "X-Other": false, "Trailer": false} {
		answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}, name: {"2026-11-22"}}}
		probe := &recorder{TB: t}
		load(t).report(probe, httptest.NewRequest(http.MethodGet, "/api/invoices/inv_1", nil), answer, []byte(`{"invoice":`+invoiceJSON+`}`))
		if probe.failed == ok {
			t.Errorf("%s: failed = %v: %s", name, probe.failed, probe.text)
		}
	}
}

type recorder struct {
	testing.TB
	failed bool
	text   string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed, r.text = true, fmt.Sprintf(format, args...)
}

func TestEvent(t *testing.T) {
	const envelope = `{"id":"evt_06ajrm4k5xwqz8v3d0n7c2b9hr","createdAt":1,"type":"TYPE","data":{"invoice":` + invoiceJSON + `}}`
	expect.NoError(t, Event(t, []byte(strings.Replace(envelope, "TYPE", "invoice.created", 1))))
	for _, body := range []string{
		strings.Replace(envelope, "TYPE", "invoice.paid", 1), // with more than the eight members
		strings.Replace(envelope, "TYPE", "invoice.other", 1),
		strings.Replace(envelope, `"id"`, `"TYPE":1,"id"`, 1),
		strings.Replace(envelope, `"TYPE","data"`, `"invoice.created","more":1,"data"`, 1),
		"[]",
	} {
		if err := Event(t, []byte(body)); err == nil {
			t.Errorf("passes: %s", body)
		}
	}
}
