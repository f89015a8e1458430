package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	account = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	txHash  = "0xABCDEF0000000000000000000000000000000000000000000000000000000001"
)

// Filters reach the store in the database's notation.
func TestFilters(t *testing.T) {
	b := newListBackend(3)
	h := newAPI(t, b)
	span := db.Span{From: time.Unix(100, 0).UTC(), To: time.Unix(200, 0).UTC()}
	unimportant := cmpopts.IgnoreFields(webhooks.EventFilter{}, "Limit")
	for query, want := range map[string]ledger.InvoiceFilter{
		"exception=late&status=paid":           {Exception: invoice.Late, Status: invoice.Paid},
		"amount=25000000&to=" + account:        {Amount: "25000000", To: strings.ToLower(account)},
		"createdAfter=100&createdBefore=200":   {Created: span},
		"createdBefore=0&merchantId=acme":      {Created: db.Span{To: time.Unix(0, 0).UTC()}, MerchantID: "acme"},
		"to=" + strings.ToLower(account) + "&": {To: strings.ToLower(account)},
	} {
		decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices?"+query, ""), http.StatusOK)
		expect.NoDiff(t, cmp.Diff(want, b.invoiceFilter, cmpopts.IgnoreFields(ledger.InvoiceFilter{}, "Limit")), "%s", query)
	}
	for query, want := range map[string]ledger.PaymentFilter{
		"invoiceId=" + invoiceID(1):               {InvoiceID: invoiceID(1)},
		"txHash=" + txHash + "&chainKey=base":     {TxHash: strings.ToLower(txHash), ChainKey: "base"},
		"from=" + account + "&to=" + account:      {From: strings.ToLower(account), To: strings.ToLower(account)},
		"amount=1&include=pending":                {Amount: "1", IncludePending: true},
		"confirmedAfter=100&confirmedBefore=200":  {Confirmed: span},
		"confirmedAfter=100&include=unattributed": {Confirmed: db.Span{From: span.From}, IncludeUnattributed: true},
	} {
		decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments?"+query, ""), http.StatusOK)
		expect.NoDiff(t, cmp.Diff(want, b.paymentFilter, cmpopts.IgnoreFields(ledger.PaymentFilter{}, "Limit")), "%s", query)
	}
	decode[apitypes.EventList](t, do(h, "GET", "/api/events?createdAfter=100&createdBefore=200", ""), http.StatusOK)
	expect.NoDiff(t, cmp.Diff(webhooks.EventFilter{Created: span}, b.eventFilter, unimportant, cmpopts.IgnoreUnexported(webhooks.EventFilter{})), "events")
}

func TestWrongFilters(t *testing.T) {
	h := newAPI(t, newListBackend(3))
	for query, field := range map[string]string{
		"invoices?exception=":                                    "exception",
		"invoices?exception=Late":                                "exception",
		"invoices?amount=":                                       "amount",
		"invoices?amount=1.5":                                    "amount",
		"invoices?amount=" + strings.Repeat("9", 79):             "amount",
		"invoices?to=0x12":                                       "to",
		"invoices?createdAfter=":                                 "createdAfter",
		"invoices?createdAfter=-1":                               "createdAfter",
		"invoices?createdAfter=1e9":                              "createdAfter",
		"invoices?createdAfter=253402300800":                     "createdAfter",
		"invoices?createdAfter=5&createdBefore=5":                "createdBefore",
		"payments?txHash=0x12":                                   "txHash",
		"payments?txHash=" + account:                             "txHash",
		"payments?from=" + strings.Replace(account, "A", "a", 1): "from", // the checksum is wrong
		"payments?confirmedAfter=9&confirmedBefore=8":            "confirmedBefore",
		"payments?createdAfter=9":                                "createdAfter",
		"events?createdBefore=soon":                              "createdBefore",
	} {
		wantProblem(t, do(h, "GET", "/api/"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}

// A page that ended because enough rows were examined has a cursor behind those rows.
func TestExaminedPages(t *testing.T) {
	b := newListBackend(3)
	b.examined = invoiceID(0)
	h := newAPI(t, b)
	p := decode[page](t, do(h, "GET", "/api/invoices?exception=late&limit=50", ""), http.StatusOK)
	if len(p.Invoices) != 3 || p.NextCursor == "" {
		t.Fatalf("%d invoices and the cursor %q", len(p.Invoices), p.NextCursor)
	}
	b.examined = ""
	last := decode[page](t, do(h, "GET", "/api/invoices?exception=late&cursor="+p.NextCursor, ""), http.StatusOK)
	if b.invoiceFilter.Before != invoiceID(0) || last.NextCursor != "" {
		t.Errorf("continued before %q; the next cursor is %q", b.invoiceFilter.Before, last.NextCursor)
	}
}
