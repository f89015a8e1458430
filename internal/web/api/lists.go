package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// pathID returns the id in the request's path. An id without the prefix is not found; it
// is not looked up, because not every text is valid in a database.
func pathID(r *http.Request, prefix string) (string, error) {
	id := r.PathValue("id")
	if !strings.HasPrefix(id, prefix) || len(id) > maxObjectID || !isVisibleASCII(id) {
		return "", fmt.Errorf("%.80q: %w", id, db.ErrNotFound)
	}
	return id, nil
}

// getInvoice answers GET /api/invoices/{id}.
func (a *API) getInvoice(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, invoice.PrefixInvoice)
	if err != nil {
		return err
	}
	q := &query{values: r.URL.Query()}
	wait, long := q.invoiceWait()
	if q.err != nil {
		return q.err
	}
	var inv invoice.Invoice
	if long {
		inv, err = a.awaitInvoice(w, r, id, wait)
	} else {
		inv, err = a.visibleInvoice(r.Context(), id)
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceResponse{Invoice: apiconv.Invoice(inv)}, err)
}

// listInvoices answers GET /api/invoices.
func (a *API) listInvoices(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	if q.values.Has("q") {
		return a.findInvoices(q, w, r)
	}
	limit, scope := q.limit(), q.scope("invoices", "merchantId", "status")
	filter, possible := q.invoiceFilter()
	filter.Before = q.cursor(scope)
	if q.err != nil {
		return q.err
	}
	return listing[invoice.Invoice]{
		name: "invoices", limit: limit,
		read: func(ctx context.Context, last *invoice.Invoice, n int) ([]invoice.Invoice, string, error) {
			if !possible {
				return nil, "", nil
			}
			if last != nil {
				filter.Before = last.ID
			}
			filter.Limit = n
			found, examined, err := a.conf.Reader.Invoices(ctx, filter)
			if err != nil {
				return nil, "", fmt.Errorf("list invoices: %w", err)
			}
			if examined != "" {
				filter.Before = examined
			}
			return found, stoppedCursor(scope, examined), nil
		},
		elements: elementsOf(apiconv.Invoice),
		table:    a.invoiceTable(),
		cursor:   descendingCursor(scope, func(inv *invoice.Invoice) string { return inv.ID }),
	}.serve(a, w, r)
}

// findInvoices answers GET /api/invoices with q.
func (a *API) findInvoices(q *query, w http.ResponseWriter, r *http.Request) error {
	text, merchantID, limit, possible := q.search()
	if q.err != nil {
		return q.err
	}
	var found []invoice.Invoice
	if possible {
		var err error
		if found, err = a.conf.Reader.FindInvoices(r.Context(), text, merchantID, limit); err != nil {
			return fmt.Errorf("find invoices: %w", err)
		}
	}
	return onePage("invoices", limit, found, elementsOf(apiconv.Invoice)).serve(a, w, r)
}

// findPayments answers GET /api/payments with q.
func (a *API) findPayments(q *query, w http.ResponseWriter, r *http.Request) error {
	text, merchantID, limit, possible := q.search()
	if q.err != nil {
		return q.err
	}
	var found []ledger.PaymentRow
	if possible {
		var err error
		if found, err = a.conf.Reader.FindPayments(r.Context(), text, merchantID, limit); err != nil {
			return fmt.Errorf("find payments: %w", err)
		}
	}
	return onePage("payments", limit, found, func(ctx context.Context, rows []ledger.PaymentRow) ([]any, error) {
		return a.fromPayments(ctx, rows, merchantID, shownMembers{details: true})
	}).serve(a, w, r)
}

// search returns the parameters of a search, which takes no others.
func (q *query) search() (text, merchantID string, limit int, possible bool) {
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains([]string{"q", "merchantId", "limit"}, name) {
			q.reject("q", "must not be combined with %s", name)
		}
	}
	text, _ = q.get("q")
	if err := invoice.CheckLabel("q", text); err != nil && q.err == nil {
		q.err = err
	}
	limit = q.limit()
	merchantID, possible = q.merchantID()
	return text, merchantID, limit, possible
}

// onePage is a listing of rows that were found at once, without a nextCursor.
func onePage[T any](name string, limit int, found []T, elements func(context.Context, []T) ([]any, error)) listing[T] {
	return listing[T]{
		name: name, limit: limit,
		read: func(_ context.Context, _ *T, n int) ([]T, string, error) {
			part := found[:min(n, len(found))]
			found = found[len(part):]
			return part, "", nil
		},
		elements: elements,
		cursor:   func(*T, bool) string { return "" },
	}
}

// listInvoicePayments answers GET /api/invoices/{id}/payments.
func (a *API) listInvoicePayments(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, invoice.PrefixInvoice)
	if err != nil {
		return err
	}
	if _, err := a.visibleInvoice(r.Context(), id); err != nil {
		return err
	}
	return a.paymentPage(parseQuery(r), "payments of "+id, ledger.PaymentFilter{InvoiceID: id, IncludePending: true}, true, shownMembers{details: true, notes: true}, w, r)
}

// getPayment answers GET /api/payments/{id}.
func (a *API) getPayment(w http.ResponseWriter, r *http.Request) error {
	p, err := a.visiblePayment(r)
	if err != nil {
		return err
	}
	found, err := a.fromPayments(r.Context(), []ledger.PaymentRow{p}, access.FromContext(r.Context()).MerchantID, shownMembers{details: true, notes: true, candidates: true})
	if err != nil {
		return err
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.PaymentResponse{Payment: found[0].(apitypes.Payment)}, nil)
}

// checkSees returns db.ErrNotFound unless the principal may see the payment: one of its
// merchant's invoices, or one without an invoice that an address of the merchant got.
func (a *API) checkSees(ctx context.Context, p ledger.PaymentRow) error {
	by := access.FromContext(ctx)
	if by.Sees(p.MerchantID) {
		return nil
	}
	sees, err := a.conf.Reader.SeesPayment(ctx, by.MerchantID, p)
	if err == nil && !sees {
		err = db.ErrNotFound
	}
	return err
}

// writePayment answers with a detailed payment.
func (a *API) writePayment(w http.ResponseWriter, r *http.Request, p invoice.Payment) error {
	detailed := []apitypes.Payment{apiconv.Payment(p, true)}
	if err := a.addRefunds(r.Context(), detailed); err != nil {
		return err
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.PaymentResponse{Payment: detailed[0]}, nil)
}

// addLost marks the payments without an invoice that were made for invoices that the database has
// lost.
func (a *API) addLost(ctx context.Context, list []apitypes.Payment, found []ledger.PaymentRow) error {
	var loose []invoice.Payment
	for _, p := range found {
		if !p.Attributed() && !p.InOtherCurrency() {
			loose = append(loose, p.Payment)
		}
	}
	if len(loose) == 0 {
		return nil
	}
	lost, err := a.conf.Reader.LostPayments(ctx, loose)
	for i, p := range list {
		if id, ok := lost[p.ID]; ok {
			apiconv.OfLostInvoice(&list[i], id)
		}
	}
	return err
}

// addRefunds adds the refunded amounts to the payments.
func (a *API) addRefunds(ctx context.Context, payments []apitypes.Payment) error {
	ids := make([]string, len(payments))
	for i, p := range payments {
		ids[i] = p.ID
	}
	back, err := a.conf.Reader.AmountsRefunded(ctx, ids)
	if err != nil {
		return fmt.Errorf("read refunds: %w", err)
	}
	for i, p := range payments {
		if sum, ok := back[p.ID]; ok {
			payments[i].AmountRefunded = sum.String()
		}
	}
	return nil
}

// Values of the parameter include, for payments that are not confirmed or not
// attributed.
const (
	includePending      = "pending"
	includeUnattributed = "unattributed"
)

// listPayments answers GET /api/payments.
func (a *API) listPayments(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	if _, search := q.get("q"); search {
		return a.findPayments(q, w, r)
	}
	include := q.set("include", includePending, includeUnattributed)
	filter, possible := q.paymentFilter(a.chains)
	filter.IncludePending, filter.IncludeUnattributed = slices.Contains(include, includePending), slices.Contains(include, includeUnattributed)
	candidates, named := q.flag("candidates")
	show := shownMembers{details: len(include) > 0, candidates: filter.IncludeUnattributed && (candidates || !named)}
	return a.paymentPage(q, q.scope("payments", "merchantId", "chainKey", "include"), filter, possible, show, w, r)
}

// shownMembers selects the optional members of the payments in a list.
type shownMembers struct {
	details    bool
	notes      bool // of attributions by hand, each a query
	candidates bool // of unattributed payments, with claims
}

// paymentPage answers with a page of the payments that match a filter.
func (a *API) paymentPage(q *query, scope string, filter ledger.PaymentFilter, possible bool, show shownMembers, w http.ResponseWriter, r *http.Request) error {
	limit, before := q.limit(), q.cursor(scope)
	if before != "" {
		var ok bool
		if filter.Before, ok = filter.ParsePosition(before); !ok {
			q.reject("cursor", wrongCursor)
		}
	}
	if q.err != nil {
		return q.err
	}
	return listing[ledger.PaymentRow]{
		name: "payments", limit: limit,
		read: func(ctx context.Context, last *ledger.PaymentRow, n int) ([]ledger.PaymentRow, string, error) {
			if !possible {
				return nil, "", nil
			}
			if last != nil {
				filter.Before = filter.Position(*last)
			}
			filter.Limit = n
			found, examined, err := a.conf.Reader.Payments(ctx, filter)
			if err != nil {
				return nil, "", fmt.Errorf("list payments: %w", err)
			}
			if examined.String() != "" {
				filter.Before = examined
			}
			return found, stoppedCursor(scope, examined.String()), nil
		},
		elements: func(ctx context.Context, rows []ledger.PaymentRow) ([]any, error) {
			return a.fromPayments(ctx, rows, filter.MerchantID, show)
		},
		table:  a.paymentTable(),
		cursor: descendingCursor(scope, func(p *ledger.PaymentRow) string { return filter.Position(*p).String() }),
	}.serve(a, w, r)
}

// fromPayments converts payments for a list of a merchant, or of all if merchantID is empty.
func (a *API) fromPayments(ctx context.Context, rows []ledger.PaymentRow, merchantID string, show shownMembers) ([]any, error) {
	payments := make([]apitypes.Payment, len(rows))
	for i, p := range rows {
		payments[i] = apiconv.Payment(p.Payment, show.details)
		if by := payments[i].Attribution; show.notes && by != nil && p.Method == invoice.ByHand {
			by.Note = p.Note
		}
	}
	if show.details && len(payments) > 0 {
		if err := a.addRefunds(ctx, payments); err != nil {
			return nil, err
		}
		if err := a.addLost(ctx, payments, rows); err != nil {
			return nil, err
		}
	}
	if show.candidates && len(payments) > 0 {
		if err := a.addCandidates(ctx, payments, rows, merchantID); err != nil {
			return nil, err
		}
	}
	out := make([]any, len(payments))
	for i, p := range payments {
		out[i] = p
	}
	return out, nil
}

// stoppedCursor returns the nextCursor of a page that ended before it was full, because
// db.MaxExamined rows were examined. key is the key of the last of these, or empty.
func stoppedCursor(scope, key string) string {
	if key == "" {
		return ""
	}
	return formatCursor(scope, key)
}

// descendingCursor returns the nextCursor of a list in descending order. It is empty on
// the last page.
func descendingCursor[T any](scope string, key func(*T) string) func(last *T, more bool) string {
	return func(last *T, more bool) string {
		if !more || last == nil {
			return ""
		}
		return formatCursor(scope, key(last))
	}
}

// enumerate joins the values with commas, for error texts.
func enumerate[T ~string](values []T) string {
	var text strings.Builder
	for i, value := range values {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(string(value))
	}
	return text.String()
}
