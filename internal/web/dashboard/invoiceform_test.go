package dashboard_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

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
	if rows := form.named("fieldset")[0].classed("row"); len(rows) != 6 || rows[0].children[0].attrs["value"] != "Flat <white>" {
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
		"another network":       {url.Values{"amount": {"1"}, "token": {"elsewhere/USDC"}}, "The currency has 0 decimals."},
		"return to javascript:": {url.Values{"amount": {"1"}, "returnUrl": {"javascript:alert(1)"}}, "Return url "},
	} {
		typed := url.Values{"merchantAddress": {acmePays.String()}, "reference": {"kept <b>"}}
		for field, values := range c.typed {
			typed[field] = values
		}
		if name == "another network" {
			typed.Set("amount", "1.5")
		}
		page := maria.submit(form, path, typed)
		if page.status != http.StatusBadRequest || !strings.Contains(page.words(), c.want) || len(page.classed("problem")) != 1 {
			t.Errorf("%s: %d with %d problems, want %q\n%s", name, page.status, len(page.classed("problem")), c.want, page.words())
			continue
		}
		if path := fieldPath.FindString(page.words()); path != "" {
			t.Errorf("%s: the page shows the path %s\n%s", name, path, page.words())
		}
		sent := page.forms()[len(page.forms())-1].values()
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
	if strings.Contains(page.words(), "first") || strings.Contains(page.words(), "c-1") {
		t.Errorf("the draft kept what was removed:\n%s", page.words())
	}
	maria.submit(maria.get(draft+"/edit"), draft+"/edit", url.Values{"amount": {"7"}}).want(t, http.StatusBadRequest, "Line items ")
	w.person("globex", access.Admin).get(draft+"/edit").want(t, http.StatusNotFound)
	w.person("globex", access.Admin).post(draft+"/edit", url.Values{"amount": {"1"}, "token": {"house/USDC"}, "expiresAt": {"2027-06-01T00:00"}}).want(t, http.StatusNotFound)
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
	changes := form.forms()[len(form.forms())-1].values()
	keys := changes["metadataKey"]
	keys[slices.Index(keys, "cart")] = "basket"
	maria.submit(form, edit, url.Values{"metadataKey": keys, "cancelUrl": {""}}).want(t, http.StatusOK, "basket 88")
	draft = maria.newest()
	if want := (apitypes.Metadata{"basket": "88", "<b>": "x", "note": "\nfirst\nsecond"}); !maps.Equal(draft.Metadata, want) || draft.CancelURL != "" {
		t.Errorf("the form changed the draft to %+v", draft)
	}
}
