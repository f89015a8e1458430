package dashboard

import (
	"cmp"
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

// linkRoutes returns the routes of payment links.
func (d *Dashboard) linkRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("GET /dashboard/links", access.InvoicesRead, linkList.show(d)),
		d.route("GET /dashboard/links.csv", access.InvoicesRead, linkList.export(d), webpage.Long),
		d.route("GET /dashboard/links/new", access.InvoicesWrite, d.newLink),
		d.route("POST /dashboard/links/new", access.InvoicesWrite, d.saveLink),
		d.route("GET /dashboard/links/{id}", access.InvoicesRead, showing(d.showLink)),
		d.route("GET /dashboard/links/{id}/edit", access.InvoicesWrite, d.confirmed(d.editLink, here(""))),
		d.route("POST /dashboard/links/{id}/edit", access.InvoicesWrite, d.confirmed(d.saveLink, here(""))), // may change the address of the next payments
		d.route("POST /dashboard/links/{id}/archive", access.InvoicesWrite, d.archiveLink),
	}
}

// linkList lists payment links, newest first.
var linkList = lister[apitypes.PaymentLinkList, apitypes.PaymentLink]{
	page: "/dashboard/links", api: "/api/payment-links", template: "links.html", title: "nav.links", csv: true,
	filters: []filter{
		{name: "archived", text: "invoices.status", kind: "select", options: func(*visit) []option {
			return []option{{Value: "false", Kind: "links.archived"}, {Value: "true", Kind: "links.archived"}}
		}},
		{name: "slug", text: "links.slug", kind: "text"},
	},
	rows: func(list apitypes.PaymentLinkList) ([]apitypes.PaymentLink, string) {
		return list.Links, list.NextCursor
	},
}

// maxLinkInvoices is how many invoices the page of a link shows.
const maxLinkInvoices = 20

// linkPage is the page of a payment link.
type linkPage struct {
	apitypes.PaymentLink
	Code     webpage.QRCode
	Snippet  string // HTML of a button on a page of the merchant
	Sums     apitypes.InvoiceReport
	Invoices []apitypes.Invoice
	More     bool   // there are more invoices
	Error    string // why an action was refused, or empty
}

// showLink shows a payment link.
func (d *Dashboard) showLink(w http.ResponseWriter, r *http.Request, status int, refused string) error {
	l, base := d.findLink(r), d.publicURL(r)
	if strings.HasPrefix(l.URL, "/") { // the service's address is unknown
		l.URL = base + l.URL
	}
	code, err := webpage.NewQRCode(l.URL)
	if err = cmp.Or(visitOf(r).err, err); err != nil {
		return err
	}
	query := url.Values{"merchantId": {l.MerchantID}, "metadata[paymentLink]": {l.ID}}
	body := linkPage{PaymentLink: l, Error: refused, Code: code, Sums: d.sums(r, query)}
	body.Snippet = `<a href="` + template.HTMLEscapeString(l.URL) + `" data-quittance>` + template.HTMLEscapeString(l.Title) + "</a>\n" +
		`<script src="` + template.HTMLEscapeString(base) + `/embed.js" defer></script>`
	query.Set("limit", strconv.Itoa(maxLinkInvoices))
	made := get[apitypes.InvoiceList](d, r, "/api/invoices", query)
	body.Invoices, body.More = made.Invoices, made.NextCursor != ""
	return d.render(w, r, status, "link.html", "link.title", body)
}

// findLink returns the payment link that the path of a request names.
func (d *Dashboard) findLink(r *http.Request) apitypes.PaymentLink {
	return get[apitypes.PaymentLinkResponse](d, r, id("/api/payment-links", r.PathValue("id")), nil).Link
}

// archiveLink ends a payment link.
func (d *Dashboard) archiveLink(w http.ResponseWriter, r *http.Request) error {
	err := d.service.send(r.Context(), http.MethodPatch, id("/api/payment-links", r.PathValue("id")), map[string]bool{"archived": true}, nil)
	return d.outcome(w, r, err, d.showLink, id("/dashboard/links", r.PathValue("id")))
}

// linkForm is the form of a payment link.
type linkForm struct {
	fields
	ID      string // of the link that is changed, or empty
	Tokens  []tokenChoice
	Confirm bool // the person must confirm before the form is accepted
}

// linkFields are the fields of the form with the same names as in the interface.
var linkFields = []string{
	"merchantId", "title", "description", "slug", "amount", "minAmount", "maxAmount", "merchantAddress", "lineItem", "referencePrefix", "returnUrl", "cancelUrl", "expiresIn",
}

// linkTexts are the fields that are sent as typed.
var linkTexts = []string{"description", "merchantAddress", "lineItem", "referencePrefix", "returnUrl", "cancelUrl"}

// linkLifetimes are the offered lifetimes of a link's invoices, in seconds.
var linkLifetimes = []int64{15 * 60, 60 * 60, 24 * 60 * 60, 7 * 24 * 60 * 60, 30 * 24 * 60 * 60}

// Lifetimes returns the choices of expiresIn. It is for templates.
func (f *linkForm) Lifetimes() []int64 {
	chosen, err := strconv.ParseInt(f.Get("expiresIn"), 10, 64)
	if err != nil || slices.Contains(linkLifetimes, chosen) {
		return linkLifetimes
	}
	return append([]int64{chosen}, linkLifetimes...)
}

// newLink shows the form of a new payment link.
func (d *Dashboard) newLink(w http.ResponseWriter, r *http.Request) error {
	values := url.Values{"once": {rand.Text()}, "expiresIn": {strconv.FormatInt(int64(invoice.DefaultLinkLifetime.Seconds()), 10)}}
	return d.renderLinkForm(w, r, http.StatusOK, &linkForm{fields: newFields(values), Tokens: visitOf(r).tokens("")})
}

// editLink shows the form of a link with its terms.
func (d *Dashboard) editLink(w http.ResponseWriter, r *http.Request) error {
	v, l := visitOf(r), d.findLink(r)
	choice := l.ChainKey + "/" + l.Currency
	f := &linkForm{fields: newFields(url.Values{}), ID: l.ID, Tokens: v.tokens(choice)}
	for name, value := range map[string]string{
		"token": choice, "title": l.Title, "description": l.Description, "merchantAddress": l.MerchantAddress, "lineItem": l.LineItem,
		"referencePrefix": l.ReferencePrefix, "returnUrl": l.ReturnURL, "cancelUrl": l.CancelURL, "expiresIn": strconv.FormatInt(l.ExpiresIn, 10),
	} {
		f.Set(name, value)
	}
	for name, minor := range map[string]string{"amount": l.Amount, "minAmount": l.MinAmount, "maxAmount": l.MaxAmount} {
		if minor != "" {
			f.Set(name, v.major(minor))
		}
	}
	return d.renderLinkForm(w, r, http.StatusOK, f)
}

func (d *Dashboard) renderLinkForm(w http.ResponseWriter, r *http.Request, status int, f *linkForm) error {
	title := "links.new"
	if f.ID != "" {
		title = "linkForm.edit"
	}
	return d.render(w, r, status, "linkform.html", title, f)
}

// saveLink creates a payment link, only once if the form is sent several times, or changes its terms. It leads to the
// link's page.
func (d *Dashboard) saveLink(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	f := &linkForm{fields: newFields(r.PostForm), ID: r.PathValue("id"), Tokens: v.tokens(r.PostForm.Get("token"))}
	if body := f.request(v); len(f.Errors) == 0 {
		if f.Confirm = f.member("merchantAddress") != nil && !v.session.Confirmed(d.cfg.Now()); f.Confirm {
			return d.renderLinkForm(w, r, http.StatusForbidden, f)
		}
		var err error
		var saved apitypes.PaymentLinkResponse
		if saved.Link.ID = f.ID; f.ID == "" {
			body["slug"] = f.member("slug")
			err = d.service.sendOnce(r.Context(), http.MethodPost, "/api/payment-links", f.Get("once"), f.creation(v, body), &saved)
		} else {
			err = d.service.send(r.Context(), http.MethodPatch, id("/api/payment-links", f.ID), body, nil)
		}
		if err == nil {
			return d.redirect(w, r, nil, id("/dashboard/links", saved.Link.ID))
		}
		if err := f.refuse(err); err != nil {
			return err
		}
	}
	return d.renderLinkForm(w, r, http.StatusBadRequest, f)
}

// request returns the body of the request to the interface.
func (f *linkForm) request(v *visit) map[string]any {
	chainKey, currency, _ := strings.Cut(f.Get("token"), "/")
	body := map[string]any{"chainKey": chainKey, "currency": currency, "title": strings.TrimSpace(f.Get("title"))}
	for _, name := range linkTexts {
		body[name] = f.member(name)
	}
	for _, name := range []string{"amount", "minAmount", "maxAmount"} {
		body[name] = nil
		if strings.TrimSpace(f.Get(name)) == "" {
			continue
		}
		amount, problem := v.parseAmount(f.Get(name))
		if body[name] = amount.String(); problem != "" {
			f.Errors[name] = problem
		}
	}
	seconds, err := strconv.ParseInt(f.Get("expiresIn"), 10, 64)
	if body["expiresIn"] = seconds; err != nil {
		f.Errors["expiresIn"] = v.text.T("linkForm.error.expires", nil)
	}
	return body
}

// refuse shows an error of the interface at its field.
func (f *linkForm) refuse(err error) error {
	var p *problem
	switch errors.As(err, &p); {
	case p != nil && p.Status == http.StatusBadRequest && (p.Code == apitypes.CodeInvalidChain || p.Field == "chainKey" || p.Field == "currency"):
		f.Errors["token"] = p.Detail
		return nil
	case p != nil && p.Status == http.StatusConflict && f.ID == "" && f.Get("slug") != "":
		f.Errors["slug"] = p.Detail
		return nil
	}
	return f.refuseAt(err, linkFields)
}
