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

// CustomerReader reads customers from the database. ledger.Reader implements it.
type CustomerReader interface {
	// Customers lists customers of a merchant, in the order of their keys.
	Customers(ctx context.Context, f ledger.CustomerFilter) ([]ledger.Customer, error)
	// FindCustomers returns customers of a merchant with an id or an e-mail address that begins with a
	// text.
	FindCustomers(ctx context.Context, merchantID, text string, limit int) ([]ledger.Customer, error)
}

// listCustomers answers GET /api/customers.
func (a *API) listCustomers(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	limit, scope := q.limit(), q.scope("customers", "merchantId")
	merchantID, possible := q.merchantID()
	if merchantID == "" {
		q.reject("merchantId", "is required with a key of the operator")
	}
	after, err := a.customerAfter(r.Context(), q, scope, merchantID)
	if err != nil {
		return err
	}
	text, search := q.get("q")
	if search {
		possible = possible && invoice.CheckCustomerKey(text) == nil
		if _, given := q.get("cursor"); given {
			q.reject("cursor", "must not be combined with q")
		}
	}
	if q.err != nil {
		return q.err
	}
	return listing[ledger.Customer]{
		name: "customers", limit: limit,
		read: func(ctx context.Context, last *ledger.Customer, n int) (found []ledger.Customer, stopped string, err error) {
			switch {
			case !possible, search && last != nil:
				return nil, "", nil
			case search:
				found, err = a.findCustomers(ctx, merchantID, text, limit, wantsCSV(r))
			default:
				if last != nil {
					after = last.Key()
				}
				found, err = a.conf.Reader.Customers(ctx, ledger.CustomerFilter{MerchantID: merchantID, After: after, Limit: n})
			}
			if err != nil {
				return nil, "", fmt.Errorf("list customers: %w", err)
			}
			return found, "", nil
		},
		elements: elementsOf(Customer),
		table:    customerTable(),
		cursor: func(last *ledger.Customer, more bool) string {
			if search || !more || last == nil {
				return ""
			}
			return formatCursor(scope, last.NewestInvoice)
		},
	}.serve(a, w, r)
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
func (a *API) eraseCustomer(w http.ResponseWriter, r *http.Request) error {
	o, once, err := readOnce[apitypes.EraseCustomerRequest](w, r)
	if err != nil {
		return err
	}
	merchantID, customer := "", ""
	err = cmp.Or(
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
	if err != nil {
		return fmt.Errorf("erase a customer: %w", err)
	}
	markReplay(w, *once.Replayed)
	return a.writeJSON(w, r, http.StatusOK, apitypes.ErasureResponse{Erasure: Erasure(e)}, nil)
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

// customer returns the filter of invoices by the key of a customer. possible is false if no
// customer can have it.
func (q *query) customer(merchantID string) (key string, possible bool) {
	key, given := q.get("customer")
	if given && merchantID == "" {
		q.reject("customer", "must be combined with merchantId")
	}
	return key, !given || invoice.CheckCustomerKey(key) == nil
}

// invoiceReport answers GET /api/reports/invoices.
func (a *API) invoiceReport(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	f, possible := q.invoiceFilter()
	if q.err != nil {
		return q.err
	}
	var made report.Invoices
	if possible {
		var err error
		if made, err = report.SumFiltered(r.Context(), a.conf.Reader, f, MaxSummedInvoices, a.decimals); err != nil {
			return fmt.Errorf("add invoices up: %w", err)
		}
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceReportResponse{Report: InvoiceReport(made)}, nil)
}
