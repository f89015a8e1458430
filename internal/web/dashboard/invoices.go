package dashboard

import (
	"html/template"
	"net/url"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// invoiceList lists invoices, newest first. The filter q leads to the search.
var invoiceList = lister[apitypes.InvoiceList, invoiceRow]{
	page: "/dashboard/invoices", api: "/api/invoices", template: "invoices.html", title: "nav.invoices", csv: true,
	jump: func(v *visit, text string) string { return v.Link("/dashboard/search", "q", text) },
	filters: []filter{
		{name: "q", apply: func(*visit, url.Values, string) {}},
		{name: "status", text: "invoices.status", kind: "select", options: optionsOf("invoice.status", invoice.Statuses)},
		{name: "exception", text: "payment.exception", kind: "select", options: optionsOf("invoice.exception", invoice.Exceptions)},
		{name: "reference", text: "invoices.reference", kind: "text"},
		{name: "amount", text: "invoices.amount", kind: "text", apply: applyAmount},
		{name: "to", text: "invoice.address", kind: "text"},
		{name: "customer", text: "invoice.customer", kind: "text", rare: true},
		{name: "metadata[paymentLink]", text: "link.title", kind: "text", rare: true},
		dayFilter("after", "invoices.after", "createdAfter", false),
		dayFilter("before", "payments.before", "createdBefore", true),
	},
	rows: func(v *visit, list apitypes.InvoiceList) ([]invoiceRow, string) {
		return v.invoiceRows(list.Invoices), list.NextCursor
	},
}

// invoiceRow is an invoice in the list.
type invoiceRow struct {
	apitypes.Invoice
	Money   template.HTML
	Network string
}

// invoiceRows returns the rows of invoices.
func (v *visit) invoiceRows(invoices []apitypes.Invoice) []invoiceRow {
	return rowsOf(invoices, func(inv apitypes.Invoice) invoiceRow {
		return invoiceRow{inv, v.money(inv.Amount, inv.Currency), v.Network(inv.ChainKey)}
	})
}
