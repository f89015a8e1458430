package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
)

// maxFound bounds the invoices and the payments that a search shows.
const maxFound = 50

// found is what a search shows.
type found struct {
	Text     string
	Invoices []invoiceRow
	Payments []paymentRow
	Error    string // what the interface refused of the text, or empty
}

// search finds what a text names: an invoice by anything that GET /api/invoices?q= takes, a
// payment by its transaction, and payments, refunds and events by their ids. It leads to the
// page of a single result.
func (d *Dashboard) search(w http.ResponseWriter, r *http.Request) error {
	v, result := visitOf(r), found{Text: strings.TrimSpace(r.URL.Query().Get("q"))}
	if to := objectPage(result.Text); to != "" {
		d.redirect(w, r, to)
		return nil
	}
	err := d.find(r, v, &result)
	if result.Error, err = detail(err); err != nil {
		return err
	}
	switch {
	case len(result.Invoices) == 1 && len(result.Payments) == 0:
		d.redirect(w, r, id("/dashboard/invoices", result.Invoices[0].ID))
	case len(result.Payments) == 1 && len(result.Invoices) == 0:
		d.redirect(w, r, id("/dashboard/payments", result.Payments[0].ID))
	default:
		return d.render(w, r, status(result.Error), "search.html", "search.title", result)
	}
	return nil
}

// find adds the invoices and the payments that a text names. Payments of the invoices that
// are found are left out.
func (d *Dashboard) find(r *http.Request, v *visit, result *found) error {
	if result.Text == "" {
		return nil
	}
	query := v.query()
	query.Set("q", result.Text)
	query.Set("limit", strconv.Itoa(maxFound))
	var invoices apitypes.InvoiceList
	if err := d.service.get(r.Context(), "/api/invoices", query, &invoices); err != nil {
		return err
	}
	result.Invoices = d.invoiceRows(invoices.Invoices)
	hash, err := invoice.ParseHash(strings.ToLower(result.Text))
	if err != nil || !v.Can(access.PaymentsRead) {
		return nil //nolint:nilerr // the text is no hash of a transaction
	}
	query = v.query()
	for name, value := range map[string]string{"txHash": hash.String(), "include": "pending,unattributed", "limit": strconv.Itoa(maxFound)} {
		query.Set(name, value)
	}
	return d.findPayments(r, query, result)
}

// findPayments adds the payments of a query that belong to none of the invoices.
func (d *Dashboard) findPayments(r *http.Request, query url.Values, result *found) error {
	var payments apitypes.PaymentList
	if err := d.service.get(r.Context(), "/api/payments", query, &payments); err != nil {
		return err
	}
	listed := make(map[string]bool)
	for _, inv := range result.Invoices {
		listed[inv.ID] = true
	}
	for _, p := range payments.Payments {
		if !listed[p.InvoiceID] {
			result.Payments = append(result.Payments, d.paymentRow(p))
		}
	}
	return nil
}
