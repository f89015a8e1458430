package dashboard

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// customerList lists customers of a merchant, in the order of their ids.
var customerList = lister[apitypes.CustomerList, apitypes.CustomerRecord]{
	page: "/dashboard/customers", api: "/api/customers", template: "customers.html", title: "nav.customers", oneMerchant: true, csv: true,
	filters: []filter{{name: "q", text: "customers.search", kind: "search"}},
	rows: func(_ *visit, list apitypes.CustomerList) ([]apitypes.CustomerRecord, string) {
		return list.Customers, list.NextCursor
	},
}

// CustomerPage returns the address of a customer's page. It is for templates.
func (v *visit) CustomerPage(merchantID, customer string) string {
	if !v.IsOperator() {
		merchantID = ""
	}
	return v.Link("/dashboard/customers/customer", "customer", customer, "merchantId", merchantID)
}

// sumRow is the sums of invoices on a chain.
type sumRow struct {
	apitypes.InvoiceReportLine
	Network                              string
	Money, Left, Overdue, Paid, Returned template.HTML
}

// invoiceSums are the sums of the invoices of a customer or a link.
type invoiceSums struct {
	Rows      []sumRow
	Truncated bool
}

// sums adds up the invoices that the parameters of the interface select.
func (d *Dashboard) sums(r *http.Request, query url.Values) (invoiceSums, error) {
	var answer apitypes.InvoiceReportResponse
	v, err := visitOf(r), d.service.get(r.Context(), "/api/reports/invoices", query, &answer)
	out := invoiceSums{Truncated: answer.Report.Truncated}
	for _, l := range answer.Report.Lines {
		money := func(minor string) template.HTML { return v.total(minor, l.Currency) }
		out.Rows = append(out.Rows, sumRow{
			l, v.Network(l.ChainKey), money(l.Amount), money(l.OpenAmount), money(l.ExpiredAmount), money(l.AmountPaid), money(l.AmountRefunded),
		})
	}
	return out, err
}

// customerInvoices is how many invoices the page of a customer shows at once.
const customerInvoices = 20

// customerPage is the page of a customer.
type customerPage struct {
	Customer, Email string // Email is empty if it is not known, or identifies the customer
	Sums            invoiceSums
	Invoices        []invoiceRow
	Payments        []paymentRow // of the invoices
	Refunds         []refundRow  // of the invoices
	Next            string       // address of the page with older invoices, or empty
	All, Export     string       // addresses of the list of the customer's invoices, and of its CSV
}

// customer shows a customer: the sums of all invoices, and the newest invoices with their payments and
// refunds.
func (d *Dashboard) customer(w http.ResponseWriter, r *http.Request) error {
	v, key := visitOf(r), r.URL.Query().Get("customer")
	chosen := url.Values{"customer": {key}}
	body := customerPage{Customer: key, All: filteredPage(v, "/dashboard/invoices", chosen), Export: filteredPage(v, "/dashboard/invoices.csv", chosen)}
	query := v.query()
	query.Set("customer", key)
	var err error
	if body.Sums, err = d.sums(r, query); err != nil {
		return err
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	query.Set("limit", strconv.Itoa(customerInvoices))
	var made apitypes.InvoiceList
	if err := d.service.get(r.Context(), "/api/invoices", query, &made); err != nil {
		return err
	}
	if len(made.Invoices) == 0 {
		return errNotFound
	}
	if c := made.Invoices[0].Customer; c != nil && c.Email != key {
		body.Email = c.Email
	}
	body.Invoices, body.Next = v.invoiceRows(made.Invoices), nextPage(v, chosen, made.NextCursor)
	if v.Can(access.PaymentsRead) {
		if err := d.addCustomerTransfers(r, &body); err != nil {
			return err
		}
	}
	return d.render(w, r, http.StatusOK, "customer.html", "invoice.customer", body)
}

// addCustomerTransfers adds the payments and refunds of the invoices on a customer's page, a few
// of each invoice.
func (d *Dashboard) addCustomerTransfers(r *http.Request, body *customerPage) error {
	const ofInvoice = "10"
	v := visitOf(r)
	for _, inv := range body.Invoices {
		if inv.Status == apitypes.StatusDraft {
			continue
		}
		var payments apitypes.PaymentList
		if err := d.service.get(r.Context(), id("/api/invoices", inv.ID)+"/payments", url.Values{"limit": {ofInvoice}}, &payments); err != nil {
			return err
		}
		body.Payments = append(body.Payments, v.paymentRows(payments.Payments)...)
		if len(payments.Payments) == 0 {
			continue
		}
		var refunds apitypes.RefundList
		if err := d.service.get(r.Context(), "/api/refunds", url.Values{"invoiceId": {inv.ID}, "limit": {ofInvoice}}, &refunds); err != nil {
			return err
		}
		body.Refunds = append(body.Refunds, v.refundRows(refunds.Refunds)...)
	}
	return nil
}

// eraseCustomer erases the personal data of a customer, and leads to the list of customers.
func (d *Dashboard) eraseCustomer(w http.ResponseWriter, r *http.Request) error {
	asked := apitypes.EraseCustomerRequest{MerchantID: visitOf(r).merchant, Customer: r.PostFormValue("customer")}
	return d.redirect(w, r, d.service.send(r.Context(), http.MethodPost, "/api/customers/erase", asked, nil), "/dashboard/customers")
}
