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
