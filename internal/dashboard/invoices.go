package dashboard

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// pageSize is how many rows a list shows.
const pageSize = 50

// invoiceFilters are the parameters of the list of invoices that the REST interface takes.
var invoiceFilters = []string{"status", "exception", "reference", "to"}

// invoiceList is the list of invoices.
type invoiceList struct {
	Filter url.Values
	Rows   []invoiceRow
	Next   string // address of the next page, or empty
	Export string // address of the CSV of what is filtered
	Error  string // what the interface refused of the filter, or empty
}

// Exceptions returns the exceptions by which invoices are filtered. It is for templates.
func (invoiceList) Exceptions() []invoice.Exception { return invoice.Exceptions }

// Statuses returns the states by which invoices are filtered. It is for templates.
func (invoiceList) Statuses() []invoice.Status { return invoice.Statuses }

// invoiceRow is an invoice in the list.
type invoiceRow struct {
	apitypes.Invoice
	Money   template.HTML
	Network string
}

// invoiceTable is what the template invoiceTable shows.
type invoiceTable struct {
	Page *visit
	Rows []invoiceRow
}

// invoices lists invoices, newest first. With the parameter q it leads to the search.
func (d *Dashboard) invoices(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	if text := r.URL.Query().Get("q"); text != "" {
		d.redirect(w, r, "/dashboard/search", "q", text)
		return nil
	}
	var body invoiceList
	query := d.invoiceQuery(v, r, &body)
	var list apitypes.InvoiceList
	err := d.service.get(r.Context(), "/api/invoices", query, &list)
	if body.Error, err = detail(err); err != nil {
		return err
	}
	body.Rows, body.Next = d.invoiceRows(list.Invoices), nextPage(v, body.Filter, list.NextCursor)
	return d.render(w, r, status(body.Error), "invoices.html", "invoices.title", body)
}

// exportInvoices answers with the CSV of the filtered invoices.
func (d *Dashboard) exportInvoices(w http.ResponseWriter, r *http.Request) error {
	d.export(w, r, "/api/invoices", d.invoiceQuery(visitOf(r), r, new(invoiceList)))
	return nil
}

// invoiceQuery returns the query of the interface for the filters of a request, and sets them
// in the list.
func (d *Dashboard) invoiceQuery(v *visit, r *http.Request, list *invoiceList) url.Values {
	query := v.query()
	list.Filter = filtered(r, query, invoiceFilters)
	asked := r.URL.Query()
	for _, name := range []string{"amount", "after", "before"} {
		if value := strings.TrimSpace(asked.Get(name)); value != "" {
			list.Filter.Set(name, value)
		}
	}
	if amount := list.Filter.Get("amount"); amount != "" {
		query.Set("amount", minorUnits(amount, d.anyDecimals()))
	}
	for name, filter := range map[string]string{"createdAfter": "after", "createdBefore": "before"} {
		if day := list.Filter.Get(filter); day != "" {
			query.Set(name, dayText(day, filter == "before"))
		}
	}
	list.Export = filteredPage(v, "/dashboard/invoices.csv", list.Filter)
	return query
}

// invoiceRows returns the rows of invoices.
func (d *Dashboard) invoiceRows(invoices []apitypes.Invoice) []invoiceRow {
	rows := make([]invoiceRow, len(invoices))
	for i, inv := range invoices {
		rows[i] = invoiceRow{inv, d.money(inv.Amount, inv.Currency, inv.ChainKey), chain.NetworkName(inv.ChainKey)}
	}
	return rows
}

// filtered adds the filters and the cursor of a request for a list to the query of the REST
// interface, and returns the filters.
func filtered(r *http.Request, query url.Values, names []string) url.Values {
	filter := make(url.Values)
	for _, name := range names {
		if value := r.URL.Query().Get(name); value != "" {
			filter.Set(name, value)
			query.Set(name, value)
		}
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	query.Set("limit", strconv.Itoa(pageSize))
	return filter
}

// nextPage returns the address of the page of a list after a cursor, or "".
func nextPage(v *visit, filter url.Values, cursor string) string {
	if cursor == "" {
		return ""
	}
	return filteredPage(v, v.here, filter, "cursor", cursor)
}

// filteredPage returns the address of a page with filters and other pairs.
func filteredPage(v *visit, path string, filter url.Values, pairs ...string) string {
	for name := range filter {
		pairs = append(pairs, name, filter.Get(name))
	}
	return v.Link(path, pairs...)
}
