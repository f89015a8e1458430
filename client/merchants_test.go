package client_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestMerchantRequests sends the requests about merchants and the audit log.
func TestMerchantRequests(t *testing.T) {
	answers := map[string]string{
		"GET /api/merchants/acme/logo": "\x89PNG", "GET /api/merchants": `{"merchants":[{"id":"acme"},{"id":"beta"}]}`,
		"GET /api/audit": `{"entries":[{"seq":2},{"seq":1}]}`, "GET /api/approvals": `{"approvals":[{"id":"apr_1"}]}`,
		"GET /api/approvals/apr_1": `{"approval":{"id":"apr_1"},"votes":[],"approvers":[]}`, "GET /api/requests": `{"requests":[{"id":"log_1"}]}`,
	}
	var sent []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		sent = append(sent, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Content-Type"), body))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer := cmp.Or(answers[r.Method+" "+r.URL.Path], `{"merchant":{"id":"acme"}}`)
		w.Header().Set("Content-Type", map[bool]string{true: "application/json", false: "image/png"}[answer[0] == '{'])
		expect.Success(t)(io.WriteString(w, answer))
	}, true)
	name, ctx := "Acme", t.Context()
	_, created := c.CreateMerchant(ctx, apitypes.CreateMerchantRequest{ID: "acme", Name: name})
	_, updated := c.UpdateMerchant(ctx, "acme", apitypes.UpdateMerchantRequest{Name: &name})
	_, cleared := c.UpdateMerchant(ctx, "acme", apitypes.UpdateMerchantRequest{DefaultAddresses: map[string]apitypes.Address{}})
	_, set := c.SetMerchantLogo(ctx, "acme", []byte("\x89PNG\r\n\x1a\n"))
	logo, shown := c.MerchantLogo(ctx, "acme")
	dropped := c.DeleteMerchantLogo(ctx, "acme")
	m, read := c.Merchant(ctx, "acme")
	if _, err := c.Merchant(ctx, "beta"); err == nil {
		t.Error("another merchant's answer is accepted")
	}
	merchants, err1 := client.Collect(c.Merchants(ctx, 2), 9)
	entries, err2 := client.Collect(c.AuditEntries(ctx, client.AuditFilter{MerchantID: "acme", Action: "endpoint.update", Since: time.Unix(7, 0)}), 9)
	asked, err3 := client.Collect(c.Approvals(ctx, client.ApprovalFilter{MerchantID: "acme", State: apitypes.ApprovalRequested}), 9)
	one, err4 := c.Approval(ctx, "apr_1")
	requests, err5 := client.Collect(c.Requests(ctx, client.RequestFilter{KeyID: "key_1", Status: "failed", PageSize: 2}), 9)
	expect.OK(t, errors.Join(created, updated, cleared, set, shown, dropped, read, err1, err2, err3, err4, err5))
	if len(logo) == 0 || m.ID != "acme" || len(merchants) != 2 || len(entries) != 2 || entries[1].Seq != 1 || asked[0].ID != "apr_1" ||
		one.Approval.ID != "apr_1" || requests[0].ID != "log_1" {
		t.Errorf("read %q, %+v, %+v, %+v, %+v, %+v, %+v", logo, m, merchants, entries, asked, one, requests)
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
	expect.NoDiff(t, gocmp.Diff(want, sent), "requests")
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
	ctx := t.Context()
	got, err1 := c.Refund(ctx, "ref_1", true)
	_, err2 := c.CancelRefund(ctx, "ref_1")
	_, err3 := c.ApproveRefund(ctx, "ref_1", apitypes.ApproveRefundRequest{To: "0x1"})
	filter := client.RefundFilter{MerchantID: "acme", PaymentID: "pay_1", InvoiceID: "inv_1", TxHash: "0x2", Status: "pending", ChainKey: "base", PageSize: 5}
	refunds, err4 := client.Collect(c.Refunds(ctx, filter), 9)
	ofPayment, err5 := client.Collect(c.PaymentRefunds(ctx, "pay_1", "pending"), 9)
	claims, err6 := client.Collect(c.Claims(ctx, "acme", "pay_1"), 9)
	report, err7 := c.SettlementReport(ctx, client.ReportFilter{MerchantID: "acme", From: "2026-11-01", To: "2026-12-01", GroupBy: apitypes.ReportByDay, Timezone: "UTC"})
	expect.OK(t, errors.Join(err1, err2, err3, err4, err5, err6, err7))
	if got.Refund.ID != "ref_1" || refunds[0].ID != "ref_1" || ofPayment[0].ID != "ref_1" || claims[0].ID != "clm_1" || report.Timezone != "UTC" {
		t.Errorf("%+v, %+v, %+v, %+v, %+v", got, refunds, ofPayment, claims, report)
	}
	var queries []string
	for _, query := range append(e.queries[2:3:3], e.queries[5:]...) {
		queries = append(queries, query.Encode())
	}
	want := []string{
		"include=safe",
		"chainKey=base&invoiceId=inv_1&limit=5&merchantId=acme&paymentId=pay_1&status=pending&txHash=0x2", "status=pending",
		"merchantId=acme&paymentId=pay_1", "from=2026-11-01&groupBy=day&merchantId=acme&timezone=UTC&to=2026-12-01",
	}
	expect.NoDiff(t, gocmp.Diff(want, queries), "queries")
	sent := []string{
		`POST /api/payments/pay_1/refunds {"amount":"1"}`, `POST /api/payments/pay_1/refunds {"amount":"1"}`, "GET /api/refunds/ref_1",
		"POST /api/refunds/ref_1/cancel", `POST /api/refunds/ref_1/approve {"to":"0x1"}`, "GET /api/refunds", "GET /api/payments/pay_1/refunds",
		"GET /api/claims", "GET /api/reports/settlement",
	}
	expect.NoDiff(t, gocmp.Diff(sent, e.sent), "requests")
}

// TestInvoiceRequests sends the requests that change invoices, and those with filters.
func TestInvoiceRequests(t *testing.T) {
	inv := func() outcome { return answers(http.StatusOK, `{"invoice":{"id":"inv_1"}}`) }
	c, e, _ := with(t, inv(), answers(200, issued), inv(), answers(204, ""),
		answers(200, `{"invoices":[{"id":"inv_1"}]}`), answers(200, `{"payments":[{"id":"pay_1"}]}`))
	amount := "2"
	ctx, at := t.Context(), time.Unix(7, 0)
	_, err1 := c.UpdateInvoice(ctx, "inv_1", apitypes.UpdateInvoiceRequest{Amount: &amount}, "reference")
	issued, err2 := c.FinalizeInvoice(ctx, "inv_1")
	_, err3 := c.VoidInvoice(ctx, "inv_1")
	err4 := c.DeleteInvoice(ctx, "inv_1")
	_, err5 := client.Collect(c.Invoices(ctx, client.InvoiceFilter{
		Reference: "order-1", Metadata: map[string]string{"a b": "c"}, Exception: apitypes.ExceptionLate, Amount: "1", To: "0x1", CreatedAfter: at, CreatedBefore: at,
	}), 9)
	_, err6 := client.Collect(c.Payments(ctx, client.PaymentFilter{
		InvoiceID: "inv_1", TxHash: "0x2", From: "0x3", To: "0x4", Amount: "5", ConfirmedAfter: at, ConfirmedBefore: at,
	}), 9)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil || issued.CheckoutPage != "http://service.example/checkout/inv_1" {
		t.Errorf("%+v, %v", issued, err)
	}
	var queries []string
	for _, query := range e.queries[4:] {
		queries = append(queries, query.Encode())
	}
	want := []string{
		"amount=1&createdAfter=7&createdBefore=7&exception=late&metadata%5Ba+b%5D=c&reference=order-1&to=0x1",
		"amount=5&confirmedAfter=7&confirmedBefore=7&from=0x3&invoiceId=inv_1&to=0x4&txHash=0x2",
	}
	expect.NoDiff(t, gocmp.Diff(want, queries), "queries")
	sent := []string{
		`PATCH /api/invoices/inv_1 {"amount":"2","reference":null}`, "POST /api/invoices/inv_1/finalize", "POST /api/invoices/inv_1/void", "DELETE /api/invoices/inv_1",
		"GET /api/invoices", "GET /api/payments",
	}
	expect.NoDiff(t, gocmp.Diff(sent, e.sent), "requests")
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
