package dashboard

import (
	"cmp"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/web/webpage"
)

// maxFound bounds the invoices and the payments that a search shows.
const maxFound = 50

// found is the result of a search.
type found struct {
	Text     string
	Invoices []apitypes.Invoice
	Payments []apitypes.Payment
	Error    string // refusal of the text by the interface, or empty
}

// Short reports whether the text is too short a beginning of a hash or an address for the interface to find it. It is for
// templates.
func (f found) Short() bool { return strings.HasPrefix(f.Text, "0x") && len(f.Text) < 10 }

// search finds the objects that a text names: invoices and payments by anything that their lists' q takes and by their
// amount, and a refund by its id. It leads to the page of a single result.
func (d *Dashboard) search(w http.ResponseWriter, r *http.Request) error {
	v, result := visitOf(r), found{Text: strings.TrimSpace(r.URL.Query().Get("q"))}
	if to := objectPage(result.Text); to != "" {
		return d.redirect(w, r, nil, to)
	}
	err := d.find(r, v, &result)
	if result.Error, err = detail(err); err != nil {
		return err
	}
	switch {
	case len(result.Invoices) == 1 && len(result.Payments) == 0:
		return d.redirect(w, r, nil, id("/dashboard/invoices", result.Invoices[0].ID))
	case len(result.Payments) == 1 && len(result.Invoices) == 0:
		return d.redirect(w, r, nil, id("/dashboard/payments", result.Payments[0].ID))
	}
	return d.render(w, r, status(result.Error), "search.html", "search.title", result)
}

// maxSuggested bounds the invoices and the payments that are suggested while a person types.
const maxSuggested = 6

// suggestion is a page that is suggested while a person types.
type suggestion struct {
	Page   string `json:"page"`   // address
	Title  string `json:"title"`  // such as an amount
	Detail string `json:"detail"` // such as a state and a reference
}

// suggest answers with the pages that the search would show, as JSON.
func (d *Dashboard) suggest(w http.ResponseWriter, r *http.Request) error {
	v, result := visitOf(r), found{Text: strings.TrimSpace(r.URL.Query().Get("q"))}
	all := make([]suggestion, 0, 2*maxSuggested)
	if to := objectPage(result.Text); to != "" {
		all = append(all, suggestion{Page: v.Link(to), Title: result.Text})
	} else if _, err := detail(d.find(r, v, &result)); err != nil {
		return err
	}
	for _, inv := range result.Invoices[:min(len(result.Invoices), maxSuggested)] {
		all = append(all, suggestion{
			v.Link(id("/dashboard/invoices", inv.ID)), plain(v.money(inv.Amount, inv.Currency)), v.value("invoice.status", string(inv.Status)) + " · " + cmp.Or(inv.Reference, short(inv.ID)),
		})
	}
	for _, p := range result.Payments[:min(len(result.Payments), maxSuggested)] {
		all = append(all, suggestion{v.Link(id("/dashboard/payments", p.ID)), plain(v.money(p.Amount, p.Currency)), v.value("payment.status", string(p.Status)) + " · " + short(p.TxHash)})
	}
	return d.WriteJSON(w, r, http.StatusOK, all)
}

// plain returns the text of an amount in HTML.
func plain(money template.HTML) string {
	return html.UnescapeString(tags.ReplaceAllString(string(money), ""))
}

// tags matches the elements of amounts. The texts of amounts are escaped.
var tags = regexp.MustCompile("<[^>]*>")

// value returns the text of a value of a kind, or the value.
func (v *visit) value(kind, value string) string {
	if id := kind + "." + value; v.text.T(id, nil) != id {
		return v.text.T(id, nil)
	}
	return value
}

// find adds the invoices and the payments that a text names, or that have it as amount. It omits payments of the found
// invoices.
func (d *Dashboard) find(r *http.Request, v *visit, result *found) error {
	if result.Text == "" {
		return nil
	}
	named := v.query()
	named.Set("q", result.Text)
	queries := []url.Values{named}
	if amount, ok := v.amount(result.Text); ok {
		query := v.query()
		query.Set("amount", amount)
		queries = append(queries, query)
	}
	for _, query := range queries {
		query.Set("limit", strconv.Itoa(maxFound))
		var invoices apitypes.InvoiceList
		if err := d.service.get(r.Context(), "/api/invoices", query, &invoices); err != nil {
			return err
		}
		for _, inv := range invoices.Invoices {
			if !slices.ContainsFunc(result.Invoices, func(row apitypes.Invoice) bool { return row.ID == inv.ID }) {
				result.Invoices = append(result.Invoices, inv)
			}
		}
		if !v.Can(access.PaymentsRead) {
			continue
		}
		if query.Has("amount") {
			query.Set("include", "pending,unattributed")
			query.Set("candidates", "false")
		}
		if err := d.findPayments(r, query, result); err != nil {
			return err
		}
	}
	return nil
}

// amount returns an amount in minor units that a person typed, such as 12.50 or 12.50 USDC, and whether it is one.
func (v *visit) amount(text string) (minor string, ok bool) {
	typed, _, _ := strings.Cut(text, " ")
	if last := strings.TrimSpace(strings.TrimPrefix(text, typed)); strings.ContainsFunc(last, unicode.IsDigit) {
		typed = text // with spaces between its digits
	}
	amount, err := webpage.ParseAmount(typed, v.text.Lang(), chain.TokenDecimals)
	return amount.String(), err == nil && !amount.IsZero()
}

// findPayments adds the payments of a query that do not belong to one of the invoices.
func (d *Dashboard) findPayments(r *http.Request, query url.Values, result *found) error {
	var payments apitypes.PaymentList
	if err := d.service.get(r.Context(), "/api/payments", query, &payments); err != nil {
		return err
	}
	for _, p := range payments.Payments {
		listed := slices.ContainsFunc(result.Invoices, func(row apitypes.Invoice) bool { return row.ID == p.InvoiceID }) ||
			slices.ContainsFunc(result.Payments, func(row apitypes.Payment) bool { return row.ID == p.ID })
		if !listed {
			result.Payments = append(result.Payments, withStatus(p))
		}
	}
	return nil
}
