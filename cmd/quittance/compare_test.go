package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/expect"
)

// serveLists serves a state and lists of one element a page, as a service does. It accepts only reads with the key.
func serveLists(t *testing.T, status apitypes.ServiceStatus, invoices []apitypes.Invoice, payments []apitypes.Payment, refunds []apitypes.RefundRecord) string {
	t.Helper()
	page := func(r *http.Request, n int) (at int, next string) {
		at = len(r.URL.Query().Get("cursor"))
		if at+1 < n {
			next = strings.Repeat("x", at+1)
		}
		return at, next
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer the-key" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		var body any
		switch r.URL.Path {
		case "/api/operator/status":
			status.Stalled, status.Limits = []apitypes.StalledWork{}, []apitypes.LimitInForce{}
			status.Chains = append([]apitypes.ChainStatus{}, status.Chains...)
			body = status
		case "/api/invoices":
			at, next := page(r, len(invoices))
			body = apitypes.InvoiceList{Invoices: invoices[at : at+1], NextCursor: next}
		case "/api/payments":
			at, next := page(r, len(payments))
			body = apitypes.PaymentList{Payments: payments[at : at+1], NextCursor: next}
		case "/api/refunds":
			at, next := page(r, len(refunds))
			body = apitypes.RefundList{Refunds: refunds[at : at+1], NextCursor: next}
		}
		w.Header().Set("Content-Type", "application/json")
		expect.NoError(t, json.NewEncoder(w).Encode(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCompare compares lists that differ in each way: an object is in only one service, or in another state, and the
// age of the copy, of 1000, explains it or does not.
func TestCompare(t *testing.T) {
	t.Parallel()
	inv := func(id string, created int64, status apitypes.InvoiceStatus) apitypes.Invoice {
		return apitypes.Invoice{ID: id, CreatedAt: created, Status: status, Amount: "5", AmountPaid: "0", AmountRefunded: "0", Currency: "USDC"}
	}
	pay := func(id, invoiceID, refunded string) apitypes.Payment {
		return apitypes.Payment{ID: id, InvoiceID: invoiceID, Amount: "5", Currency: "USDC", AmountRefunded: refunded}
	}
	ref := func(id string, created int64, status apitypes.RefundStatus) apitypes.RefundRecord {
		return apitypes.RefundRecord{ID: id, PaymentID: "pay_a", CreatedAt: created, Prepared: true, Status: status, Amount: "5", Currency: "USDC"}
	}
	copied := apitypes.ServiceStatus{Isolated: true, CopiedAt: 1000}
	common := []apitypes.Invoice{inv("inv_a", 900, "paid"), inv("inv_b", 999, "open")}
	for name, c := range map[string]struct {
		status   apitypes.ServiceStatus
		live, in []apitypes.Invoice
		pl, pc   []apitypes.Payment
		rl, rc   []apitypes.RefundRecord
		code     int
		want     string
	}{
		"equal": {status: copied, live: common, in: common, pl: []apitypes.Payment{pay("pay_a", "inv_a", "")}, pc: []apitypes.Payment{pay("pay_a", "inv_a", "0")}, want: `"differences":[],"unexplained":0`},
		"newer": {
			status: copied, live: append([]apitypes.Invoice{inv("inv_c", 1001, "paid")}, common...), in: common,
			pl: []apitypes.Payment{pay("pay_a", "inv_c", "")}, pc: []apitypes.Payment{pay("pay_a", "", "")},
			rl: []apitypes.RefundRecord{ref("ref_a", 1001, "pending")}, rc: []apitypes.RefundRecord{ref("ref_b", 10, "expired")}, code: 1, want: `"unexplained":1`,
		},
		"only newer": {status: copied, live: append([]apitypes.Invoice{inv("inv_c", 1001, "paid")}, common...), in: common, want: `"reason":"newer than the copy"}],"unexplained":0`},
		"its second": {status: copied, live: append([]apitypes.Invoice{inv("inv_c", 1000, "paid")}, common...), in: common, want: `"reason":"newer than the copy"}],"unexplained":0`},
		"lost":       {status: copied, live: common, in: common[:1], pl: []apitypes.Payment{pay("pay_a", "inv_a", "2")}, pc: []apitypes.Payment{pay("pay_a", "inv_a", "1")}, code: 1, want: `"unexplained":2`},
		"state":      {status: copied, live: common[:1], in: []apitypes.Invoice{inv("inv_a", 900, "expired")}, code: 1, want: `"copy":"expired, amount 5, paid 0, refunded 0 USDC"}],"unexplained":1`},
		"no copy":    {status: apitypes.ServiceStatus{}, live: common, in: common, code: 2, want: "is no isolated copy"},
		"behind": {
			status: apitypes.ServiceStatus{Isolated: true, CopiedAt: 1000, Chains: []apitypes.ChainStatus{{ChainKey: "base", Ready: true, CatchUp: new(apitypes.BlockProgress)}}},
			live:   common, in: common, code: 2, want: "has not read the chain base",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orOne := func(all []apitypes.RefundRecord) []apitypes.RefundRecord {
				return append(all, ref("ref_same", 5, "confirmed"))
			}
			orPaid := func(all []apitypes.Payment) []apitypes.Payment { return append(all, pay("pay_same", "inv_a", "")) }
			live, in := serveLists(t, c.status, c.live, orPaid(c.pl), orOne(c.rl)), serveLists(t, c.status, c.in, orPaid(c.pc), orOne(c.rc))
			var out strings.Builder
			code := run(t.Context(), environment{stdout: &out, stderr: &out, key: "the-key"}, []string{"compare", "--url", live, "--copy", in, "--json"})
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("%d, want %d and %s: %s", code, c.code, c.want, &out)
			}
			out.Reset()
			if got := run(t.Context(), environment{stdout: &out, stderr: &out, key: "the-key"}, []string{"compare", "--url", live, "--copy", in}); got != code || code < 2 && !strings.Contains(out.String(), "of the live service: ") {
				t.Errorf("as a table: %d %s", got, &out)
			}
		})
	}
}
