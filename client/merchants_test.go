package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

// TestMerchantRequests sends the requests about merchants and the audit log.
func TestMerchantRequests(t *testing.T) {
	var sent []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = append(sent, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), body))
		w.Header().Set("Content-Type", "application/json")
		answer := `{"merchant":{"id":"acme"}}`
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
			return
		case strings.HasSuffix(r.URL.Path, "/logo") && r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "image/png")
			answer = "\x89PNG"
		case r.URL.Path == "/api/merchants" && r.Method == http.MethodGet:
			answer = `{"merchants":[{"id":"acme"},{"id":"beta"}]}`
		case r.URL.Path == "/api/audit":
			answer = `{"entries":[{"seq":2},{"seq":1}]}`
		case r.URL.Path == "/api/approvals":
			answer = `{"approvals":[{"id":"apr_1"}]}`
		case strings.HasPrefix(r.URL.Path, "/api/approvals/"):
			answer = `{"approval":{"id":"apr_1"},"votes":[],"approvers":[]}`
		case r.URL.Path == "/api/requests":
			answer = `{"requests":[{"id":"log_1"}]}`
		}
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}, true)
	name, ctx := "Acme", t.Context()
	_, created := c.CreateMerchant(ctx, apitypes.CreateMerchantRequest{ID: "acme", Name: name})
	_, updated := c.UpdateMerchant(ctx, "acme", apitypes.UpdateMerchantRequest{Name: &name})
	_, cleared := c.UpdateMerchant(ctx, "acme", apitypes.UpdateMerchantRequest{DefaultAddresses: map[string]apitypes.Address{}})
	_, set := c.SetMerchantLogo(ctx, "acme", []byte("\x89PNG\r\n\x1a\n"))
	logo, shown := c.MerchantLogo(ctx, "acme")
	dropped := c.DeleteMerchantLogo(ctx, "acme")
	m, read := c.Merchant(ctx, "acme")
	for _, err := range []error{created, updated, cleared, set, shown, dropped, read} {
		if err != nil {
			t.Error(err)
		}
	}
	if len(logo) == 0 {
		t.Error("the logo is empty")
	}
	if m.ID != "acme" {
		t.Errorf("read %+v", m)
	}
	if _, err := c.Merchant(ctx, "beta"); err == nil {
		t.Error("another merchant's answer is accepted")
	}
	listed := 0
	for _, err := range c.Merchants(ctx, 2) {
		if err != nil {
			t.Error(err)
		}
		listed++
	}
	for e, err := range c.AuditEntries(ctx, client.AuditFilter{MerchantID: "acme", Action: "endpoint.update", Since: time.Unix(7, 0)}) {
		if err != nil || e.Seq == 0 {
			t.Errorf("%+v, %v", e, err)
		}
		listed++
	}
	for a, err := range c.Approvals(ctx, client.ApprovalFilter{MerchantID: "acme", State: apitypes.ApprovalRequested}) {
		if err != nil || a.ID == "" {
			t.Errorf("%+v, %v", a, err)
		}
		listed++
	}
	if a, err := c.Approval(ctx, "apr_1"); err != nil || a.Approval.ID != "apr_1" {
		t.Errorf("%+v, %v", a, err)
	}
	for r, err := range c.Requests(ctx, client.RequestFilter{KeyID: "key_1", Status: "failed", PageSize: 2}) {
		if err != nil || r.ID == "" {
			t.Errorf("%+v, %v", r, err)
		}
		listed++
	}
	want := []string{
		`POST /api/merchants application/json {"id":"acme","name":"Acme"}`,
		`PATCH /api/merchants/acme application/json {"name":"Acme"}`,
		`PATCH /api/merchants/acme application/json {"defaultAddresses":{}}`,
		"PUT /api/merchants/acme/logo image/png \x89PNG\r\n\x1a\n",
		"GET /api/merchants/acme/logo  ", "DELETE /api/merchants/acme/logo  ",
		"GET /api/merchants/acme  ", "GET /api/merchants/beta  ", "GET /api/merchants?limit=2  ",
		"GET /api/audit?action=endpoint.update&merchantId=acme&since=7  ",
		"GET /api/approvals?merchantId=acme&state=requested  ", "GET /api/approvals/apr_1  ",
		"GET /api/requests?keyId=key_1&limit=2&status=failed  ",
	}
	if got := strings.Join(sent, "\n"); got != strings.Join(want, "\n") || listed != 6 {
		t.Errorf("listed %d, sent\n%s\nwant\n%s", listed, got, strings.Join(want, "\n"))
	}
}
