package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// newListBackend returns a backend with n invoices and n payments of two merchants.
func newListBackend(n int) *backend {
	b := new(backend)
	for i := range n {
		merchant := []string{"acme", "bean"}[i%2]
		inv := invoice.Invoice{
			ID: invoiceID(i), MerchantID: merchant, Currency: "USDC", ChainKey: "base", Status: invoice.Open, CreatedAt: invoice.Unix(now),
			Terms: invoice.Terms{Merchant: invoice.Address{1}, Amount: invoice.NewAmount(7), ExpiresAt: invoice.Unix(now + 60)},
		}
		if i%3 == 0 {
			inv.Status, inv.SettledTx, inv.SettledAt = invoice.Paid, invoice.Hash{2}, invoice.Unix(now+30)
		}
		b.invoices = append(b.invoices, inv)
		p := ledger.PaymentRow{SeenID: number(i), Payment: invoice.Payment{
			ID: invoice.PrefixPayment + number(i), InvoiceID: inv.ID, MerchantID: merchant, Method: invoice.ByAmount,
			Status: invoice.Confirmed, ConfirmedAt: time.Unix(now, 0),
			Transfer: invoice.Transfer{
				ChainKey: []string{"base", "local"}[i/2%2], Currency: "USDC", Amount: invoice.NewAmount(7),
				From: invoice.Address{3}, To: invoice.Address{1}, TxHash: invoice.Hash{byte(i)}, Position: invoice.Position{BlockNumber: 9},
			},
		}}
		if i%4 == 3 {
			p.Status, p.ConfirmedAt = []invoice.PaymentStatus{invoice.Pending, invoice.Orphaned}[i/4%2], time.Time{}
		}
		if i%5 == 4 {
			p.InvoiceID, p.Method = "", ""
		}
		b.payments = append(b.payments, p)
	}
	return b
}

func TestGetInvoice(t *testing.T) {
	h := newAPI(t, newListBackend(2))
	paid := decode[apitypes.InvoiceResponse](t, do(h, "GET", "/api/invoices/"+invoiceID(0), ""), http.StatusOK).Invoice
	if paid.Status != apitypes.StatusPaid || paid.SettledAt != now+30 || paid.SettledTxHash == "" {
		t.Errorf("got %+v", paid)
	}
	open := decode[map[string]map[string]any](t, do(h, "GET", "/api/invoices/"+invoiceID(1), ""), http.StatusOK)["invoice"]
	for _, absent := range []string{"settledTxHash", "settledAt", "exception", "transferAmount", "onChainInvoiceId"} {
		if v, ok := open[absent]; ok {
			t.Errorf("an open invoice has %s: %v", absent, v)
		}
	}
	for _, id := range []string{invoiceID(2), "inv_", "x", "inv_%00", "inv_%ff", "pay_" + number(0), "INV_" + number(0), "%20", "inv_%2F.."} {
		wantProblem(t, do(h, "GET", "/api/invoices/"+id, ""), http.StatusNotFound, "not_found", "")
	}
}

func TestGetPayment(t *testing.T) {
	b := newListBackend(5)
	b.payments[0].Method, b.payments[0].AttributedBy, b.payments[0].AttributedAt = invoice.ByHand, "maria", time.Unix(now+5, 0)
	b.payments[0].Note = "she wrote to us"
	h := newAPI(t, b)
	id := func(i int) string { return invoice.PrefixPayment + number(i) }
	for i, want := range []apitypes.Payment{
		{InvoiceID: invoiceID(0), Status: apitypes.PaymentConfirmed, Attribution: &apitypes.Attribution{Method: apitypes.ByHand, By: "maria", At: now + 5, Note: "she wrote to us"}},
		3: {InvoiceID: invoiceID(3), Status: apitypes.PaymentPending, Attribution: &apitypes.Attribution{Method: apitypes.ByAmount}},
		4: {Status: apitypes.PaymentConfirmed},
	} {
		if want.Status == "" {
			continue
		}
		p := decode[apitypes.PaymentResponse](t, do(h, "GET", "/api/payments/"+id(i), ""), http.StatusOK).Payment
		if diff := cmp.Diff(want, apitypes.Payment{InvoiceID: p.InvoiceID, Status: p.Status, Attribution: p.Attribution}); diff != "" || p.ID != id(i) {
			t.Errorf("%s (-want +got):\n%s", p.ID, diff)
		}
	}
	if list := do(h, "GET", "/api/invoices/"+invoiceID(0)+"/payments", "").Body.String(); strings.Count(list, `"note":"she wrote to us"`) != 1 {
		t.Errorf("the payments of the invoice are %s", list)
	}
	for _, none := range []string{id(5), "pay_", "x", "pay_%00", "pay_%ff", invoiceID(0), "%20", "pay_%2F.."} {
		wantProblem(t, do(h, "GET", "/api/payments/"+none, ""), http.StatusNotFound, "not_found", "")
	}
}

func TestPaymentsShowRefunds(t *testing.T) {
	b := newListBackend(5)
	unknownID := invoice.PrefixPayment + number(4)
	b.refunded = map[string]invoice.Amount{unknownID: invoice.NewAmount(321)}
	h := newAPI(t, b)
	p := decode[apitypes.PaymentResponse](t, do(h, "GET", "/api/payments/"+unknownID, ""), http.StatusOK).Payment
	if p.AmountRefunded != "321" {
		t.Errorf("the payment shows a refund of %q", p.AmountRefunded)
	}
	for query, want := range map[string]string{"": "", "?include=unattributed": "321"} {
		for _, p := range decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments"+query, ""), http.StatusOK).Payments {
			if p.ID == unknownID && p.AmountRefunded != want || p.ID != unknownID && p.AmountRefunded != "" {
				t.Errorf("%q: payment %s shows a refund of %q", query, p.ID, p.AmountRefunded)
			}
		}
	}
}

func TestListPaymentsFilters(t *testing.T) {
	h := newAPI(t, newListBackend(8))
	for query, want := range map[string]string{
		"":                              "6 5 2 1 0",
		"?include=pending":              "7:orphaned 6:confirmed 5:confirmed 3:pending 2:confirmed 1:confirmed 0:confirmed",
		"?include=unattributed":         "6:confirmed 5:confirmed 4:confirmed:nobody 2:confirmed 1:confirmed 0:confirmed",
		"?include=unattributed,pending": "7:orphaned 6:confirmed 5:confirmed 4:confirmed:nobody 3:pending 2:confirmed 1:confirmed 0:confirmed",
		"?include=pending&include=unattributed&chainKey=base": "5:confirmed 4:confirmed:nobody 1:confirmed 0:confirmed",
		"?chainKey=base":                                  "5 1 0",
		"?merchantId=bean&chainKey=local":                 "",
		"?merchantId=bean&chainKey=local&include=pending": "7:orphaned 3:pending",
	} {
		list := decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments"+query, ""), http.StatusOK)
		got := ""
		for _, p := range list.Payments {
			for i := range 8 {
				if p.ID == invoice.PrefixPayment+number(i) {
					got += fmt.Sprintf(" %d", i)
				}
			}
			if p.Status != "" {
				got += ":" + string(p.Status)
			}
			if p.InvoiceID == "" {
				got += ":nobody"
			}
			if (p.Attribution != nil) != (p.Status != "" && p.InvoiceID != "") {
				t.Errorf("%s: payment %+v has attribution %+v", query, p, p.Attribution)
			}
			if confirmed := p.Status == "" || p.Status == apitypes.PaymentConfirmed; confirmed != (p.ConfirmedAt != 0) {
				t.Errorf("%s: payment %+v", query, p)
			}
		}
		if want != "" {
			want = " " + want
		}
		if got != want {
			t.Errorf("%s lists%s, want%s", query, got, want)
		}
	}
}

// A malformed merchant id has no objects, and is not looked up.
func TestListsOfUnknownMerchant(t *testing.T) {
	h := newAPI(t, &backend{err: errors.New("asked for nobody's list")})
	for _, id := range []string{"", "a%20b", "a%00", "%ff", strings.Repeat("m", invoice.MaxMerchantID+1), "caf%C3%A9"} {
		for _, list := range []string{"invoices", "payments"} {
			got := decode[map[string][]any](t, do(h, "GET", "/api/"+list+"?merchantId="+id, ""), http.StatusOK)
			expect.NoDiff(t, cmp.Diff(map[string][]any{list: {}}, got), "%s of %q", list, id)
		}
	}
	wantProblem(t, do(h, "GET", "/api/invoices?merchantId=&status=x", ""), http.StatusBadRequest, "invalid_status", "")
	wantProblem(t, do(h, "GET", "/api/payments?merchantId=&chainKey=x", ""), http.StatusBadRequest, "invalid_chain", "")
}

func TestListsRefuseParameters(t *testing.T) {
	h := newAPI(t, newListBackend(3))
	for _, test := range []struct{ path, code, field string }{
		{"invoices?status=", "invalid_status", ""},
		{"invoices?status=OPEN", "invalid_status", ""},
		{"invoices?status=unpaid", "invalid_status", ""},
		{"invoices?status=open%00", "invalid_status", ""},
		{"invoices?status=open&status=open", "invalid_status", ""},
		{"invoices?status=open&status=", "invalid_status", ""},
		{"payments?chainKey=", "invalid_chain", ""},
		{"payments?chainKey=dogechain", "invalid_chain", ""},
		{"payments?chainKey=ethereum", "invalid_chain", ""}, // built in, but not configured here
		{"payments?chainKey=base&chainKey=base", "invalid_chain", ""},
		{"payments?chainKey=base&chainKey=dogechain", "invalid_chain", ""},
		{"payments?include=", "invalid_field", "include"},
		{"payments?include=all", "invalid_field", "include"},
		{"payments?include=pending,", "invalid_field", "include"},
		{"payments?include=pending,%20unattributed", "invalid_field", "include"},
		{"payments?include=pending&include=", "invalid_field", "include"},
		{"payments?include=Pending", "invalid_field", "include"},
		{"payments?candidates=1", "invalid_field", "candidates"},
		{"LIST?merchantId=a&merchantId=b", "invalid_field", "merchantId"},
		{"LIST?limit=", "invalid_field", "limit"},
		{"LIST?limit=0", "invalid_field", "limit"},
		{"LIST?limit=201", "invalid_field", "limit"},
		{"LIST?limit=-1", "invalid_field", "limit"},
		{"LIST?limit=01", "invalid_field", "limit"},
		{"LIST?limit=%2B1", "invalid_field", "limit"},
		{"LIST?limit=1.0", "invalid_field", "limit"},
		{"LIST?limit=ten", "invalid_field", "limit"},
		{"LIST?limit=99999999999999999999", "invalid_field", "limit"},
		{"LIST?limit=1&limit=1", "invalid_field", "limit"},
		{"LIST?cursor=", "invalid_field", "cursor"},
		{"LIST?cursor=!", "invalid_field", "cursor"},
		{"LIST?a=%zz", "invalid_field", "query"},
		{"LIST?a;b", "invalid_field", "query"},
	} {
		for _, list := range []string{"invoices", "payments"} {
			path := test.path
			if len(path) > 4 && path[:4] == "LIST" {
				path = list + path[4:]
			}
			wantProblem(t, do(h, "GET", "/api/"+path, ""), http.StatusBadRequest, test.code, test.field)
		}
	}
	const want = `status must be one of draft, open, paid, expired, void; it is "x".`
	if got := wantProblem(t, do(h, "GET", "/api/invoices?status=x", ""), http.StatusBadRequest, "invalid_status", "").Detail; got != want {
		t.Errorf("detail is %s, want %s", got, want)
	}
}

// A cursor is valid for its own list with any page size, and for no other list.
func TestCursorsAreBoundToTheirFilters(t *testing.T) {
	h := newAPI(t, newListBackend(24))
	lists := []string{
		"invoices?", "invoices?merchantId=acme", "invoices?merchantId=bean", "invoices?status=open", "invoices?status=open&merchantId=acme",
		"invoices?merchantId=", "payments?", "payments?merchantId=acme", "payments?chainKey=base", "payments?chainKey=local",
		"payments?include=pending", "payments?include=pending&merchantId=acme",
		"payments?include=unattributed", "payments?include=unattributed&include=pending", "payments?merchantId=&include=pending",
	}
	for _, from := range lists {
		cursor := decode[page](t, do(h, "GET", "/api/"+from+"&limit=1", ""), http.StatusOK).NextCursor
		if cursor == "" {
			if !strings.Contains(from, "merchantId=&") && !strings.HasSuffix(from, "merchantId=") {
				t.Errorf("%s has no second page", from)
			}
			continue
		}
		for _, to := range lists {
			w := do(h, "GET", "/api/"+to+"&limit=3&cursor="+cursor, "")
			if from != to {
				wantProblem(t, w, http.StatusBadRequest, "invalid_field", "cursor")
			} else if got := decode[page](t, w, http.StatusOK); len(got.Invoices)+len(got.Payments) != 3 {
				t.Errorf("%s goes on with %s", from, w.Body)
			}
		}
	}
	// The notation of a set does not matter.
	cursor := decode[page](t, do(h, "GET", "/api/payments?include=unattributed,pending&limit=1", ""), http.StatusOK).NextCursor
	for _, same := range []string{"include=pending,unattributed", "include=pending,unattributed&candidates=false", "include=pending&include=unattributed", "include=pending,pending,unattributed"} {
		if w := do(h, "GET", "/api/payments?"+same+"&cursor="+cursor, ""); w.Code != http.StatusOK {
			t.Errorf("%s: answered %d %s", same, w.Code, w.Body)
		}
	}
	// The order of parameters does not matter.
	cursor = decode[page](t, do(h, "GET", "/api/invoices?status=open&merchantId=acme&limit=1", ""), http.StatusOK).NextCursor
	if w := do(h, "GET", "/api/invoices?cursor="+cursor+"&merchantId=acme&status=open", ""); w.Code != http.StatusOK {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

// page is a page of either list.
type page struct {
	Invoices, Payments []any
	NextCursor         string
}

func TestChangedCursors(t *testing.T) {
	h := newAPI(t, newListBackend(3))
	const path = "/api/invoices?limit=1&cursor="
	cursor := decode[page](t, do(h, "GET", "/api/invoices?limit=1", ""), http.StatusOK).NextCursor
	refuse := func(changed string) {
		t.Helper()
		wantProblem(t, do(h, "GET", path+url.QueryEscape(changed), ""), http.StatusBadRequest, "invalid_field", "cursor")
	}
	for i := range len(cursor) {
		refuse(cursor[:i])
		refuse(cursor[:i] + cursor[i+1:])
		refuse(cursor[:i] + "\n" + cursor[i:])
		for _, c := range "-0AZaz_=!" {
			if changed := cursor[:i] + string(c) + cursor[i+1:]; changed != cursor {
				refuse(changed)
			}
		}
	}
	refuse(cursor + "A")
	refuse(cursor + "=")
	refuse(cursor + cursor)
	// A malformed key is rejected even with a valid checksum.
	const scope = `invoices merchantId=[] status=[]`
	longest := strings.Repeat("k", api.MaxCursor*3/4-8)
	for key, status := range map[string]int{
		invoiceID(1): http.StatusOK, longest: http.StatusOK, longest + "k": http.StatusBadRequest, "": http.StatusBadRequest,
		"inv_\x00": http.StatusBadRequest, "inv_\xff": http.StatusBadRequest,
	} {
		if w := do(h, "GET", path+api.FormatCursor(scope, key), ""); w.Code != status {
			t.Errorf("key %q: answered %d %s, want %d", key, w.Code, w.Body, status)
		}
	}
}

// Pages of any size, concatenated, are the whole list.
func TestPagesMakeTheWholeList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(rt, "n")
		limit := rapid.IntRange(1, 45).Draw(rt, "limit")
		h := newAPI(t, newListBackend(n))
		got, pages, cursor := []string{}, 0, ""
		for {
			query := url.Values{"limit": {fmt.Sprint(limit)}}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			list := decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices?"+query.Encode(), ""), http.StatusOK)
			for _, inv := range list.Invoices {
				got = append(got, inv.ID)
			}
			pages++
			if cursor = list.NextCursor; cursor == "" {
				break
			}
		}
		want := []string{}
		for i := range n {
			want = append(want, invoiceID(n-1-i))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("-want +got:\n%s", diff)
		}
		if most := max(1, (n+limit-1)/limit); pages != most {
			rt.Fatalf("%d pages, want %d", pages, most)
		}
	})
}

func TestPageLimits(t *testing.T) {
	h := newAPI(t, newListBackend(api.MaxPage+1))
	for query, want := range map[string]int{"": api.DefaultPage, "?limit=1": 1, "?limit=200": api.MaxPage} {
		invoices := decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices"+query, ""), http.StatusOK)
		payments := decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments"+query+map[bool]string{true: "?", false: "&"}[query == ""]+"include=pending,unattributed", ""), http.StatusOK)
		if len(invoices.Invoices) != want || len(payments.Payments) != want || invoices.NextCursor == "" || payments.NextCursor == "" {
			t.Errorf("%q: %d invoices and %d payments, want %d and cursors", query, len(invoices.Invoices), len(payments.Payments), want)
		}
		if len(payments.NextCursor) > api.MaxCursor {
			t.Errorf("cursor of %d bytes", len(payments.NextCursor))
		}
	}
}

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
