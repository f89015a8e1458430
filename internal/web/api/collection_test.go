package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestIntegrationCollection creates invoices and drafts with a way of collection, and changes it in drafts.
func TestIntegrationCollection(t *testing.T) {
	store := dbtest.Open(t, dbtest.SQLite(t))
	local, _ := chain.Lookup(chain.Local)
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address{0xcc}, Decimals: 6}}
	local.DepositFactory = invoice.Address{0xfa}
	s := newIntegration(t, store, local)
	create := func(merchant, chainKey, members string) *httptest.ResponseRecorder {
		return do(s.handler, "POST", "/api/invoices", fmt.Sprintf(`{"merchantId":%q,"merchantAddress":%q,"amount":"4900000","currency":"USDC","chainKey":%q,"expiresAt":%d%s}`,
			merchant, address, chainKey, now+3600, members))
	}
	const deposit, direct, draft = `,"collection":"deposit"`, `,"collection":"direct"`, `,"draft":true`
	for name, c := range map[string]struct{ merchant, chainKey, members string }{
		"another value":                      {"acme", "local", `,"collection":"escrow"`},
		"an empty value":                     {"acme", "local", `,"collection":""`},
		"a number":                           {"acme", "local", `,"collection":1`},
		"another value in a draft":           {"acme", "local", `,"collection":"escrow"` + draft},
		"a chain without factory":            {"acme", "base", deposit},
		"a draft on such a chain":            {"acme", "base", deposit + draft},
		"the merchant's default on such one": {"collector", "base", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, create(c.merchant, c.chainKey, c.members), http.StatusBadRequest, "invalid_field", "collection")
		})
	}
	for name, c := range map[string]struct {
		merchant, chainKey, members string
		want                        apitypes.Collection
	}{
		"nothing":                             {"acme", "local", "", ""},
		"deposit":                             {"acme", "local", deposit, apitypes.CollectionDeposit},
		"the merchant's default":              {"collector", "local", "", apitypes.CollectionDeposit},
		"direct against the default":          {"collector", "local", direct, ""},
		"direct on a chain without factory":   {"collector", "base", direct, ""},
		"a draft":                             {"acme", "local", deposit + draft, apitypes.CollectionDeposit},
		"a draft with the merchant's default": {"collector", "local", draft, apitypes.CollectionDeposit},
	} {
		t.Run(name, func(t *testing.T) {
			inv := decode[apitypes.CreateInvoiceResponse](t, create(c.merchant, c.chainKey, c.members), http.StatusCreated).Invoice
			check := func(open bool) {
				t.Helper()
				deposits := c.want == apitypes.CollectionDeposit // direct is left out
				if inv.Collection != c.want || (inv.DepositAddress != "") != (deposits && open) || (inv.TransferAmount != "") != (!deposits && open) {
					t.Errorf("it is collected as %q, at %q, by the amount %q", inv.Collection, inv.DepositAddress, inv.TransferAmount)
				}
			}
			check(inv.Status == apitypes.StatusOpen)
			if inv.Status == apitypes.StatusDraft {
				inv = decode[apitypes.InvoiceResponse](t, do(s.handler, "POST", "/api/invoices/"+inv.ID+"/finalize", ""), http.StatusOK).Invoice
				check(true)
			}
		})
	}

	made := decode[apitypes.CreateInvoiceResponse](t, create("acme", "local", draft), http.StatusCreated)
	path := "/api/invoices/" + made.ID
	patch := func(body string) apitypes.Invoice {
		t.Helper()
		return decode[apitypes.InvoiceResponse](t, do(s.handler, "PATCH", path, body, "Content-Type", "application/json"), http.StatusOK).Invoice
	}
	if got := patch(`{"collection":"deposit"}`); got.Collection != apitypes.CollectionDeposit || got.DepositAddress != "" {
		t.Errorf("the changed draft is %+v", got)
	}
	wantProblem(t, do(s.handler, "PATCH", path, `{"collection":"escrow"}`, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_field", "collection")
	wantProblem(t, do(s.handler, "PATCH", path, `{"chainKey":"base"}`, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_field", "collection")
	opened := decode[apitypes.InvoiceResponse](t, do(s.handler, "POST", path+"/finalize", ""), http.StatusOK).Invoice
	if got := patch(`{"collection":"deposit"}`); got.DepositAddress == "" || got.DepositAddress != opened.DepositAddress {
		t.Errorf("it was opened at %q and is at %q", opened.DepositAddress, got.DepositAddress)
	}
	wantProblem(t, do(s.handler, "PATCH", path, `{"collection":"direct"}`, "Content-Type", "application/json"), http.StatusConflict, "invoice_not_draft", "")
}
