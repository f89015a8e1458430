package dashboard_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestInvoices lists the invoices of the person's merchant.
func TestInvoices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	paid := w.paid(member{"reference": "basket <b>7"})
	w.invoice("globex", member{"reference": "of globex"})
	list := w.person("acme", access.Read).get("/dashboard/invoices").want(t, http.StatusOK, "4.90 USDC", "Paid", "basket <b>7")
	if !slices.Contains(list.Links(), "/dashboard/invoices/"+paid.ID) || strings.Contains(list.body, "of globex") {
		t.Errorf("the list is\n%s", list.Words())
	}
	w.operator.get("/dashboard/invoices").want(t, http.StatusOK, "basket", "of globex")
	open := w.invoice("acme", member{"reference": "tea", "amount": "5000000"})
	maria := w.person("acme", access.Read)
	for query, want := range map[string]string{
		"status=open": "tea", "status=paid": "basket", "reference=tea": "tea", "amount=5": "tea", "amount=4,90": "basket", "to=" + acmePays.String(): "tea",
		"exception=late": "Nothing was found.", "after=2100-01-01": "Nothing was found.", "after=1970-01-01&before=2100-01-01&status=open": "tea",
	} {
		maria.get("/dashboard/invoices?"+query).want(t, http.StatusOK, want)
	}
	for query, want := range map[string]string{"status=lost": "Status must", "amount=lots": "Enter an amount such as 4.90.", "to=me": "To must", "after=soon": "Created after must"} {
		maria.get("/dashboard/invoices?"+query).want(t, http.StatusBadRequest, want)
	}
	file := maria.get("/dashboard/invoices.csv?status=open")
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][0] != open.ID || !strings.HasPrefix(file.header.Get("Content-Type"), "text/csv") {
		t.Errorf("the export is %s, %v, %v", file.body, err, file.header)
	}
	if !strings.HasPrefix(file.body, "\ufeffid,merchantId,") || !strings.Contains(file.body, ",5000000,5.00,") {
		t.Errorf("the export for spreadsheets in English is %s", file.body)
	}
	page := maria.get("/dashboard/invoices")
	maria.submit(page, "/dashboard/language", url.Values{"language": {"de"}})
	if file := maria.get("/dashboard/invoices.csv?status=open"); !strings.HasPrefix(file.body, "\ufeffid;merchantId;") || !strings.Contains(file.body, ";5000000;5,00;") {
		t.Errorf("the export for spreadsheets in German is %s", file.body)
	}
}

// TestSearch leads to the object that a text names, and lists several results.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	paid := w.paid(member{"amount": "7310000", "reference": "basket 7", "description": "Two ladders", "customer": member{"email": "ann@example.com"}})
	lost := w.payment("123456789")
	twin := w.invoice("acme", member{"reference": "twin"})
	w.invoice("acme", member{"reference": "twin"})
	maria := w.person("acme", access.Read)
	for text, want := range map[string]string{
		paid.ID: "/dashboard/invoices/" + paid.ID, "basket 7": "/dashboard/invoices/" + paid.ID, " " + paid.SettledTxHash: "/dashboard/invoices/" + paid.ID,
		"bask": "/dashboard/invoices/" + paid.ID, "ladder two": "/dashboard/invoices/" + paid.ID, "ann@": "/dashboard/invoices/" + paid.ID,
		"7.31 USDC": "/dashboard/invoices/" + paid.ID, "123,456789": "/dashboard/payments/" + lost.ID, lost.TxHash[:8] + "…" + lost.TxHash[60:]: "/dashboard/payments/" + lost.ID,
		lost.ID[:16] + "…": "/dashboard/payments/" + lost.ID, paid.ID[:16] + "…": "/dashboard/invoices/" + paid.ID,
		lost.ID: "/dashboard/payments/" + lost.ID, lost.TxHash: "/dashboard/payments/" + lost.ID, twin.OnChainInvoiceID: "/dashboard/invoices/" + twin.ID,
	} {
		if got := maria.get("/dashboard/search?q="+url.QueryEscape(text)).want(t, http.StatusOK); got.path != want {
			t.Errorf("%q leads to %s, want %s", text, got.path, want)
		}
	}
	if rows := maria.get("/dashboard/search?q=twin").want(t, http.StatusOK).Named("tbody")[0].Named("tr"); len(rows) != 2 {
		t.Errorf("%d invoices have the reference, want 2", len(rows))
	}
	maria.get("/dashboard/search?q=nothing").want(t, http.StatusOK, "Nothing was found")
	maria.get("/dashboard/search?q=0x1234567").want(t, http.StatusOK, "Nothing was found. Enter at least 10 characters")
	if page := maria.get("/dashboard/search?q=0x12345678").want(t, http.StatusOK, "Nothing was found"); strings.Contains(page.Words(), "at least 10") {
		t.Error("a search for 10 characters asks for more")
	}
	maria.get("/dashboard/search").want(t, http.StatusOK)
	w.person("globex", access.Admin).get("/dashboard/search?q=twin").want(t, http.StatusOK, "Nothing was found")
	if got := maria.get("/dashboard/invoices?q=basket+7"); got.path != "/dashboard/invoices/"+paid.ID {
		t.Errorf("the list leads to %s", got.path)
	}
}

// TestInvoicePage shows an invoice with its payments, its timeline and its JSON.
func TestInvoicePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	items := []member{{"label": "Flat <i>white", "amount": "3400000"}, {"label": "Bun", "amount": "1500000"}}
	w.receiver.status <- http.StatusServiceUnavailable
	paid := w.paid(member{"reference": "basket 7", "lineItems": items, "metadata": member{"table": "<b>9"}, "customer": member{"id": "c-1", "email": "ann@example.com"}})
	maria := w.person("acme", access.Read)
	sent := invoice.Hash{0x5e}.String()
	if got := maria.post("/checkout/"+paid.ID+"/sent", url.Values{"tx": {sent}}); got.status != http.StatusNoContent {
		t.Errorf("a report of the page is answered %d: %s", got.status, got.body)
	}
	w.await("delivery of invoice.paid", func() bool {
		return strings.Contains(maria.get("/dashboard/invoices/"+paid.ID).Words(), "Delivery attempt 1 200")
	})
	page := maria.get("/dashboard/invoices/"+paid.ID).want(t, http.StatusOK,
		"4.90 USDC Paid", "basket 7", "Flat <i>white", "3.40 USDC", "<b>9", "c-1 · ann@example.com", paid.MerchantAddress,
		"Created 4.90 USDC", "Confirmation 1 of 2", "Confirmation 2 of 2", "Payment seen", "Payment confirmed", "Paid in full", "Event invoice.paid", "Delivery attempt 1 503", w.url+"/checkout/"+paid.ID)
	if !strings.Contains(page.body, sent) || !strings.Contains(page.Words(), "Sent by the payer’s wallet") {
		t.Errorf("the page lacks what the wallet sent: %s", page.Words())
	}
	if got := page.Actions(); slices.ContainsFunc(got, func(a string) bool { return strings.HasPrefix(a, "/dashboard/invoices") }) {
		t.Errorf("somebody who only reads is offered %q", got)
	}
	if got := maria.get("/dashboard/invoices/" + paid.ID + "/json"); !strings.Contains(got.body, "\"reference\": \"basket 7\"") || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("the JSON is %s", got.body)
	}
	other := w.person("globex", access.Admin)
	for _, path := range []string{paid.ID, paid.ID + "/json", "inv_unknown"} {
		other.get("/dashboard/invoices/"+path).want(t, http.StatusNotFound)
	}
}

// TestInvoiceActs finalizes and deletes drafts, and makes invoices void.
func TestInvoiceActs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	draft := "/dashboard/invoices/" + w.invoice("acme", member{"draft": true}).ID
	page := maria.get(draft).want(t, http.StatusOK, "Draft", "Drafts can be changed, but not paid.")
	page = maria.submit(page, draft+"/finalize", nil).want(t, http.StatusOK, "4.90 USDC Open", "Finalized", "The invoice can no longer be paid")
	expect.Len(t, page.Classed("qr"), 1, "an open invoice has … QR codes:")
	stale := maria.get(draft)
	page = maria.submit(page, draft+"/void", nil).want(t, http.StatusOK, "4.90 USDC Void", "Voided")
	if len(page.Actions()) != 2 { // language and sign-out
		t.Errorf("a void invoice offers %q", page.Actions())
	}
	maria.submit(stale, draft+"/void", nil).want(t, http.StatusOK, "Void")
	maria.post(draft+"/finalize", nil).want(t, http.StatusConflict, "This invoice is final")
	maria.post(draft+"/delete", nil).want(t, http.StatusConflict, "draft")

	draft = "/dashboard/invoices/" + w.invoice("acme", member{"draft": true}).ID
	if list := maria.submit(maria.get(draft), draft+"/delete", nil).want(t, http.StatusOK); list.path != "/dashboard/invoices" {
		t.Errorf("it leads to %s", list.path)
	}
	maria.get(draft).want(t, http.StatusNotFound)

	open := "/dashboard/invoices/" + w.invoice("acme", nil).ID
	for _, act := range []string{"/finalize", "/void", "/delete"} {
		w.person("acme", access.Support).post(open+act, nil).want(t, http.StatusForbidden)
		w.person("globex", access.Admin).post(open+act, nil).want(t, http.StatusNotFound)
	}
	maria.get(open).want(t, http.StatusOK, "Open")
}

// TestOpenedPage shows when a payer first opened an invoice. Opening a draft does not count.
func TestOpenedPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Read)
	made := w.invoice("acme", member{})
	page := "/dashboard/invoices/" + made.ID
	if words := maria.get(page).Words(); strings.Contains(words, "Page first opened") {
		t.Error("the page was opened before anybody did")
	}
	for range 2 {
		w.guest().get("/checkout/"+made.ID).want(t, http.StatusOK)
	}
	w.await("opening", func() bool { return strings.Contains(maria.get(page).Words(), "Page first opened") })
}

// letterbox takes mails, except for nobody. It keeps the last id by recipient.
type letterbox struct{ sync.Map }

func (l *letterbox) Send(_ context.Context, id, recipient string, _ mailer.Message) error {
	l.Store(recipient, id)
	if strings.HasPrefix(recipient, "nobody@") {
		return &mailer.RefusedError{Err: &mailer.AnswerError{Text: "550 no <b>such</b> user"}}
	}
	return nil
}

// bounce returns the mail to a recipient, once it is sent.
func (w *world) bounce(recipient string) {
	w.t.Helper()
	var id any
	w.await("mail", func() (sent bool) {
		id, sent = w.letters.Load(recipient)
		return sent
	})
	w.operator.api("POST", "/api/operator/mails/report", fmt.Appendf(nil, "Content-Type: multipart/report; boundary=b\r\n\r\n"+
		"--b\r\nContent-Type: message/delivery-status\r\n\r\nAction: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 <%s>: <b>no</b> such user\r\n\r\n"+
		"--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <%s@pay.example>\r\n\r\n--b--\r\n", recipient, id), nil)
}

// TestSendInvoice sends an invoice to the customer, with the merchant's reminders and with others.
func TestSendInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", member{"id": "initech", "name": "Initech", "reminderHours": []int{-24, 72}}, nil)
	owner := w.person("initech", access.Admin)
	page := owner.get("/dashboard/settings").want(t, http.StatusOK)
	if refused := owner.submit(page, "/dashboard/settings", url.Values{"before": {"721"}}).want(t, http.StatusBadRequest, "up to 5 whole numbers"); !strings.Contains(refused.body, `value="721"`) {
		t.Error("what was typed is lost")
	}
	page = owner.submit(page, "/dashboard/settings", url.Values{"before": {"2, 1"}, "after": {"3"}}).want(t, http.StatusOK)
	if !strings.Contains(page.body, `value="2, 1"`) || !strings.Contains(page.body, `value="3"`) {
		t.Errorf("the settings are %s", page.Words())
	}
	path := "/dashboard/invoices/" + w.invoice("initech", member{"customer": member{"email": "maria@example.com"}, "expiresAt": w.now().Add(9 * time.Hour).Unix()}).ID
	page = owner.get(path).want(t, http.StatusOK, "Replies go to your contact address")
	owner.submit(page, path+"/send", url.Values{"after": {"x"}}).want(t, http.StatusBadRequest, "up to 5 whole numbers")
	owner.submit(page, path+"/send", url.Values{"email": {"maria"}}).want(t, http.StatusConflict, "Email must be an e-mail address")
	owner.submit(page, path+"/send", url.Values{"language": {"de"}, "before": {""}}).want(t, http.StatusOK, "maria@example.com", "Reminder", "waiting")
	w.await("mail", func() bool { return strings.Contains(owner.get(path).Words(), "Invoice sent by e-mail") })
	page = owner.submit(owner.get(path).want(t, http.StatusOK, "taken by the mail server"), path+"/reminders/drop", nil).want(t, http.StatusOK)
	if strings.Contains(page.Words(), "waiting") {
		t.Errorf("a reminder is left: %s", page.Words())
	}
	owner.submit(page, path+"/send", url.Values{"email": {"nobody@example.com"}}).want(t, http.StatusOK, "nobody@example.com")
	w.await("refusal", func() bool { return strings.Contains(owner.get(path).Words(), "550 no <b>such</b> user") })
	owner.get(path).want(t, http.StatusOK, "not delivered", "Mail not delivered")
	owner.submit(page, path+"/send", url.Values{"email": {"gone@example.com"}}).want(t, http.StatusOK)
	w.bounce("gone@example.com")
	returned := owner.get(path).want(t, http.StatusOK, "returned as undeliverable", "550 5.1.1 <…>: <b>no</b> such user", "Mail returned as undeliverable")
	if got := strings.Count(returned.body, `dir="ltr">550 5.1.1`); got != 2 {
		t.Errorf("the receiver's words, which run from left to right in all languages, are marked so in %d places", got)
	}
	owner.submit(page, path+"/void", nil).want(t, http.StatusOK)
	owner.submit(page, path+"/send", url.Values{"email": {"maria@example.com"}}).want(t, http.StatusConflict, "This invoice is not open, or")
	w.person("initech", access.Support).post(path+"/send", url.Values{"email": {"a@example.com"}}).want(t, http.StatusForbidden)
}

// newest returns the newest invoice of acme.
func (p *person) newest() apitypes.Invoice {
	p.t.Helper()
	var list apitypes.InvoiceList
	p.api("GET", "/api/invoices?limit=1", nil, &list)
	if len(list.Invoices) == 0 {
		return apitypes.Invoice{}
	}
	return list.Invoices[0]
}

// TestCreateInvoice creates an invoice with line items by the form. If the form is sent several times,
// there is one invoice.
func TestCreateInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	const path = "/dashboard/invoices/new"
	form := maria.get(path).want(t, http.StatusOK, "USDC · house")
	typed := url.Values{
		"itemLabel": {"Flat <white>", "", "Bun"}, "itemAmount": {"3,40", "", "1.5"}, "reference": {"basket 7"}, "description": {"Breakfast"},
		"customer.id": {"c-1"}, "customer.email": {"ann@example.com"}, "merchantAddress": {acmePays.String()}, "more": {"1"},
	}
	form = maria.submit(form, path, typed).want(t, http.StatusOK)
	if rows := form.Named("fieldset")[0].Classed("row"); len(rows) != 6 || rows[0].Children[0].Attrs["value"] != "Flat <white>" {
		t.Fatalf("%d rows after more were asked for, want 6", len(rows))
	}
	first := maria.submit(form, path, nil).want(t, http.StatusOK, "4.90 USDC Open", "basket 7", "Breakfast", "Flat <white>", "1.50 USDC", "c-1 · ann@example.com")
	if again := maria.submit(form, path, nil).want(t, http.StatusOK); again.path != first.path {
		t.Errorf("the form made %s and then %s", first.path, again.path)
	}
	if made := maria.newest(); made.Amount != "4900000" || len(made.LineItems) != 2 || !strings.EqualFold(made.MerchantAddress, acmePays.String()) {
		t.Errorf("it made %+v", made)
	}
	w.person("acme", access.Read).get(path).want(t, http.StatusForbidden)
}

// fieldPath matches paths of fields of the interface.
var fieldPath = regexp.MustCompile(`\b([a-z]+[A-Z][a-z]+|customer\.[a-z]+)`)

// TestRefusedInvoice shows each error at its field, with all typed values, and no path of a field.
func TestRefusedInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	const path = "/dashboard/invoices/new"
	form := maria.get(path)
	for name, c := range map[string]struct {
		typed url.Values
		want  string
	}{
		"no amount":             {url.Values{}, "Enter an amount such as 4.90."},
		"ambiguous amount":      {url.Values{"amount": {"1,234"}}, "without separators of thousands"},
		"too many decimals":     {url.Values{"amount": {"0.0000001"}}, "The currency has 6 decimals."},
		"zero":                  {url.Values{"amount": {"0"}}, "The amount must be more than 0."},
		"past":                  {url.Values{"amount": {"1"}, "expiresAt": {"2020-01-01T00:00"}}, "must lie in the future"},
		"no time":               {url.Values{"amount": {"1"}, "expiresAt": {"soon"}}, "Enter a date and a time."},
		"item without label":    {url.Values{"itemLabel": {"", "", ""}, "itemAmount": {"", "1", ""}}, "Say what the amount is for."},
		"item without amount":   {url.Values{"itemLabel": {"", "Bun", ""}, "itemAmount": {"", "", ""}}, "Enter an amount such as 4.90."},
		"items of another sum":  {url.Values{"amount": {"2"}, "itemLabel": {"Bun"}, "itemAmount": {"1"}}, "Line items must add up"},
		"item with bad label":   {url.Values{"itemLabel": {"", "a\u202eb"}, "itemAmount": {"", "1"}}, "Line item 1 label must not hold"},
		"address":               {url.Values{"amount": {"1"}, "merchantAddress": {"0x12"}}, "Merchant address "},
		"no address":            {url.Values{"amount": {"1"}, "merchantAddress": {""}}, "Merchant address is required"},
		"e-mail":                {url.Values{"amount": {"1"}, "customer.email": {"nobody"}}, "Customer email "},
		"another network":       {url.Values{"amount": {"1.5"}, "token": {"elsewhere-2/USDC"}}, "elsewhere-2"},
		"return to javascript:": {url.Values{"amount": {"1"}, "returnUrl": {"javascript:alert(1)"}}, "Return URL "},
	} {
		typed := url.Values{"merchantAddress": {acmePays.String()}, "reference": {"kept <b>"}}
		for field, values := range c.typed {
			typed[field] = values
		}
		page := maria.submit(form, path, typed)
		if page.status != http.StatusBadRequest || !strings.Contains(page.Words(), c.want) || len(page.Classed("problem")) != 1 {
			t.Errorf("%s: %d with %d problems, want %q\n%s", name, page.status, len(page.Classed("problem")), c.want, page.Words())
			continue
		}
		if path := fieldPath.FindString(page.Words()); path != "" {
			t.Errorf("%s: the page shows the path %s\n%s", name, path, page.Words())
		}
		sent := page.Forms()[len(page.Forms())-1].Values()
		for field, values := range typed {
			if field != "token" && sent.Get(field) != values[0] {
				t.Errorf("%s: %s is %q afterwards, want %q", name, field, sent.Get(field), values[0])
			}
		}
	}
	if made := maria.newest(); made.ID != "" {
		t.Errorf("it made %+v", made)
	}
}

// TestDraft saves a draft, edits it, and duplicates an invoice.
func TestDraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	const path = "/dashboard/invoices/new"
	typed := url.Values{"amount": {"5"}, "reference": {"first"}, "customer.id": {"c-1"}, "merchantAddress": {acmePays.String()}, "draft": {"1"}}
	page := maria.submit(maria.get(path), path, typed).want(t, http.StatusOK, "5.00 USDC Draft", "first")
	draft, _, _ := strings.Cut(page.path, "?")
	edit := maria.get(draft+"/edit").want(t, http.StatusOK)
	page = maria.submit(edit, draft+"/edit", url.Values{"amount": {"6"}, "reference": {""}, "customer.id": {""}, "itemLabel": {"Tea"}, "itemAmount": {"6"}}).want(t, http.StatusOK, "6.00 USDC Draft", "Tea")
	if strings.Contains(page.Words(), "first") || strings.Contains(page.Words(), "c-1") {
		t.Errorf("the draft kept what was removed:\n%s", page.Words())
	}
	maria.submit(maria.get(draft+"/edit"), draft+"/edit", url.Values{"amount": {"7"}}).want(t, http.StatusBadRequest, "Line items ")
	w.person("globex", access.Admin).get(draft+"/edit").want(t, http.StatusNotFound)
	w.person("globex", access.Admin).post(draft+"/edit", url.Values{"amount": {"1"}, "token": {"house/USDC"}, "expiresAt": {"2027-06-01T00:00"}}).want(t, http.StatusNotFound)
	created, id := maria.newest(), strings.TrimPrefix(draft, "/dashboard/invoices/")
	maria.api("PATCH", "/api/invoices/"+id, map[string]int64{"expiresAt": created.ExpiresAt + 7}, nil) // not a whole minute
	maria.submit(maria.get(draft+"/edit"), draft+"/edit", url.Values{"reference": {"again"}}).want(t, http.StatusOK, "again")
	if got := maria.newest(); got.ExpiresAt != created.ExpiresAt+7 {
		t.Errorf("the edited draft expires at %d, want %d", got.ExpiresAt, created.ExpiresAt+7)
	}
	maria.submit(page, draft+"/finalize", nil).want(t, http.StatusOK, "Open")
	maria.get(draft+"/edit").want(t, http.StatusConflict, "Only drafts can be edited")
	copied := maria.get(path+"?from="+strings.TrimPrefix(draft, "/dashboard/invoices/")).want(t, http.StatusOK)
	maria.submit(copied, path, nil).want(t, http.StatusOK, "6.00 USDC Open", "Tea")
	w.person("globex", access.Admin).get(path+"?from="+strings.TrimPrefix(draft, "/dashboard/invoices/")).want(t, http.StatusNotFound)
}

// TestOperatorCreatesInvoice creates an invoice for the merchant that the operator names.
func TestOperatorCreatesInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/dashboard/invoices/new"
	form := w.operator.get(path).want(t, http.StatusOK, "Merchant")
	typed := url.Values{"amount": {"5"}, "merchantId": {"globex"}, "merchantAddress": {acmePays.String()}}
	w.operator.submit(form, path, typed).want(t, http.StatusOK, "5.00 USDC Open", "globex")
	typed.Set("merchantId", "nobody")
	w.operator.submit(w.operator.get(path), path, typed).want(t, http.StatusBadRequest, "is not a merchant of this service")
	form = w.operator.get(path+"?merchantId=acme").want(t, http.StatusOK)
	delete(typed, "merchantId")
	page := w.operator.submit(form, path+"?merchantId=acme", typed).want(t, http.StatusOK, "5.00 USDC Open", "acme")
	if !strings.HasSuffix(page.path, "?merchantId=acme") {
		t.Errorf("it leads to %s", page.path)
	}
}

// TestMetadataForm creates a draft with metadata and a cancel URL, and changes, removes and keeps
// pairs of the metadata.
func TestMetadataForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	const path = "/dashboard/invoices/new"
	form := maria.get(path)
	typed := url.Values{
		"amount": {"1"}, "merchantAddress": {acmePays.String()}, "cancelUrl": {"https://shop.example/basket"}, "draft": {"1"},
		"metadataKey": {"cart", "", "note"}, "metadataValue": {"88", "x", "\nfirst\r\nsecond"},
	}
	refused := maria.submit(form, path, typed).want(t, http.StatusBadRequest, "A name is missing.")
	typed["metadataKey"][1] = "cart"
	maria.submit(refused, path, typed).want(t, http.StatusBadRequest, "Another row has this name.")
	typed["metadataKey"][1], typed["metadataValue"][1] = "a[b]", "x"
	maria.submit(refused, path, typed).want(t, http.StatusBadRequest, "square brackets")
	typed["metadataKey"][1] = "<b>"
	maria.submit(refused, path, typed).want(t, http.StatusOK, "<b> x", "cart 88")
	draft := maria.newest()
	want := apitypes.Metadata{"cart": "88", "<b>": "x", "note": "\nfirst\nsecond"}
	if !maps.Equal(draft.Metadata, want) || draft.CancelURL != "https://shop.example/basket" {
		t.Errorf("the form made %+v", draft)
	}
	edit := "/dashboard/invoices/" + draft.ID + "/edit"
	form = maria.get(edit)
	changes := form.Forms()[len(form.Forms())-1].Values()
	keys := changes["metadataKey"]
	keys[slices.Index(keys, "cart")] = "basket"
	maria.submit(form, edit, url.Values{"metadataKey": keys, "cancelUrl": {""}}).want(t, http.StatusOK, "basket 88")
	draft = maria.newest()
	if want := (apitypes.Metadata{"basket": "88", "<b>": "x", "note": "\nfirst\nsecond"}); !maps.Equal(draft.Metadata, want) || draft.CancelURL != "" {
		t.Errorf("the form changed the draft to %+v", draft)
	}
}
