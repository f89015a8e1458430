package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// with returns a request with further members. Values are JSON texts.
func with(members string) string { return strings.Replace(request(), "{", "{"+members+",", 1) }

func TestDetails(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	w := do(h, "POST", "/api/invoices", with(`"reference":"order-1","uniqueReference":true,"metadata":{"cart":"8821","note":"a\nb","empty":""},`+
		`"customer":{"id":"cus_1","email":"ada@example.com","name":"ignored"},"description":"Two espressos",`+
		`"returnUrl":"https://shop.example/thanks","cancelUrl":"https://shop.example/cart"`))
	want := apitypes.Invoice{
		Reference: "order-1", UniqueReference: true, Metadata: apitypes.Metadata{"cart": "8821", "note": "a\nb", "empty": ""},
		Customer: &apitypes.Customer{ID: "cus_1", Email: "ada@example.com"}, Description: "Two espressos",
		ReturnURL: "https://shop.example/thanks", CancelURL: "https://shop.example/cart",
	}
	check := func(got apitypes.Invoice) {
		t.Helper()
		got = apitypes.Invoice{
			Reference: got.Reference, UniqueReference: got.UniqueReference, Metadata: got.Metadata, Customer: got.Customer,
			Description: got.Description, ReturnURL: got.ReturnURL, CancelURL: got.CancelURL,
		}
		expect.NoDiff(t, cmp.Diff(want, got), "answer")
	}
	check(decode[apitypes.CreateInvoiceResponse](t, w, http.StatusCreated).Invoice)
	check(decode[apitypes.InvoiceResponse](t, do(h, "GET", w.Header().Get("Location"), ""), http.StatusOK).Invoice)
	check(decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices", ""), http.StatusOK).Invoices[0])

	for name, members := range map[string]string{
		"nothing": `"metadata":{},"customer":{}`, "not unique": `"uniqueReference":false`,
	} {
		w := do(h, "POST", "/api/invoices", with(members))
		if w.Code != http.StatusCreated || strings.Contains(w.Body.String(), "metadata") || strings.Contains(w.Body.String(), "customer") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestCreateRefusesDetails(t *testing.T) {
	var pairs []string
	for i := range 51 {
		pairs = append(pairs, fmt.Sprintf(`"k%d":"v"`, i))
	}
	var b backend
	h := newAPI(t, &b)
	for field, values := range map[string][]string{
		"reference":       {"1", "null", `""`, `"` + strings.Repeat("x", 201) + `"`, `"a\u0000"`},
		"uniqueReference": {"1", "null", `"true"`, "true"}, // the last needs a reference
		"description":     {"1", "null", `""`, `"` + strings.Repeat("x", 501) + `"`, `"a\u202e"`},
		"customer":        {"1", "null", `"cus_1"`, "[]"},
		"metadata":        {"1", "null", `"x"`, "[]", "{" + strings.Join(pairs, ",") + "}", `{"":"x"}`, `{"a[b]":"x"}`, `{"` + strings.Repeat("k", 41) + `":"x"}`},
		"returnUrl":       {"1", "null", `""`, `"http://shop.example"`, `"/thanks"`, `"https://shop.example@evil.example/"`, `"https://evil.example\\@shop.example/"`},
		"cancelUrl":       {"1", "null", `""`, `"javascript:alert(1)"`, `"https://shop.example/#x"`},
	} {
		for _, value := range values {
			t.Run(field+" "+value[:min(len(value), 30)], func(t *testing.T) {
				p := wantProblem(t, do(h, "POST", "/api/invoices", with(`"`+field+`":`+value)), http.StatusBadRequest, "invalid_field", field)
				if len(p.Detail) > 300 {
					t.Errorf("detail echoes %d characters", len(p.Detail))
				}
				if value == "null" && !strings.HasSuffix(p.Detail, "it is null.") {
					t.Errorf("detail is %q", p.Detail)
				}
			})
		}
	}
	for members, field := range map[string]string{
		`"customer":{"id":1}`:                                    "customer.id",
		`"customer":{"id":""}`:                                   "customer.id",
		`"customer":{"email":"x"}`:                               "customer.email",
		`"customer":{"email":null}`:                              "customer.email",
		`"metadata":{"cart":1}`:                                  "metadata[cart]",
		`"metadata":{"cart":null}`:                               "metadata[cart]",
		`"metadata":{"cart":["a"]}`:                              "metadata[cart]",
		`"metadata":{"cart":"\u0000"}`:                           "metadata[cart]",
		`"metadata":{"cart":"` + strings.Repeat("x", 501) + `"}`: "metadata[cart]",
	} {
		wantProblem(t, do(h, "POST", "/api/invoices", with(members)), http.StatusBadRequest, "invalid_field", field)
	}
	if len(b.requests) != 0 {
		t.Errorf("%d invoices were created", len(b.requests))
	}
}

func TestReferenceTaken(t *testing.T) {
	b := backend{err: fmt.Errorf("wrapped: %w", &ledger.ReferenceTakenError{InvoiceID: invoiceID(7)})}
	w := do(newAPI(t, &b), "POST", "/api/invoices", request())
	wantProblem(t, w, http.StatusConflict, "reference_taken", "")
	if p := decode[apitypes.Problem](t, w, http.StatusConflict); p.InvoiceID != invoiceID(7) {
		t.Errorf("the problem names %q", p.InvoiceID)
	}
}
