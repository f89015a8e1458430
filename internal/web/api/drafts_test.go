package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestChangeInvoice(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	path := do(h, "POST", "/api/invoices", request()).Header().Get("Location")
	w := do(h, "PATCH", path, `{"merchantAddress":"`+address+`","amount":"7","currency":"EURC","chainKey":"arc","lineItems":[],"expiresAt":1764003601,
		"reference":null,"uniqueReference":false,"metadata":{"a":"1","b":null},"customer":{"id":"c","email":null},"description":"d","returnUrl":null}`,
		"Content-Type", "application/json")
	if got := decode[apitypes.InvoiceResponse](t, w, http.StatusOK).Invoice.ID; got != invoiceID(0) {
		t.Errorf("answered with %s", got)
	}
	text := func(s string) *string { return &s }
	c := b.changes[0]
	if number := c.Amount.String(); number != "7" || c.Merchant.IsZero() || *c.Currency != "EURC" || *c.ChainKey != "arc" || len(*c.LineItems) != 0 || c.ExpiresAt.Unix() != 1764003601 {
		t.Errorf("changes %+v", c)
	}
	want := invoice.DetailsChange{
		Reference: text(""), UniqueReference: new(bool), Metadata: map[string]*string{"a": text("1"), "b": nil},
		CustomerID: text("c"), CustomerEmail: text(""), Description: text("d"), ReturnURL: text(""),
	}
	expect.NoDiff(t, cmp.Diff(want, c.Details), "details")
	do(h, "PATCH", path, `{"metadata":null,"customer":null}`, "Content-Type", "application/json")
	want = invoice.DetailsChange{NoMetadata: true, CustomerID: text(""), CustomerEmail: text("")}
	expect.NoDiff(t, cmp.Diff(want, b.changes[1].Details), "removed")
	for field, body := range map[string]string{
		"amount": `{"amount":null}`, "expiresAt": `{"expiresAt":"1"}`, "lineItems": `{"lineItems":null}`,
		"reference": `{"reference":""}`, "customer": `{"customer":[]}`, "customer.id": `{"customer":{"id":1}}`, "metadata[a]": `{"metadata":{"a":1}}`,
		"uniqueReference": `{"uniqueReference":null}`, "currency": `{"currency":1}`, "chainKey": `{"chainKey":1}`, "merchantAddress": `{"merchantAddress":"0x1"}`,
	} {
		wantProblem(t, do(h, "PATCH", path, body, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_field", field)
	}
	if len(b.changes) != 2 {
		t.Errorf("%d changes were made, want 2", len(b.changes))
	}
	wantProblem(t, do(h, "PATCH", path, `[]`, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_json", "")
}

// TestFixedMembers sends an invoice back as it is, and with members that cannot be changed.
func TestFixedMembers(t *testing.T) {
	b := newListBackend(1) // paid
	h := newAPI(t, b)
	path := "/api/invoices/" + invoiceID(0)
	patch := func(body string) *httptest.ResponseRecorder {
		return do(h, "PATCH", path, body, "Content-Type", "application/json")
	}
	whole, err := json.Marshal(decode[map[string]any](t, do(h, "GET", path, ""), http.StatusOK)["invoice"])
	expect.OK(t, err)
	for _, same := range []string{string(whole), `{"status":"paid","draft":false,"exception":null,"unknown":1}`} {
		if w := patch(same); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", same, w.Code, w.Body)
		}
	}
	for field, value := range map[string]string{
		"id": `"` + invoiceID(1) + `"`, "merchantId": `"bean"`, "status": `"void"`, "createdAt": "1", "transferAmount": `"8"`, "amountRemaining": `"1"`,
		"remainingTransferAmount": `"1"`, "settledTxHash": "null", "settledAt": "1", "tolerance": `"1"`, "exception": `"late"`, "amountPaid": `"7"`,
		"amountRefunded": `"7"`, "draft": "true",
	} {
		wantProblem(t, patch(fmt.Sprintf(`{%q:%s}`, field, value)), http.StatusBadRequest, "invalid_field", field)
	}
	if len(b.changes) != 2 {
		t.Errorf("%d changes were made, want 2", len(b.changes))
	}
	wantProblem(t, do(h, "PATCH", "/api/invoices/"+invoiceID(7), `{"status":"void"}`, "Content-Type", "application/json"), http.StatusNotFound, "not_found", "")
}

func TestDraftMember(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	if w := do(h, "POST", "/api/invoices", with(`"draft":true`)); w.Code != http.StatusCreated || !b.requests[0].Draft.Unissued {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	wantProblem(t, do(h, "POST", "/api/invoices", with(`"draft":"yes"`)), http.StatusBadRequest, "invalid_field", "draft")
}

func TestFinalizeVoidAndDelete(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	path := do(h, "POST", "/api/invoices", request()).Header().Get("Location")
	finalized := decode[apitypes.CreateInvoiceResponse](t, do(h, "POST", path+"/finalize", ""), http.StatusOK)
	if finalized.ID != invoiceID(0) || finalized.OnChainInvoiceID == "" || finalized.CheckoutURL == "" || finalized.Invoice.ID != finalized.ID {
		t.Errorf("finalize answered %+v", finalized)
	}
	if got := decode[apitypes.InvoiceResponse](t, do(h, "POST", path+"/void", ""), http.StatusOK); got.Invoice.ID != finalized.ID {
		t.Errorf("void answered %+v", got)
	}
	if w := do(h, "DELETE", path, ""); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("delete answered %d %s", w.Code, w.Body)
	}
	for _, route := range []string{"POST /api/invoices/inv_x/finalize", "POST /api/invoices/inv_x/void", "DELETE /api/invoices/inv_x", "PATCH /api/invoices/inv_x"} {
		method, path, _ := strings.Cut(route, " ")
		wantProblem(t, do(h, method, path, "{}", "Content-Type", "application/json"), http.StatusNotFound, "not_found", "")
	}
	for _, test := range []struct {
		err                error
		method, path, code string
	}{
		{ledger.ErrNotDraft, "DELETE", path, "invoice_not_draft"},
		{ledger.ErrNotDraft, "PATCH", path, "invoice_not_draft"},
		{ledger.ErrVoid, "POST", path + "/finalize", "invoice_final"},
		{invoice.ErrFinal, "POST", path + "/void", "invoice_final"},
		{invoice.ErrCovered, "POST", path + "/void", "payment_seen"},
		{ledger.ErrUnread, "POST", path + "/void", "chain_behind"},
	} {
		b.err = fmt.Errorf("wrapped: %w", test.err)
		wantProblem(t, do(h, test.method, test.path, "{}", "Content-Type", "application/json"), http.StatusConflict, test.code, "")
	}
}
