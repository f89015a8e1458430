package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

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
