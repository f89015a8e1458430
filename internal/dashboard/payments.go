package dashboard

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// paymentFilters are the parameters of the list of payments that the REST interface takes.
var paymentFilters = []string{"chainKey", "invoiceId", "txHash", "from", "to", "amount"}

// paymentList is the list of payments.
type paymentList struct {
	transferList
	Rows []paymentRow
}

// transferList is what the lists of payments and refunds share.
type transferList struct {
	Filter   url.Values
	Networks []network
	Statuses []string
	Next     string // address of the next page, or empty
	Export   string // address of the CSV of what is filtered, or empty
	Error    string // what the interface refused of the filter, or empty
}

// network is a network by which a list is filtered.
type network struct{ Key, Name string }

// paymentRow is a payment in a list.
type paymentRow struct {
	apitypes.Payment
	Money, Refunded template.HTML // Refunded is empty if nothing was
	Network         string
}

// networks returns the networks of the service in the order of their names.
func (d *Dashboard) networks() []network {
	all := make([]network, 0, len(d.chains))
	for key := range d.chains {
		all = append(all, network{key, chain.NetworkName(key)})
	}
	slices.SortFunc(all, func(a, b network) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// payments lists payments, the last seen first.
func (d *Dashboard) payments(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	body := paymentList{transferList: transferList{Networks: d.networks()}}
	query := d.paymentQuery(v, r, &body.transferList)
	if to := objectPage(body.Filter.Get("q")); to != "" {
		d.redirect(w, r, to)
		return nil
	}
	var list apitypes.PaymentList
	err := d.service.get(r.Context(), "/api/payments", query, &list)
	if body.Error, err = detail(err); err != nil {
		return err
	}
	for _, p := range list.Payments {
		body.Rows = append(body.Rows, d.paymentRow(p))
	}
	body.Next = nextPage(v, body.Filter, list.NextCursor)
	return d.render(w, r, status(body.Error), "payments.html", "payments.title", body)
}

// exportPayments answers with the CSV of the filtered payments.
func (d *Dashboard) exportPayments(w http.ResponseWriter, r *http.Request) error {
	query := d.paymentQuery(visitOf(r), r, new(transferList))
	d.export(w, r, "/api/payments", query)
	return nil
}

// export answers with the CSV of a list of the interface, which is not limited to a page.
func (d *Dashboard) export(w http.ResponseWriter, r *http.Request, path string, query url.Values) {
	query.Del("limit")
	query.Del("cursor")
	d.service.pass(w, r, path, query, http.Header{"Accept": {"text/csv"}})
}

// paymentQuery returns the query of the interface for the filters of a request, and sets
// them in the list. The filter show is empty for all payments, and counted for the
// confirmed ones of invoices.
func (d *Dashboard) paymentQuery(v *visit, r *http.Request, list *transferList) url.Values {
	query := v.query()
	list.Filter = filtered(r, query, paymentFilters)
	asked := r.URL.Query()
	for _, name := range []string{"q", "show", "after", "before"} {
		if value := strings.TrimSpace(asked.Get(name)); value != "" {
			list.Filter.Set(name, value)
		}
	}
	list.Export = filteredPage(v, "/dashboard/payments.csv", list.Filter)
	d.searched(query, list.Filter.Get("q"))
	if list.Filter.Get("show") != "counted" {
		query.Set("include", "pending,unattributed")
	}
	for name, filter := range map[string]string{"confirmedAfter": "after", "confirmedBefore": "before"} {
		if day := list.Filter.Get(filter); day != "" {
			query.Set(name, dayText(day, filter == "before"))
		}
	}
	return query
}

// searched adds the filter that a text is for to the query: the hash of a transaction, the
// account of a payer, the id of an invoice, or an amount.
func (d *Dashboard) searched(query url.Values, text string) {
	switch {
	case text == "":
	case strings.HasPrefix(text, invoice.PrefixInvoice):
		query.Set("invoiceId", text)
	case strings.HasPrefix(text, "0x") && len(text) > len(invoice.Address{}.String()):
		query.Set("txHash", strings.ToLower(text))
	case strings.HasPrefix(text, "0x"):
		query.Set("from", text)
	default:
		query.Set("amount", minorUnits(text, d.anyDecimals()))
	}
}

// anyDecimals returns the decimals of the service's tokens: the most, should they differ.
func (d *Dashboard) anyDecimals() int {
	decimals := 0
	for _, ch := range d.chains {
		for _, token := range ch.Tokens {
			decimals = max(decimals, token.Decimals)
		}
	}
	return decimals
}

// minorUnits returns an amount that a person typed in units of a token, such as 12.50, in
// minor units. A text that is no amount is returned as it is, for the interface to refuse it.
func minorUnits(text string, decimals int) string {
	amount, err := invoice.ParseDecimal(strings.ReplaceAll(text, ",", "."), decimals)
	if err != nil {
		return text
	}
	return amount.String()
}

// dayText returns the Unix time at which a day begins, such as 2026-11-23 by UTC, or the one
// after it. A text that is no day is returned as it is, for the interface to refuse it.
func dayText(day string, end bool) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	if end {
		at = at.AddDate(0, 0, 1)
	}
	return strconv.FormatInt(at.Unix(), 10)
}

// objectPage returns the page of the payment or refund that a text is the id of, or "".
func objectPage(text string) string {
	switch {
	case strings.HasPrefix(text, invoice.PrefixPayment):
		return id("/dashboard/payments", text)
	case strings.HasPrefix(text, invoice.PrefixRefund):
		return id("/dashboard/refunds", text)
	}
	return ""
}

// status returns the status of a page that shows an error of the interface, or none.
func status(detail string) int {
	if detail != "" {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func (d *Dashboard) paymentRow(p apitypes.Payment) paymentRow {
	row := paymentRow{Payment: p, Money: d.money(p.Amount, p.Currency, p.ChainKey), Network: chain.NetworkName(p.ChainKey)}
	if p.AmountRefunded != "" {
		row.Refunded = d.money(p.AmountRefunded, p.Currency, p.ChainKey)
	}
	row.Status = apitypes.PaymentStatus(cmp.Or(string(row.Status), string(apitypes.PaymentConfirmed)))
	return row
}

// paymentPage is the page of a payment.
type paymentPage struct {
	paymentRow
	Explorer   string // address of the transaction in the block explorer, or empty
	Candidates []candidateRow
	Refunds    []refundRow
	Form       attributionForm
	Refundable bool // something is left of it, and it is final
}

// candidateRow is an invoice that a payment may be meant for.
type candidateRow struct {
	apitypes.PaymentCandidate
	Money, Difference template.HTML // Difference is empty if the amounts fit
	Less              bool          // the payment is less than the invoice
	Claim             *apitypes.Claim
}

// attributionForm is what a person typed to attribute a payment.
type attributionForm struct{ InvoiceID, Note, Error string }

// attributionPart is what the template attribute shows.
type attributionPart struct {
	Page       *visit
	Candidates []candidateRow
	PaymentID  string
	Form       attributionForm
}

// payment shows a payment.
func (d *Dashboard) payment(w http.ResponseWriter, r *http.Request) error {
	return d.showPayment(w, r, http.StatusOK, attributionForm{})
}

func (d *Dashboard) showPayment(w http.ResponseWriter, r *http.Request, code int, form attributionForm) error {
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	body := paymentPage{paymentRow: d.paymentRow(p), Explorer: d.explorer(p.ChainKey, p.TxHash), Form: form, Candidates: d.candidates(p)}
	body.Refundable = p.Status == apitypes.PaymentConfirmed && p.AmountRefunded != p.Amount
	var refunds apitypes.RefundList
	if err := d.service.get(r.Context(), id("/api/payments", p.ID)+"/refunds", nil, &refunds); err != nil {
		return err
	}
	for _, refund := range refunds.Refunds {
		body.Refunds = append(body.Refunds, d.refundRow(refund))
	}
	return d.render(w, r, code, "payment.html", "payment.title", body)
}

// explorer returns the address of a transaction in the block explorer of its chain, or "".
func (d *Dashboard) explorer(chainKey, tx string) string {
	hash, err := invoice.ParseHash(tx)
	if err != nil {
		return ""
	}
	return d.chains[chainKey].TransactionURL(hash)
}

// candidates returns the invoices that a payment may be meant for: those that payers claim it
// for, and then the nearest ones.
func (d *Dashboard) candidates(p apitypes.Payment) []candidateRow {
	var claimed, near []candidateRow
	claims := make(map[string]*apitypes.Claim)
	for _, c := range p.Claims {
		claims[c.InvoiceID] = &c
	}
	for _, c := range p.Candidates {
		row := candidateRow{PaymentCandidate: c, Money: d.money(c.Amount, p.Currency, p.ChainKey), Claim: claims[c.InvoiceID]}
		difference, less := strings.CutPrefix(c.AmountDifference, "-")
		if row.Less = less; difference != "0" {
			row.Difference = d.money(difference, p.Currency, p.ChainKey)
		}
		if row.Claim != nil {
			claimed = append(claimed, row)
		} else {
			near = append(near, row)
		}
		delete(claims, c.InvoiceID)
	}
	for _, c := range p.Claims {
		if claims[c.InvoiceID] != nil { // of no candidate
			claimed = append(claimed, candidateRow{PaymentCandidate: apitypes.PaymentCandidate{InvoiceID: c.InvoiceID, MerchantID: c.MerchantID}, Claim: &c})
		}
	}
	return append(claimed, near...)
}

// attribute attributes a payment to the invoice that a person chose or typed.
func (d *Dashboard) attribute(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	v := visitOf(r)
	form := attributionForm{InvoiceID: strings.TrimSpace(r.PostFormValue("invoiceId")), Note: strings.TrimSpace(r.PostFormValue("note"))}
	err := d.service.send(r.Context(), http.MethodPost, id("/api/payments", r.PathValue("id"))+"/attribution", apitypes.AttributePaymentRequest{
		InvoiceID: form.InvoiceID, By: v.principal.Label(), Note: form.Note,
	}, nil)
	if form.Error, err = detail(err); err != nil {
		return err
	}
	if form.Error != "" {
		return d.showPayment(w, r, http.StatusConflict, form)
	}
	d.redirect(w, r, id("/dashboard/payments", r.PathValue("id")))
	return nil
}
