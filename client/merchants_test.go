package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestMerchantRequests sends the requests about merchants and the audit log.
func TestMerchantRequests(t *testing.T) {
	var sent []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
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
		expect.NoError(t, err)
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
		expect.NoError(t, err)
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

// TestRefundRequests sends the requests about refunds, claims and reports.
func TestRefundRequests(t *testing.T) {
	refund := func(status int) outcome {
		return answers(status, `{"refund":{"id":"ref_1"},"claimUrl":"/refunds/x?y"}`)
	}
	page := func() outcome { return answers(http.StatusOK, `{"refunds":[{"id":"ref_1"}]}`) }
	c, e, _ := with(t, problem(503, apitypes.CodeUnavailable), refund(http.StatusCreated), refund(200), refund(200), refund(200), page(), page(),
		answers(200, `{"claims":[{"id":"clm_1"}]}`), answers(200, `{"report":{"timezone":"UTC"}}`))
	prepared, err := c.PrepareRefund(t.Context(), "pay_1", apitypes.PrepareRefundRequest{Amount: "1"}, client.IdempotencyKey("return-1"))
	if err != nil || prepared.ClaimURL != "http://service.example/refunds/x?y" || e.keys[1] != "return-1" {
		t.Errorf("%+v, %v, keys %q", prepared, err, e.keys)
	}
	if got, err := c.Refund(t.Context(), "ref_1"); err != nil || got.Refund.ID != "ref_1" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.CancelRefund(t.Context(), "ref_1"); err != nil {
		t.Error(err)
	}
	if _, err := c.ApproveRefund(t.Context(), "ref_1", apitypes.ApproveRefundRequest{To: "0x1"}); err != nil {
		t.Error(err)
	}
	listed := 0
	filter := client.RefundFilter{MerchantID: "acme", PaymentID: "pay_1", InvoiceID: "inv_1", TxHash: "0x2", Status: "pending", ChainKey: "base", PageSize: 5}
	for r, err := range c.Refunds(t.Context(), filter) {
		if listed++; err != nil || r.ID != "ref_1" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	for r, err := range c.PaymentRefunds(t.Context(), "pay_1", "pending") {
		if listed++; err != nil || r.ID != "ref_1" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	for claim, err := range c.Claims(t.Context(), "acme", "pay_1") {
		if listed++; err != nil || claim.ID != "clm_1" {
			t.Errorf("%+v, %v", claim, err)
		}
	}
	report, err := c.SettlementReport(t.Context(), client.ReportFilter{MerchantID: "acme", From: "2026-11-01", To: "2026-12-01", GroupBy: apitypes.ReportByDay, Timezone: "UTC"})
	if err != nil || report.Timezone != "UTC" || listed != 3 {
		t.Errorf("listed %d; %+v, %v", listed, report, err)
	}
	var queries []string
	for _, query := range e.queries[5:] {
		queries = append(queries, query.Encode())
	}
	want := []string{
		"chainKey=base&invoiceId=inv_1&limit=5&merchantId=acme&paymentId=pay_1&status=pending&txHash=0x2", "status=pending",
		"merchantId=acme&paymentId=pay_1", "from=2026-11-01&groupBy=day&merchantId=acme&timezone=UTC&to=2026-12-01",
	}
	expect.NoDiff(t, cmp.Diff(want, queries), "queries")
	sent := []string{
		`POST /api/payments/pay_1/refunds {"amount":"1"}`, `POST /api/payments/pay_1/refunds {"amount":"1"}`, "GET /api/refunds/ref_1",
		"POST /api/refunds/ref_1/cancel", `POST /api/refunds/ref_1/approve {"to":"0x1"}`, "GET /api/refunds", "GET /api/payments/pay_1/refunds",
		"GET /api/claims", "GET /api/reports/settlement",
	}
	expect.NoDiff(t, cmp.Diff(sent, e.sent), "requests")
}

// TestInvoiceRequests sends the requests that change invoices, and those with filters.
func TestInvoiceRequests(t *testing.T) {
	inv := func() outcome { return answers(http.StatusOK, `{"invoice":{"id":"inv_1"}}`) }
	c, e, _ := with(t, inv(), answers(200, issued), inv(), answers(204, ""),
		answers(200, `{"invoices":[{"id":"inv_1"}]}`), answers(200, `{"payments":[{"id":"pay_1"}]}`))
	amount := "2"
	if _, err := c.UpdateInvoice(t.Context(), "inv_1", apitypes.UpdateInvoiceRequest{Amount: &amount}, "reference"); err != nil {
		t.Error(err)
	}
	if issued, err := c.FinalizeInvoice(t.Context(), "inv_1"); err != nil || issued.CheckoutPage != "http://service.example/checkout/inv_1" {
		t.Errorf("%+v, %v", issued, err)
	}
	if _, err := c.VoidInvoice(t.Context(), "inv_1"); err != nil {
		t.Error(err)
	}
	expect.NoError(t, c.DeleteInvoice(t.Context(), "inv_1"))
	at := time.Unix(7, 0)
	for _, err := range c.Invoices(t.Context(), client.InvoiceFilter{
		Reference: "order-1", Metadata: map[string]string{"a b": "c"}, Exception: apitypes.ExceptionLate, Amount: "1", To: "0x1", CreatedAfter: at, CreatedBefore: at,
	}) {
		expect.NoError(t, err)
	}
	for _, err := range c.Payments(t.Context(), client.PaymentFilter{
		InvoiceID: "inv_1", TxHash: "0x2", From: "0x3", To: "0x4", Amount: "5", ConfirmedAfter: at, ConfirmedBefore: at,
	}) {
		expect.NoError(t, err)
	}
	var queries []string
	for _, query := range e.queries[4:] {
		queries = append(queries, query.Encode())
	}
	want := []string{
		"amount=1&createdAfter=7&createdBefore=7&exception=late&metadata%5Ba+b%5D=c&reference=order-1&to=0x1",
		"amount=5&confirmedAfter=7&confirmedBefore=7&from=0x3&invoiceId=inv_1&to=0x4&txHash=0x2",
	}
	expect.NoDiff(t, cmp.Diff(want, queries), "queries")
	sent := []string{
		`PATCH /api/invoices/inv_1 {"amount":"2","reference":null}`, "POST /api/invoices/inv_1/finalize", "POST /api/invoices/inv_1/void", "DELETE /api/invoices/inv_1",
		"GET /api/invoices", "GET /api/payments",
	}
	expect.NoDiff(t, cmp.Diff(sent, e.sent), "requests")
}

// TestWritesThatAreRepeated loses the answers to a submission and an erasure. The retries have the same key.
func TestWritesThatAreRepeated(t *testing.T) {
	c, e, _ := with(t, breaks(io.ErrUnexpectedEOF), answers(http.StatusCreated, `{"submission":{"id":"sub_1","refundId":"ref_1"}}`),
		problem(503, apitypes.CodeUnavailable), answers(200, `{"erasure":{"id":"ers_1"}}`))
	if s, err := c.SubmitRefund(t.Context(), "ref_1", apitypes.SubmitRefundRequest{}); err != nil || s.ID != "sub_1" {
		t.Errorf("%+v, %v", s, err)
	}
	if erased, err := c.EraseCustomer(t.Context(), "acme", "c-77", client.IdempotencyKey("erase-c-77")); err != nil || erased.ID != "ers_1" {
		t.Errorf("%+v, %v", erased, err)
	}
	if len(e.keys) != 4 || e.keys[0] == "" || e.keys[0] != e.keys[1] || e.keys[2] != "erase-c-77" || e.keys[3] != "erase-c-77" {
		t.Errorf("the requests have the keys %q", e.keys)
	}
}
