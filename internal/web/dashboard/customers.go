package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// customerList lists customers of a merchant, in the order of their ids.
var customerList = lister[apitypes.CustomerList, apitypes.CustomerRecord]{
	page: "/dashboard/customers", api: "/api/customers", template: "customers.html", title: "nav.customers", oneMerchant: true, csv: true,
	filters: []filter{{name: "q", text: "customers.search", kind: "search"}},
	rows: func(list apitypes.CustomerList) ([]apitypes.CustomerRecord, string) {
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

// sums adds up the invoices that the parameters of the interface select.
func (d *Dashboard) sums(r *http.Request, query url.Values) apitypes.InvoiceReport {
	return get[apitypes.InvoiceReportResponse](d, r, "/api/reports/invoices", query).Report
}

// customerInvoices is how many invoices the page of a customer shows at once.
const customerInvoices = 20

// customerPage is the page of a customer.
type customerPage struct {
	Customer, Email string // Email is empty if it is not known, or identifies the customer
	Sums            apitypes.InvoiceReport
	Invoices        []apitypes.Invoice
	Payments        []apitypes.Payment      // of the invoices
	Refunds         []apitypes.RefundRecord // of the invoices
	Next            string                  // address of the page with older invoices, or empty
	All, Export     string                  // addresses of the list of the customer's invoices, and of its CSV
}

// customer shows a customer: the sums of all invoices, and the newest invoices with their payments and refunds.
func (d *Dashboard) customer(w http.ResponseWriter, r *http.Request) error {
	v, key := visitOf(r), r.URL.Query().Get("customer")
	chosen := url.Values{"customer": {key}}
	query := v.query("customer", key)
	body := customerPage{
		Customer: key, All: filteredPage(v, "/dashboard/invoices", chosen), Export: filteredPage(v, "/dashboard/invoices.csv", chosen), Sums: d.sums(r, query),
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	query.Set("limit", strconv.Itoa(customerInvoices))
	made := get[apitypes.InvoiceList](d, r, "/api/invoices", query)
	if len(made.Invoices) == 0 {
		return cmp.Or(v.err, error(errNotFound))
	}
	if c := made.Invoices[0].Customer; c != nil && c.Email != key {
		body.Email = c.Email
	}
	body.Invoices, body.Next = made.Invoices, nextPage(v, chosen, made.NextCursor)
	if v.Can(access.PaymentsRead) {
		d.addCustomerTransfers(r, &body)
	}
	return d.render(w, r, http.StatusOK, "customer.html", "invoice.customer", body)
}

// addCustomerTransfers adds the payments and refunds of the invoices on a customer's page, a few of each invoice.
func (d *Dashboard) addCustomerTransfers(r *http.Request, body *customerPage) {
	const ofInvoice = "10"
	for _, inv := range body.Invoices {
		if inv.Status == apitypes.StatusDraft {
			continue
		}
		payments := get[apitypes.PaymentList](d, r, id("/api/invoices", inv.ID)+"/payments", url.Values{"limit": {ofInvoice}}).Payments
		body.Payments = append(body.Payments, db.Each(payments, withStatus)...)
		if len(payments) > 0 {
			refunds := get[apitypes.RefundList](d, r, "/api/refunds", url.Values{"invoiceId": {inv.ID}, "limit": {ofInvoice}})
			body.Refunds = append(body.Refunds, refunds.Refunds...)
		}
	}
}

// eraseCustomer erases the personal data of a customer, and leads to the list of customers.
func (d *Dashboard) eraseCustomer(w http.ResponseWriter, r *http.Request) error {
	asked := apitypes.EraseCustomerRequest{MerchantID: visitOf(r).merchant, Customer: r.PostFormValue("customer")}
	return d.redirect(w, r, d.service.send(r.Context(), http.MethodPost, "/api/customers/erase", asked, nil), "/dashboard/customers")
}
