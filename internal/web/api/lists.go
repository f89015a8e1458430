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

// getInvoice answers GET /api/invoices/{id}.
func (a *API) getInvoice(w http.ResponseWriter, r *http.Request) error {
	q := &query{values: r.URL.Query()}
	wait, long := q.invoiceWait()
	if q.err != nil {
		return q.err
	}
	read := a.visibleInvoice
	if long {
		read = func(_ context.Context, id string) (invoice.Invoice, error) { return a.awaitInvoice(w, r, id, wait) }
	}
	inv, err := read(r.Context(), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceResponse{Invoice: apiconv.Invoice(inv)}, err)
}

// listInvoices answers GET /api/invoices.
func (a *API) listInvoices(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	if q.values.Has("q") {
		text, merchantID := q.search()
		return onePage("invoices", q, elementsOf(apiconv.Invoice), func(ctx context.Context) ([]invoice.Invoice, error) {
			return a.conf.Reader.FindInvoices(ctx, text, merchantID, q.limit())
		}).serve(a, w, r)
	}
	filter := q.invoiceFilter()
	return listing[invoice.Invoice]{
		name: "invoices", query: q, scope: q.scope("invoices", "merchantId", "status"), elements: elementsOf(apiconv.Invoice), table: a.invoiceTable(),
		key: func(inv *invoice.Invoice) string { return inv.ID },
		find: func(ctx context.Context, before string, n int) ([]invoice.Invoice, string, error) {
			filter.Before, filter.Limit = before, n
			return a.conf.Reader.Invoices(ctx, filter)
		},
	}.serve(a, w, r)
}

// search returns the parameters of a search, which takes no others.
func (q *query) search() (text, merchantID string) {
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains([]string{"q", "merchantId", "limit"}, name) {
			q.reject("q", "must not be combined with %s", name)
		}
	}
	text, _ = q.get("q")
	if err := invoice.CheckLabel("q", text); err != nil && q.err == nil {
		q.err = err
	}
	return text, q.merchantID()
}

// onePage is a listing of rows that are found at once, without a nextCursor.
func onePage[T any](name string, q *query, elements func(context.Context, []T) ([]any, error), find func(context.Context) ([]T, error)) listing[T] {
	return listing[T]{name: name, query: q, elements: elements, find: func(ctx context.Context, _ string, _ int) ([]T, string, error) {
		q.none = true // after this part, which has all
		return all(find(ctx))
	}}
}

// listInvoicePayments answers GET /api/invoices/{id}/payments.
func (a *API) listInvoicePayments(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := a.visibleInvoice(r.Context(), id); err != nil {
		return err
	}
	return a.paymentPage(parseQuery(r), "payments of "+id, ledger.PaymentFilter{InvoiceID: id, IncludePending: true}, shownMembers{details: true, notes: true}, w, r)
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

// addLost marks the payments without an invoice that were made for invoices that the database has lost.
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
	back, err := a.conf.Reader.AmountsRefunded(ctx, db.Each(payments, func(p apitypes.Payment) string { return p.ID }))
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

// Values of the parameter include, for payments that are not confirmed or not attributed.
const (
	includePending      = "pending"
	includeUnattributed = "unattributed"
)

// listPayments answers GET /api/payments.
func (a *API) listPayments(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	if q.values.Has("q") {
		text, merchantID := q.search()
		return onePage("payments", q, func(ctx context.Context, rows []ledger.PaymentRow) ([]any, error) {
			return a.fromPayments(ctx, rows, merchantID, shownMembers{details: true})
		}, func(ctx context.Context) ([]ledger.PaymentRow, error) {
			return a.conf.Reader.FindPayments(ctx, text, merchantID, q.limit())
		}).serve(a, w, r)
	}
	include := q.set("include", includePending, includeUnattributed)
	filter := q.paymentFilter(a.chains)
	filter.IncludePending, filter.IncludeUnattributed = slices.Contains(include, includePending), slices.Contains(include, includeUnattributed)
	candidates, named := q.flag("candidates")
	show := shownMembers{details: len(include) > 0, candidates: filter.IncludeUnattributed && (candidates || !named)}
	return a.paymentPage(q, q.scope("payments", "merchantId", "chainKey", "include"), filter, show, w, r)
}

// shownMembers selects the optional members of the payments in a list.
type shownMembers struct {
	details    bool
	notes      bool // of attributions by hand, each a query
	candidates bool // of unattributed payments, with claims
}

// paymentPage answers with a page of the payments that match a filter.
func (a *API) paymentPage(q *query, scope string, filter ledger.PaymentFilter, show shownMembers, w http.ResponseWriter, r *http.Request) error {
	if before := q.cursor(scope); before != "" {
		if _, ok := filter.ParsePosition(before); !ok {
			q.reject("cursor", wrongCursor)
		}
	}
	return listing[ledger.PaymentRow]{
		name: "payments", query: q, scope: scope, table: a.paymentTable(),
		key: func(p *ledger.PaymentRow) string { return filter.Position(*p).String() },
		find: func(ctx context.Context, before string, n int) ([]ledger.PaymentRow, string, error) {
			filter.Before, _ = filter.ParsePosition(before)
			filter.Limit = n
			found, examined, err := a.conf.Reader.Payments(ctx, filter)
			return found, examined.String(), err
		},
		elements: func(ctx context.Context, rows []ledger.PaymentRow) ([]any, error) {
			return a.fromPayments(ctx, rows, filter.MerchantID, show)
		},
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
	return db.Each(payments, func(p apitypes.Payment) any { return p }), nil
}

// stoppedCursor returns the nextCursor of a page that ended before it was full, because
// db.MaxExamined rows were examined. key is the key of the last of these, or empty.
func stoppedCursor(scope, key string) string {
	if key == "" {
		return ""
	}
	return formatCursor(scope, key)
}

// descendingCursor returns the nextCursor of a list in the order of a key. It is empty on the last page, and without a key.
func descendingCursor[T any](scope string, key func(*T) string) func(last *T, more bool) string {
	return func(last *T, more bool) string {
		if !more || last == nil || key == nil {
			return ""
		}
		return formatCursor(scope, key(last))
	}
}

// enumerate joins the values with commas, for error texts.
func enumerate[T ~string](values []T) string {
	return strings.Join(db.Each(values, func(v T) string { return string(v) }), ", ")
}
