package dashboard_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestSettings changes a merchant's profile and addresses by its owner, and its rules by the operator.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", apitypes.CreateMerchantRequest{ID: "initech", Name: "Initech"}, nil)
	const path, addresses, defaults, rules = "/dashboard/settings", "/dashboard/settings/addresses", "/dashboard/settings/defaults", "/dashboard/settings/rules"
	operator := "?merchantId=initech"
	w.operator.get(path).want(t, 200, "initech")
	page := w.operator.get(path+operator).want(t, 200)
	w.operator.submit(page, rules+operator, url.Values{"returnHosts": {"shop.example\r\n\r\n"}, "tolerance": {"0.5%"}}).want(t, 200, "Every address is allowed")
	owner := w.person("initech", access.Admin)
	page = owner.get(path).want(t, 200, "shop.example", "0.5%", "The operator changes this")
	if slices.Contains(page.Actions(), rules) {
		t.Error("an owner has the form of the rules")
	}
	owner.post(rules, url.Values{"tolerance": {"1%"}}).want(t, 403)
	page = owner.submit(page, path, url.Values{"name": {"<b>Initech</b>"}, "statement": {"One\r\nTwo"}, "timezone": {"Europe/Berlin"}}).want(t, 200)
	page = owner.submit(page, path, url.Values{"color": {"#0d6450"}}).want(t, 200) // only the color
	if refused := owner.submit(page, path, url.Values{"color": {"green"}, "supportContact": {"typed"}}).want(t, 400, "Color "); !strings.Contains(refused.body, "typed") {
		t.Error("what was typed is lost")
	}
	row := func(all ...string) url.Values {
		return url.Values{"chainKey": slices.Repeat([]string{house}, len(all)), "address": all}
	}
	const misspelt, written = "0xaA00000000000000000000000000000000000001", "0xAA00000000000000000000000000000000000001"
	for _, form := range []string{defaults, addresses} {
		for typed, refusal := range map[string]string{"0x12": "An address is 0x", misspelt: "A character of the address is wrong"} {
			if refused := owner.post(form, row(typed)).want(t, 400, refusal); !strings.Contains(refused.body, `value="`+typed+`"`) {
				t.Errorf("%s is lost", typed)
			}
		}
	}
	owner.post(defaults, row(acmePays.String(), payer.String())).want(t, 400, "A network has only one default address")
	page = owner.post(defaults, row(acmePays.String(), "")).want(t, 200, acmePays.String(), "Changes take effect")
	if strings.Contains(page.Words(), "Takes effect ") {
		t.Error("a first default address waits")
	}
	owner.post(defaults, row(payer.String())).want(t, 200, "Takes effect", acmePays.String(), written)
	owner.post(defaults, row(acmePays.String())) // cancels it
	owner.post(addresses, row(acmePays.String())).want(t, 200, acmePays.String(), "Changes take effect")
	owner.post(addresses, row(acmePays.String(), payer.String())).want(t, 200, "Takes effect", written)
	owner.post(addresses, url.Values{"chainKey": {house}, "address": {acmePays.String()}, "immediately": {"true"}}).want(t, 403)
	w.forgetConfirmations()
	if asked := owner.get(path).want(t, 200, "Is it still you?"); slices.Contains(asked.Actions(), addresses) || slices.Contains(asked.Actions(), defaults) {
		t.Error("addresses can be typed, and are lost by the question")
	}
	owner.post(addresses, row(payer.String())).want(t, 200, "Is it still you?")
	owner.post(defaults, row(payer.String())).want(t, 200, "Is it still you?")
	owner.submit(owner.get(path), path, url.Values{"name": {"Initech"}}).want(t, 200) // not dangerous
	w.operator.post(rules+operator, nil).want(t, 200, "Is it still you?")
	reader := w.person("initech", access.Read)
	if actions := reader.get(path).want(t, 200, acmePays.String(), "Initech", "Time zone Europe/Berlin", "Owners change this").Actions(); slices.Contains(actions, addresses) || slices.Contains(actions, path) {
		t.Error("who may only read has forms")
	}
	reader.post(addresses, nil).want(t, 403)
	reader.post(path, url.Values{"name": {"x"}}).want(t, 403)
	globex := w.person("globex", access.Admin).get(path).want(t, 200, "globex", "The operator changes this merchant in the service’s configuration")
	if strings.Contains(globex.body, path+"/") || strings.Contains(globex.Words(), "Support contact") {
		t.Errorf("the page of a merchant of the configuration has forms, or what no configuration has:\n%s", globex.Words())
	}
	for _, p := range []*person{owner, w.operator} {
		p.get(path+operator).want(t, 200, "Invoices stored 0 of 10,000,000", "Audit log stored 0.0 of 1,073.7 MB")
	}
}

// TestTimezone shows times and filters days in the merchant's time zone.
func TestTimezone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", member{"id": "initech", "name": "Initech", "timezone": "Pacific/Kiritimati"}, nil) // 14 hours before UTC
	zone := expect.Must(time.LoadLocation("Pacific/Kiritimati"))
	made := w.invoice("initech", member{"reference": "basket 7"})
	maria := w.person("initech", access.Finance)
	read := func(id string) apitypes.Invoice {
		var answer apitypes.InvoiceResponse
		maria.api("GET", "/api/invoices/"+id, nil, &answer)
		return answer.Invoice
	}
	created := time.Unix(read(made.ID).CreatedAt, 0).In(zone)
	today, yesterday := created.Format(time.DateOnly), created.AddDate(0, 0, -1).Format(time.DateOnly)
	maria.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, created.Format("2 Jan 2006, 15:04 MST"))
	for query, want := range map[string]bool{"after=" + today: true, "before=" + today: true, "before=" + yesterday: false} {
		if got := maria.get("/dashboard/invoices?"+query).want(t, http.StatusOK); strings.Contains(got.Words(), "basket 7") != want {
			t.Errorf("%s lists\n%s", query, got.Words())
		}
		if got := maria.get("/dashboard/invoices.csv?" + query); strings.Contains(got.body, "basket 7") != want || want && !strings.Contains(got.body, created.Format(time.RFC3339)) {
			t.Errorf("%s is exported as\n%s", query, got.body)
		}
	}
	draft := w.invoice("initech", member{"draft": true})
	page := maria.get("/dashboard/invoices/"+draft.ID+"/edit").want(t, http.StatusOK, "Payable until (Pacific/Kiritimati)")
	maria.submit(page, "/dashboard/invoices/"+draft.ID+"/edit", nil).want(t, http.StatusOK, time.Unix(read(draft.ID).ExpiresAt, 0).In(zone).Format("2 Jan 2006, 15:04 MST"))
	w.person("globex", access.Finance).get("/dashboard/invoices").want(t, http.StatusOK)
}

// upload sends a file as the form of a logo does.
func (p *person) upload(path, field string, file []byte) answer {
	p.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile(field, "logo.png")
	if err == nil {
		_, err = part.Write(file)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		p.t.Fatal(err)
	}
	return p.visit(http.MethodPost, path, form.FormDataContentType(), body.String())
}

// newLogo returns an image of an awning.
func newLogo(t *testing.T) []byte {
	t.Helper()
	var logo bytes.Buffer
	drawn := image.NewPaletted(image.Rect(0, 0, 64, 32), color.Palette{color.RGBA{0xb3, 0x4a, 0x2e, 0xff}, color.RGBA{0xf7, 0xe8, 0xd0, 0xff}})
	for i := range drawn.Pix {
		drawn.Pix[i] = uint8(i / 8 % 2)
	}
	expect.OK(t, png.Encode(&logo, drawn))
	return logo.Bytes()
}

// TestLogo sets, shows and removes a merchant's logo.
func TestLogo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", apitypes.CreateMerchantRequest{ID: "initech", Name: "Initech"}, nil)
	const path, operator = "/dashboard/settings/logo", "?merchantId=initech"
	logo := newLogo(t)
	owner, stranger := w.person("initech", access.Admin), w.person("globex", access.Admin)
	settings := w.operator.get("/dashboard/settings"+operator).want(t, 200, "Set the logo")
	if strings.Contains(settings.Words(), "Remove the logo") {
		t.Error("a logo that there is not can be removed")
	}
	owner.get(path).want(t, 404)
	for what, c := range map[string]struct {
		file   []byte
		field  string
		status int
		want   string
	}{
		"text": {[]byte("<svg/>"), "logo", 400, "PNG, JPEG or GIF"}, "damaged": {logo[:40], "logo", 400, "logo"}, "nothing": {nil, "logo", 400, "logo"}, "other field": {logo, "x", 400, "logo"},
		"large": {make([]byte, access.MaxLogoBytes+1), "logo", 413, "The file is larger than 256 kB."}, "very large": {make([]byte, 17<<20), "logo", 413, "The file is larger than 256 kB."},
	} {
		if got := w.operator.upload(path+operator, c.field, c.file); got.status != c.status || !strings.Contains(got.Words(), c.want) {
			t.Errorf("%s: %d\n%s", what, got.status, got.Words())
		}
	}
	w.operator.post(path+operator, nil).want(t, 400)
	reader := w.person("initech", access.Read)
	reader.upload(path, "logo", logo).want(t, 403)
	stranger.upload(path+operator, "logo", logo).want(t, 404)
	stranger.upload(path, "logo", logo).want(t, 400, "globex", "service’s configuration")

	page := owner.upload(path, "logo", logo).want(t, 200, "Remove the logo")
	for _, p := range []*person{w.operator, owner, reader} {
		if got := p.get(path + operator); got.status != 200 || got.header.Get("Content-Type") != "image/png" || !strings.HasPrefix(got.body, "\x89PNG") {
			t.Errorf("the logo is answered %d %v", got.status, got.header)
		}
	}
	if body := reader.get("/dashboard/settings").want(t, 200).body; !strings.Contains(body, path+"?v=") || strings.Contains(body, `type="file"`) {
		t.Errorf("who may only read sees\n%s", body)
	}
	stranger.get(path+operator).want(t, 404)
	reader.post(path+"/remove", nil).want(t, 403)
	owner.submit(page, path+"/remove", nil).want(t, 200, "Set the logo")
	owner.get(path).want(t, 404)
}

// TestSetup sets up a service without merchants, by the link that quittance setup prints, until an invoice is paid.
func TestSetup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Merchants = server.Merchants{} })
	if !strings.Contains(w.log.String(), "quittance setup") {
		t.Error("the service does not name quittance setup")
	}
	link, err := w.keys.SetupLink(t.Context())
	expect.OK(t, err)
	const path = "/dashboard/operator/setup"
	op := w.guest()
	page := op.get("/dashboard/sign-in?" + url.Values{"link": {link.Token}, "next": {path}}.Encode())
	page = op.submit(page, "/dashboard/sign-in", nil).want(t, 200, "house Up to date", "1 of 1 nodes work.", "publicUrl is missing", "Merchant To do", "Webhook endpoint Waiting", "First invoice Waiting")
	if page.path != path {
		t.Fatalf("the link leads to %s", page.path)
	}
	w.guest().submit(w.guest().get("/dashboard/sign-in?link="+link.Token), "/dashboard/sign-in", nil).want(t, 401)

	shop := url.Values{"id": {"shop"}, "name": {"Shop"}, "address": {acmePays.String()}}
	op.submit(page, path, url.Values{"id": {"a shop"}, "name": {"Shop"}}).want(t, 400, "Id must be")
	op.submit(page, path, url.Values{"id": {"shop"}, "name": {"Shop"}, "address": {"0x12"}}).want(t, 400, "Merchant To do")
	op.submit(page, path, shop).want(t, 200, "Merchant Done", "Webhook endpoint To do", "Key for the shop’s program To do", "First invoice To do")

	w.operator.api("PUT", "/api/merchants/shop/webhook", map[string]string{"url": w.receiver.URL}, nil)
	form := op.get("/dashboard/keys/new?for=program&merchantId=shop")
	op.submit(form, "/dashboard/keys?merchantId=shop", url.Values{"name": {"backend"}, "scope": access.Standard.Names()}).want(t, 200, "qk_")
	w.forward(25 * time.Hour) // what was made in the session does not end with it
	var keys apitypes.KeyList
	w.operator.api("GET", "/api/keys?merchantId=shop", nil, &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].ExpiresAt != 0 || keys.Keys[0].State != string(access.Active) {
		t.Errorf("the shop's keys are %+v", keys.Keys)
	}
	op = w.named("", "maria", access.Admin)
	var made apitypes.CreateInvoiceResponse
	w.operator.api("POST", "/api/invoices", member{"merchantId": "shop", "amount": "4900000", "currency": "USDC", "chainKey": house, "expiresAt": w.now().Unix() + 3600}, &made)
	open := op.get(path).want(t, 200, "Key for the shop’s program Done", "First invoice Waiting", "4.90")
	if !strings.Contains(open.body, w.url+"/checkout/"+made.ID) {
		t.Error("the page has no link to the invoice's checkout page")
	}
	w.payment(w.read(made.ID).TransferAmount)
	w.await("the end of the setup", func() bool { return strings.Contains(op.get(path).Words(), "All steps are done.") })
	if got := w.guest().get("/docs/guides/go-live"); got.status != 200 {
		t.Errorf("the checklist answers %d", got.status)
	}
}

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
	if words := page.Words(); strings.Contains(words, "globex") || !strings.Contains(page.body, paid.ID) {
		t.Errorf("the customer's page has the wrong invoices:\n%s", words)
	}
	maria.get("/dashboard/customers/customer?customer="+url.QueryEscape(odd)).want(t, http.StatusOK, odd, "4.90 USDC (1)")
	maria.get("/dashboard/customers/customer?customer=nobody").want(t, http.StatusNotFound)
	maria.get("/dashboard/customers/customer").want(t, http.StatusNotFound)
	maria.get("/dashboard/invoices/"+paid.ID).want(t, http.StatusOK, "c-1 · maria@shop.example")
	list := maria.get("/dashboard/invoices?customer=c-1").want(t, http.StatusOK, "Customer")
	expect.Equal(t, len(list.Named("tr"))-1, 3, "the customer has … invoices:")
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
	if page := support.get("/dashboard/customers/customer?customer=c-1").want(t, http.StatusOK, "9.80 USDC (2)"); strings.Contains(page.Words(), "Payments") {
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
	if strings.Contains(erased.Words(), "maria@shop.example") {
		t.Errorf("the customers after the erasure:\n%s", erased.Words())
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
		t.Errorf("the page of the link has the wrong invoices:\n%s", page.Words())
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
	if rows := len(page.Named("tr")) - 1; rows >= many {
		t.Errorf("a page has %d rows", rows)
	}
	printed := maria.get("/dashboard/invoices?reference=order-1&print=1").want(t, http.StatusOK, "acme", "Rows: 60", "Reference: order-1", "Back to the list")
	expect.Equal(t, len(printed.Named("tr"))-1, many, "the printed list has … rows:")
	if words := printed.Words(); strings.Contains(words, "order-2") || strings.Contains(words, "Older") {
		t.Errorf("the printed list is not the filtered one:\n%s", words)
	}
}
