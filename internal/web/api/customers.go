package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
)

// MaxFoundCustomers bounds the customers of an export that a text finds.
const MaxFoundCustomers = 1000

// listCustomers answers GET /api/customers.
func (a *API) listCustomers(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	merchantID, scope := q.merchantID(), q.scope("customers", "merchantId")
	if merchantID == "" {
		q.reject("merchantId", "is required with a key of the operator")
	}
	from, err := a.customerAfter(r.Context(), q, scope, merchantID)
	if err != nil {
		return err
	}
	list := listing[ledger.Customer]{
		name: "customers", query: q, scope: scope, elements: elementsOf(Customer), table: customerTable(),
		key: func(c *ledger.Customer) string { return c.NewestInvoice },
		find: func(ctx context.Context, _ string, n int) ([]ledger.Customer, string, error) {
			found, err := a.conf.Reader.Customers(ctx, ledger.CustomerFilter{MerchantID: merchantID, After: from, Limit: n})
			if len(found) > 0 {
				from = found[len(found)-1].Key()
			}
			return all(found, err)
		},
	}
	if text, search := q.get("q"); search {
		q.none = q.none || invoice.CheckCustomerKey(text) != nil
		if _, given := q.get("cursor"); given {
			q.reject("cursor", "must not be combined with q")
		}
		list = onePage(list.name, q, list.elements, func(ctx context.Context) ([]ledger.Customer, error) {
			return a.findCustomers(ctx, merchantID, text, q.limit(), wantsCSV(r))
		})
		list.table = customerTable()
	}
	return list.serve(a, w, r)
}

// findCustomers returns up to limit customers that a text finds. An export contains all of them, and
// is refused if there are too many.
func (a *API) findCustomers(ctx context.Context, merchantID, text string, limit int, export bool) ([]ledger.Customer, error) {
	if !export {
		return a.conf.Reader.FindCustomers(ctx, merchantID, text, limit)
	}
	found, err := a.conf.Reader.FindCustomers(ctx, merchantID, text, MaxFoundCustomers+1)
	if len(found) > MaxFoundCustomers {
		return nil, invalidField("q", "finds more than %d customers; give more of the id or the address, or export all", MaxFoundCustomers)
	}
	return found, err
}

// eraseCustomer answers POST /api/customers/erase.
func (a *API) eraseCustomer(w http.ResponseWriter, r *http.Request, o object, once ledger.Once) error {
	merchantID, customer := "", ""
	err := cmp.Or(
		optional(o, "merchantId", func(name string) error { return text(o, "", name, &merchantID, parseMerchantID) }),
		text(o, "", "customer", &customer, func(s string) (string, error) { return s, invoice.CheckCustomerKey(s) }),
	)
	if err != nil {
		return err
	}
	if merchantID, err = ownMerchant(r.Context(), merchantID); err != nil {
		return err
	}
	if merchantID == "" {
		return invalidField("merchantId", "is required with a key of the operator")
	}
	e, err := a.conf.Ledger.EraseCustomer(r.Context(), merchantID, customer, once)
	markReplay(w, once)
	return a.writeJSON(w, r, http.StatusOK, apitypes.ErasureResponse{Erasure: Erasure(e)}, db.During("erase a customer", err))
}

// customerAfter returns the key of the customer after which a page begins, or "". A cursor contains an
// invoice of that customer, because keys may be longer than cursors.
func (a *API) customerAfter(ctx context.Context, q *query, scope, merchantID string) (string, error) {
	id := q.cursor(scope)
	if id == "" {
		return "", nil
	}
	inv, err := a.conf.Reader.Invoice(ctx, id)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return "", fmt.Errorf("read the invoice of a cursor: %w", err)
	}
	if inv.MerchantID != merchantID || inv.Details.Customer.Key() == "" { // it was deleted or changed
		q.reject("cursor", wrongCursor)
	}
	return inv.Details.Customer.Key(), nil
}

// customer returns the filter of invoices by the key of a customer.
func (q *query) customer(merchantID string) string {
	key, given := q.get("customer")
	if given && merchantID == "" {
		q.reject("customer", "must be combined with merchantId")
	}
	q.none = q.none || given && invoice.CheckCustomerKey(key) != nil
	return key
}

// invoiceReport answers GET /api/reports/invoices.
func (a *API) invoiceReport(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	f := q.invoiceFilter()
	if q.err != nil {
		return q.err
	}
	var made report.Invoices
	var err error
	if !q.none {
		made, err = report.SumFiltered(r.Context(), a.conf.Reader, f, MaxSummedInvoices, a.decimals)
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceReportResponse{Report: InvoiceReport(made)}, db.During("add invoices up", err))
}

// Customer converts a customer of a merchant.
func Customer(c ledger.Customer) apitypes.CustomerRecord {
	return apitypes.CustomerRecord{
		Customer: c.Key(), MerchantID: c.MerchantID, ID: c.ID, Email: c.Email, NewestInvoiceID: c.NewestInvoice, InvoicedAt: invoice.UnixSeconds(c.InvoicedAt),
	}
}

// InvoiceReport converts the sums of invoices.
func InvoiceReport(r report.Invoices) apitypes.InvoiceReport {
	return apitypes.InvoiceReport{Truncated: r.Truncated, Lines: db.Each(r.Lines, func(l *report.InvoiceLine) apitypes.InvoiceReportLine {
		return apitypes.InvoiceReportLine{
			ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key), Invoices: l.Invoices, Amount: l.Amount.String(),
			Open: l.Open, OpenAmount: l.OpenAmount.String(), Expired: l.Expired, ExpiredAmount: l.ExpiredLeft.String(),
			AmountPaid: l.Paid.String(), AmountRefunded: l.Refunded.String(),
		}
	})}
}

// Erasure converts the erasure of a customer.
func Erasure(e ledger.Erasure) apitypes.Erasure {
	w := apitypes.Erasure{ID: e.ID, MerchantID: e.MerchantID, Status: apitypes.ErasureRunning, Invoices: e.Invoices, CreatedAt: invoice.UnixSeconds(e.CreatedAt)}
	if !e.FinishedAt.IsZero() {
		w.Status, w.FinishedAt = apitypes.ErasureDone, invoice.UnixSeconds(e.FinishedAt)
	}
	return w
}
