package dashboard_test

import (
	"bytes"
	"errors"
	"image"
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
	if slices.Contains(page.actions(), rules) {
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
	if strings.Contains(page.words(), "Takes effect ") {
		t.Error("a first default address waits")
	}
	owner.post(defaults, row(payer.String())).want(t, 200, "Takes effect", acmePays.String(), written)
	owner.post(defaults, row(acmePays.String())) // cancels it
	owner.post(addresses, row(acmePays.String())).want(t, 200, acmePays.String(), "Changes take effect")
	owner.post(addresses, row(acmePays.String(), payer.String())).want(t, 200, "Takes effect", written)
	owner.post(addresses, url.Values{"chainKey": {house}, "address": {acmePays.String()}, "immediately": {"true"}}).want(t, 403)
	w.forgetConfirmations()
	owner.post(addresses, row(payer.String())).want(t, 200, "Is it still you?")
	owner.post(defaults, row(payer.String())).want(t, 200, "Is it still you?")
	owner.submit(owner.get(path), path, url.Values{"name": {"Initech"}}).want(t, 200) // not dangerous
	w.operator.post(rules+operator, nil).want(t, 200, "Is it still you?")
	reader := w.person("initech", access.Read)
	if actions := reader.get(path).want(t, 200, acmePays.String(), "Initech", "Time zone Europe/Berlin", "Owners change this").actions(); slices.Contains(actions, addresses) || slices.Contains(actions, path) {
		t.Error("who may only read has forms")
	}
	reader.post(addresses, nil).want(t, 403)
	reader.post(path, url.Values{"name": {"x"}}).want(t, 403)
	globex := w.person("globex", access.Admin).get(path+operator).want(t, 200, "globex", "The operator changes this merchant in the service’s configuration")
	if strings.Contains(globex.body, path+"/") || strings.Contains(globex.words(), "Support contact") {
		t.Errorf("the page of a merchant of the configuration has forms, or what no configuration has:\n%s", globex.words())
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
		if got := maria.get("/dashboard/invoices?"+query).want(t, http.StatusOK); strings.Contains(got.words(), "basket 7") != want {
			t.Errorf("%s lists\n%s", query, got.words())
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

// newLogo returns an image.
func newLogo(t *testing.T) []byte {
	t.Helper()
	var logo bytes.Buffer
	expect.OK(t, png.Encode(&logo, image.NewGray(image.Rect(0, 0, 64, 32))))
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
	if strings.Contains(settings.words(), "Remove the logo") {
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
		if got := w.operator.upload(path+operator, c.field, c.file); got.status != c.status || !strings.Contains(got.words(), c.want) {
			t.Errorf("%s: %d\n%s", what, got.status, got.words())
		}
	}
	w.operator.post(path+operator, nil).want(t, 400)
	reader := w.person("initech", access.Read)
	reader.upload(path, "logo", logo).want(t, 403)
	stranger.upload(path+operator, "logo", logo).want(t, 400, "globex", "service’s configuration")

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
