package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// TestCustomers lists the customers of invoices, and shows the sums of one customer's invoices.
func TestCustomers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const odd = `<b>/../ü&?`
	for _, customer := range []member{{"id": "c-1", "email": "old@shop.example"}, {"id": "c-1", "email": "maria@shop.example"}, {"email": "c-1@shop.example"}, {"id": odd}} {
		w.invoice("acme", member{"customer": customer})
	}
	paid := w.paid(member{"customer": member{"id": "c-1", "email": "maria@shop.example"}})
	w.invoice("globex", member{"customer": member{"id": "c-1", "email": "evil@globex.example"}, "merchantAddress": "0x2200000000000000000000000000000000000002"})

	maria := w.person("acme", access.Finance)
	maria.get("/dashboard/customers").want(t, http.StatusOK, odd, "c-1", "maria@shop.example", "c-1@shop.example")
	for q, want := range map[string][]string{
		"c-1": {"c-1 maria@shop.example", "c-1@shop.example"}, "maria@": {"c-1 maria@shop.example"}, "old": {"c-1 maria@shop.example"},
		"evil": {"Nothing was found."}, "<b>": {odd}, "%": {"Nothing was found."}, "\x00": {"Nothing was found."},
	} {
		maria.get("/dashboard/customers?q="+url.QueryEscape(q)).want(t, http.StatusOK, want...)
	}
	page := maria.get("/dashboard/customers/customer?customer=c-1").want(t, http.StatusOK, "maria@shop.example",
		"14.70 USDC (3)", "9.80 USDC (2)", "0.00 USDC (0)", "Payments Amount", "All invoices")
	if words := page.words(); strings.Contains(words, "globex") || !strings.Contains(page.body, paid.ID) {
		t.Errorf("the customer's page has the wrong invoices:\n%s", words)
	}
	maria.get("/dashboard/customers/customer?customer="+url.QueryEscape(odd)).want(t, http.StatusOK, odd, "4.90 USDC (1)")
	maria.get("/dashboard/customers/customer?customer=nobody").want(t, http.StatusNotFound)
	maria.get("/dashboard/customers/customer").want(t, http.StatusNotFound)
	maria.get("/dashboard/invoices/"+paid.ID).want(t, http.StatusOK, "c-1 · maria@shop.example")
	list := maria.get("/dashboard/invoices?customer=c-1").want(t, http.StatusOK, "Customer")
	if rows := len(list.named("tr")) - 1; rows != 3 {
		t.Errorf("the customer has %d invoices, want 3", rows)
	}
	for path, want := range map[string]int{"": 3, "?q=c-1": 2, "?q=maria@": 1, "?q=evil": 0} {
		if file := maria.get("/dashboard/customers.csv" + path); strings.Count(file.body, "\r\n") != want+1 || strings.Contains(file.body, "globex") {
			t.Errorf("the customers%s are exported as %s, want %d", path, file.body, want)
		}
	}
	if file := maria.get("/dashboard/invoices.csv?customer=c-1"); strings.Count(file.body, "\r\n") != 4 {
		t.Errorf("the export is %s", file.body)
	}
	var names []string
	for cursor := ""; ; {
		var list apitypes.CustomerList
		maria.api("GET", "/api/customers?limit=1"+cursor, nil, &list)
		for _, c := range list.Customers {
			names = append(names, c.Customer)
		}
		if list.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + list.NextCursor
	}
	if want := []string{odd, "c-1", "c-1@shop.example"}; !slices.Equal(names, want) {
		t.Errorf("the pages have %q, want %q", names, want)
	}
	support := w.person("acme", access.NewScopes(access.InvoicesRead))
	if page := support.get("/dashboard/customers/customer?customer=c-1").want(t, http.StatusOK, "9.80 USDC (2)"); strings.Contains(page.words(), "Payments") {
		t.Error("who may not see payments sees them")
	}
	w.operator.get("/dashboard/customers").want(t, http.StatusOK, "acme", "globex")
	w.operator.get("/dashboard/customers?merchantId=globex").want(t, http.StatusOK, "evil@globex.example")
	theirs := w.operator.get("/dashboard/customers/customer?merchantId=globex&customer=c-1").want(t, http.StatusOK, "4.90 USDC (1)")

	// Erased at acme, but not at globex.
	if page := w.person("acme", access.NewScopes(access.InvoicesRead)).get("/dashboard/customers/customer?customer=c-1"); strings.Contains(page.body, "/dashboard/customers/erase") {
		t.Error("who may only read can erase")
	}
	erased := maria.submit(maria.get("/dashboard/customers/customer?customer=c-1"), "/dashboard/customers/erase", nil).want(t, http.StatusOK, "c-1@shop.example")
	if strings.Contains(erased.words(), "maria@shop.example") {
		t.Errorf("the customers after the erasure:\n%s", erased.words())
	}
	maria.get("/dashboard/customers/customer?customer=c-1").want(t, http.StatusNotFound)
	w.operator.submit(theirs, "/dashboard/customers/erase?merchantId=globex", nil).want(t, http.StatusOK, "Nothing was found")
}

// TestPaymentLinks creates, changes and ends a payment link, and shows its invoices.
func TestPaymentLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	maria.get("/dashboard/links").want(t, http.StatusOK, "Nothing was found.", "New payment link")
	form := maria.get("/dashboard/links/new")
	bad := maria.submit(form, "/dashboard/links/new", url.Values{"title": {"An espresso"}, "amount": {"4.9000001"}})
	bad.want(t, http.StatusBadRequest, "The currency has 6 decimals.")
	typed := url.Values{"title": {`<b>"Espresso"</b>`}, "slug": {"espresso"}, "amount": {"4.90"}, "merchantAddress": {acmePays.String()}, "expiresIn": {"900"}}
	made := maria.submit(form, "/dashboard/links/new", typed).want(t, http.StatusOK, `<b>"Espresso"</b>`, "4.90 USDC", "In use", "15 min",
		w.url+"/pay/acme/espresso", `data-quittance>&lt;b&gt;&#34;Espresso&#34;&lt;/b&gt;</a>`, "Invoices None.")
	if again := maria.submit(form, "/dashboard/links/new", typed); again.path != made.path {
		t.Errorf("the form sent twice leads to %s and %s", made.path, again.path)
	}
	w.forgetConfirmations()
	maria.submit(form, "/dashboard/links/new", typed).want(t, http.StatusForbidden, "Answer the question in a new tab")
	maria.submit(maria.get("/dashboard/links/new"), "/dashboard/links/new", url.Values{"title": {"Tea"}, "slug": {"tea"}, "amount": {"2"}, "expiresIn": {"900"}}).want(t, http.StatusBadRequest, "no default address") // needs no confirmation
	maria.post("/dashboard/confirm", url.Values{"key": {maria.key}}).want(t, http.StatusOK)
	other := maria.get("/dashboard/links/new")
	maria.submit(other, "/dashboard/links/new", typed).want(t, http.StatusBadRequest, "has this address")

	code := maria.get("/pay/acme/espresso/qr")
	if code.status != http.StatusOK || !strings.Contains(code.header.Get("Content-Type"), "svg") {
		t.Errorf("the code is %d %v", code.status, code.header)
	}
	id := strings.TrimPrefix(made.path, "/dashboard/links/")
	invoice := w.invoice("acme", member{"metadata": member{"paymentLink": id}})
	stranger := w.invoice("globex", member{"metadata": member{"paymentLink": id}, "merchantAddress": "0x2200000000000000000000000000000000000002"})
	page := w.operator.get(made.path).want(t, http.StatusOK, "4.90 USDC")
	if !strings.Contains(page.body, invoice.ID) || strings.Contains(page.body, stranger.ID) {
		t.Errorf("the page of the link has the wrong invoices:\n%s", page.words())
	}
	if all := maria.get("/dashboard/invoices?metadata[paymentLink]="+id).want(t, http.StatusOK, "4.90"); !strings.Contains(all.body, invoice.ID) {
		t.Error("the list of the link's invoices lacks its invoice")
	}

	edit := maria.get(made.path + "/edit")
	maria.submit(edit, made.path+"/edit", url.Values{"amount": {""}, "minAmount": {"9"}, "maxAmount": {"1"}}).want(t, http.StatusBadRequest, "must not be below min amount")
	maria.submit(edit, made.path+"/edit", url.Values{"amount": {""}, "minAmount": {"1"}, "expiresIn": {"5400"}}).want(t, http.StatusOK, "The payer enters it", "at least 1.00 USDC")
	maria.get(made.path+"/edit").want(t, http.StatusOK, "1 h, 30 min")
	var answer apitypes.PaymentLinkResponse
	maria.api("GET", "/api/payment-links/"+id, nil, &answer)
	if l := answer.Link; l.Amount != "" || l.MinAmount != "1000000" || l.ExpiresIn != 5400 {
		t.Errorf("the link is %+v", l)
	}

	maria.submit(maria.get(made.path), made.path+"/archive", nil).want(t, http.StatusOK, "Ended")
	maria.get("/dashboard/links?archived=false").want(t, http.StatusOK, "Nothing was found.")
	maria.get("/dashboard/links?archived=true").want(t, http.StatusOK, "espresso", "Ended")
	maria.get("/dashboard/links?archived=false&print=1").want(t, http.StatusOK, "acme", "Rows: 0", "Status: In use")

	reader := w.person("acme", access.Read)
	if got := reader.get(made.path).want(t, http.StatusOK); strings.Contains(got.body, "/edit") {
		t.Error("who may not write sees the form")
	}
	reader.get("/dashboard/links/new").want(t, http.StatusForbidden)
	w.person("globex", access.Admin).get(made.path).want(t, http.StatusNotFound)
}

// TestPrintedList prints the whole filtered list.
func TestPrintedList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const many = 60 // more than a page shows
	for range many {
		w.invoice("acme", member{"reference": "order-1"})
	}
	w.invoice("acme", member{"reference": "order-2"})
	maria := w.person("acme", access.Support)
	page := maria.get("/dashboard/invoices?reference=order-1").want(t, http.StatusOK, "Older", "PDF / print")
	if rows := len(page.named("tr")) - 1; rows >= many {
		t.Errorf("a page has %d rows", rows)
	}
	printed := maria.get("/dashboard/invoices?reference=order-1&print=1").want(t, http.StatusOK, "acme", "Rows: 60", "Reference: order-1", "Back to the list")
	if rows := len(printed.named("tr")) - 1; rows != many {
		t.Errorf("the printed list has %d rows, want %d", rows, many)
	}
	if words := printed.words(); strings.Contains(words, "order-2") || strings.Contains(words, "Older") {
		t.Errorf("the printed list is not the filtered one:\n%s", words)
	}
}
