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
)

// TestSettings changes a merchant's profile by the operator, and its addresses by its owner.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", apitypes.CreateMerchantRequest{ID: "initech", Name: "Initech"}, nil)
	const path, addresses = "/dashboard/settings", "/dashboard/settings/addresses"
	operator := "?merchantId=initech"
	w.operator.get(path).want(t, 200, "initech")
	page := w.operator.get(path+operator).want(t, 200)
	w.operator.submit(page, path+operator, url.Values{"name": {"<b>Initech</b>"}, "returnHosts": {"shop.example\r\n\r\n"}, "statement": {"One\r\nTwo"}}).want(t, 200, "Every address is allowed")
	page = w.operator.submit(w.operator.get(path+operator), path+operator, url.Values{"timezone": {"Europe/Berlin"}, "tolerance": {"0.5%"}, "defaultAddresses": {house + " " + acmePays.String()}}).want(t, 200)
	page = w.operator.submit(page, path+operator, url.Values{"color": {"#0d6450"}}).want(t, 200) // only the color
	refused := w.operator.submit(page, path+operator, url.Values{"color": {"green"}, "supportContact": {"typed"}}).want(t, 400, "color")
	if !strings.Contains(refused.body, "typed") {
		t.Error("what was typed is lost")
	}
	owner := w.person("initech", access.Admin)
	page = owner.get(path).want(t, 200, "<b>Initech</b>", "shop.example", "Time zone Europe/Berlin", "0.5%", house+" "+acmePays.String(), "The operator of the service changes this")
	if slices.Contains(page.actions(), path) {
		t.Error("an owner has the form of the profile")
	}
	owner.post(path, url.Values{"name": {"x"}}).want(t, 403)
	line := house + " " + acmePays.String()
	owner.submit(page, addresses, url.Values{"allowedAddresses": {line}}).want(t, 200, acmePays.String())
	owner.submit(owner.get(path), addresses, url.Values{"allowedAddresses": {line + "\n" + house + " " + payer.String()}}).want(t, 200, "Takes effect", "0xAA00000000000000000000000000000000000001")
	owner.submit(owner.get(path), addresses, url.Values{"allowedAddresses": {house + " 0x12"}}).want(t, 400, "allowedAddresses[0].address")
	owner.post(addresses, url.Values{"allowedAddresses": {line}, "immediately": {"true"}}).want(t, 403)
	w.forgetConfirmations()
	owner.post(addresses, url.Values{"allowedAddresses": {house + " " + payer.String()}}).want(t, 200, "Is it still you?")
	w.operator.post(path+operator, url.Values{"defaultAddresses": {house + " " + payer.String()}}).want(t, 200, "Is it still you?")
	reader := w.person("initech", access.Read)
	if actions := reader.get(path).want(t, 200, acmePays.String()).actions(); slices.Contains(actions, addresses) {
		t.Error("who may only read has the form of the addresses")
	}
	reader.post(addresses, nil).want(t, 403)
	w.person("globex", access.Admin).get(path+operator).want(t, 200, "globex")
	for _, p := range []*person{owner, w.operator} {
		p.get(path+operator).want(t, 200, "Invoices stored 0 of 10000000", "Audit log stored 0.0 of 1073.7 MB")
	}
}

// TestTimezone shows times and filters days in the merchant's time zone.
func TestTimezone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", member{"id": "initech", "name": "Initech", "timezone": "Pacific/Kiritimati"}, nil) // 14 hours before UTC
	zone, err := time.LoadLocation("Pacific/Kiritimati")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := png.Encode(&logo, image.NewGray(image.Rect(0, 0, 64, 32))); err != nil {
		t.Fatal(err)
	}
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
	owner.upload(path, "logo", logo).want(t, 403)
	stranger.upload(path+operator, "logo", logo).want(t, 400, "globex", "set in the service's configuration")

	page := w.operator.upload(path+operator, "logo", logo).want(t, 200, "How payers see it", "Remove the logo")
	for _, p := range []*person{w.operator, owner, w.person("initech", access.Read)} {
		if got := p.get(path + operator); got.status != 200 || got.header.Get("Content-Type") != "image/png" || !strings.HasPrefix(got.body, "\x89PNG") {
			t.Errorf("the logo is answered %d %v", got.status, got.header)
		}
	}
	if body := owner.get("/dashboard/settings").want(t, 200).body; !strings.Contains(body, path+"?v=") || strings.Contains(body, `type="file"`) {
		t.Errorf("the owner sees\n%s", body)
	}
	stranger.get(path+operator).want(t, 404)
	owner.post(path+"/remove", nil).want(t, 403)
	w.forgetConfirmations()
	w.operator.upload(path+operator, "logo", logo).want(t, 200, "Is it still you?")
	w.operator.post(path+"/remove"+operator, nil).want(t, 200, "Is it still you?")
	w.operator.submit(w.operator.get("/dashboard/confirm"), "/dashboard/confirm", url.Values{"key": {w.operator.key}}).want(t, 200)
	w.operator.submit(page, path+"/remove"+operator, nil).want(t, 200, "Set the logo")
	owner.get(path).want(t, 404)
}
