package dashboard

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/webpage"
)

// linkRoutes returns the routes of payment links.
func (d *Dashboard) linkRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("GET /dashboard/links", access.InvoicesRead, linkList.show(d)),
		d.route("GET /dashboard/links.csv", access.InvoicesRead, linkList.export(d), webpage.Long),
		d.route("GET /dashboard/links/new", access.InvoicesWrite, d.newLink),
		d.route("POST /dashboard/links/new", access.InvoicesWrite, d.createLink),
		d.route("GET /dashboard/links/{id}", access.InvoicesRead, showing(d.showLink)),
		d.route("GET /dashboard/links/{id}/edit", access.InvoicesWrite, d.confirmed(d.editLink, here(""))),
		d.route("POST /dashboard/links/{id}/edit", access.InvoicesWrite, d.confirmed(d.changeLink, here(""))), // may change the address of the next payments
		d.route("POST /dashboard/links/{id}/archive", access.InvoicesWrite, d.archiveLink),
	}
}

// linkList lists payment links, newest first.
var linkList = lister[apitypes.PaymentLinkList, linkRow]{
	page: "/dashboard/links", api: "/api/payment-links", template: "links.html", title: "nav.links", csv: true,
	filters: []filter{
		{name: "archived", text: "invoices.status", kind: "select", options: func(*visit) []option {
			return []option{{Value: "false", Kind: "links.archived"}, {Value: "true", Kind: "links.archived"}}
		}},
		{name: "slug", text: "links.slug", kind: "text"},
	},
	rows: func(v *visit, list apitypes.PaymentLinkList) ([]linkRow, string) {
		return rowsOf(list.Links, v.linkRow), list.NextCursor
	},
}

// linkRow is a payment link in a list. Unset amounts are empty.
type linkRow struct {
	apitypes.PaymentLink
	Money, Least, Most template.HTML
	Network            string
}

func (v *visit) linkRow(l apitypes.PaymentLink) linkRow {
	row := linkRow{PaymentLink: l, Network: v.Network(l.ChainKey)}
	for _, a := range []struct {
		money *template.HTML
		minor string
	}{{&row.Money, l.Amount}, {&row.Least, l.MinAmount}, {&row.Most, l.MaxAmount}} {
		if a.minor != "" {
			*a.money = v.money(a.minor, l.Currency)
		}
	}
	return row
}

// maxLinkInvoices is how many invoices the page of a link shows.
const maxLinkInvoices = 20

// linkPage is the page of a payment link.
type linkPage struct {
	linkRow
	Code     webpage.QRCode
	Snippet  string // HTML of a button on a page of the merchant
	Sums     invoiceSums
	Invoices []invoiceRow
	More     bool   // there are more invoices
	Error    string // why an action was refused, or empty
}

// showLink shows a payment link.
func (d *Dashboard) showLink(w http.ResponseWriter, r *http.Request, code int, refused string) error {
	l, err := d.findLink(r)
	if err != nil {
		return err
	}
	base := d.publicURL(r)
	if strings.HasPrefix(l.URL, "/") { // the service's address is unknown
		l.URL = base + l.URL
	}
	v := visitOf(r)
	body := linkPage{linkRow: v.linkRow(l), Error: refused}
	if body.Code, err = webpage.NewQRCode(l.URL); err != nil {
		return err
	}
	body.Snippet = `<a href="` + template.HTMLEscapeString(l.URL) + `" data-quittance>` + template.HTMLEscapeString(l.Title) + "</a>\n" +
		`<script src="` + template.HTMLEscapeString(base) + `/embed.js" defer></script>`
	query := url.Values{"merchantId": {l.MerchantID}, "metadata[paymentLink]": {l.ID}}
	if body.Sums, err = d.sums(r, query); err != nil {
		return err
	}
	query.Set("limit", strconv.Itoa(maxLinkInvoices))
	var made apitypes.InvoiceList
	if err := d.service.get(r.Context(), "/api/invoices", query, &made); err != nil {
		return err
	}
	body.Invoices, body.More = v.invoiceRows(made.Invoices), made.NextCursor != ""
	return d.render(w, r, code, "link.html", "link.title", body)
}

// findLink returns the payment link that the path of a request names.
func (d *Dashboard) findLink(r *http.Request) (apitypes.PaymentLink, error) {
	var answer apitypes.PaymentLinkResponse
	err := d.service.get(r.Context(), id("/api/payment-links", r.PathValue("id")), nil, &answer)
	return answer.Link, err
}

// archiveLink ends a payment link.
func (d *Dashboard) archiveLink(w http.ResponseWriter, r *http.Request) error {
	err := d.service.send(r.Context(), http.MethodPatch, id("/api/payment-links", r.PathValue("id")), map[string]bool{"archived": true}, nil)
	return d.outcome(w, r, err, d.showLink, id("/dashboard/links", r.PathValue("id")))
}
