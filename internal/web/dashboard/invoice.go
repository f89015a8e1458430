package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// maxPaymentsShown bounds the payments and the refunds on the page of an invoice.
const maxPaymentsShown = 50

// invoiceView is the page of an invoice.
type invoiceView struct {
	apitypes.Invoice
	// AllUnattributed is the address of a list with more payments than were looked at for Unattributed, or empty.
	AllUnattributed string
	Checkout        string // address of the payer's page; empty of a draft
	Code            *webpage.QRCode
	Payments        []apitypes.Payment
	Refunds         []apitypes.RefundRecord
	Mails           []apitypes.Mail
	Mail            *mailForm // nil if the invoice cannot be sent
	Timeline        []apitypes.TimelineEntry
	MoreMoments     string // address of the page with the rest of the timeline, or empty
	Truncated       bool   // the timeline is incomplete
	MorePayments    bool
	invoiceActs
	Error string // why an action was refused, or empty
}

// showInvoice shows the invoice of a request, with the reason why an action was refused, if any.
func (d *Dashboard) showInvoice(w http.ResponseWriter, r *http.Request, status int, refused string) error {
	v, inv := visitOf(r), d.findInvoice(r)
	view := invoiceView{Invoice: inv, Error: refused}
	if inv.Status != apitypes.StatusDraft {
		view.Checkout = d.publicURL(r) + "/checkout/" + inv.ID
	}
	if inv.Status == apitypes.StatusOpen {
		code, err := webpage.NewQRCode(view.Checkout)
		if err != nil {
			return err
		}
		view.Code = &code
	}
	if v.Can(access.PaymentsRead) {
		d.addTransfers(r, &view)
		d.addActs(r, &view)
	}
	d.addMails(r, &view)
	d.addTimeline(r, &view)
	return d.render(w, r, status, "invoice.html", "payments.invoice", view)
}

// findInvoice returns the invoice that the path of a request names.
func (d *Dashboard) findInvoice(r *http.Request) apitypes.Invoice {
	return get[apitypes.InvoiceResponse](d, r, id("/api/invoices", r.PathValue("id")), nil).Invoice
}

// addTransfers adds the payments and the refunds of an invoice to its page.
func (d *Dashboard) addTransfers(r *http.Request, view *invoiceView) {
	query := url.Values{"limit": {strconv.Itoa(maxPaymentsShown)}}
	payments := get[apitypes.PaymentList](d, r, id("/api/invoices", view.ID)+"/payments", query)
	query.Set("invoiceId", view.ID)
	refunds := get[apitypes.RefundList](d, r, "/api/refunds", query)
	view.Payments, view.Refunds, view.MorePayments = payments.Payments, refunds.Refunds, payments.NextCursor != "" || refunds.NextCursor != ""
}

// publicURL returns the base of the addresses of payers' pages: the configured one, or the address at
// which the person reached the dashboard.
func (d *Dashboard) publicURL(r *http.Request) string {
	return cmp.Or(d.cfg.PublicURL, d.reachedAt(r))
}

// reachedAt returns the base of the address at which the person reached the dashboard.
func (d *Dashboard) reachedAt(r *http.Request) string {
	if d.cfg.Secure {
		return "https://" + r.Host
	}
	return limits.BaseURL(r)
}

// object returns a handler that answers with an object of a folder as the REST interface shows it, indented.
func (d *Dashboard) object(folder string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var raw json.RawMessage
		if err := d.service.get(r.Context(), id(folder, r.PathValue("id")), nil, &raw); err != nil {
			return err
		}
		var text bytes.Buffer
		if err := json.Indent(&text, raw, "", "  "); err != nil {
			return fmt.Errorf("indent an object of %s: %w", folder, err)
		}
		d.Write(w, r, http.StatusOK, "application/json", text.Bytes())
		return nil
	}
}

// act returns a handler that makes a request about the invoice of a page, and leads to the invoice's page or, once it
// is deleted, to the list. If the interface refuses the request, the reason is shown on the invoice's page.
func (d *Dashboard) act(method, act string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return d.actOnInvoice(w, r, method, act, struct{}{})
	}
}

func (d *Dashboard) actOnInvoice(w http.ResponseWriter, r *http.Request, method, act string, body any) error {
	err := d.service.send(r.Context(), method, id("/api/invoices", r.PathValue("id"))+act, body, nil)
	then := id("/dashboard/invoices", r.PathValue("id"))
	if method == http.MethodDelete && act == "" {
		then = "/dashboard/invoices"
	}
	return d.outcome(w, r, err, d.showInvoice, then)
}

// showFunc shows a page, with the reason why an action was refused, if any.
type showFunc func(w http.ResponseWriter, r *http.Request, status int, refused string) error

// showing returns a handler that shows a page without a refusal or another result.
func showing[T any](show func(w http.ResponseWriter, r *http.Request, status int, result T) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var nothing T
		return show(w, r, http.StatusOK, nothing)
	}
}

// outcome leads to a page if err is nil, and shows a refusal of the interface on the page of the form. It returns other
// errors.
func (d *Dashboard) outcome(w http.ResponseWriter, r *http.Request, err error, show showFunc, path string) error {
	refused, err := detail(err)
	if refused != "" {
		return show(w, r, http.StatusConflict, refused)
	}
	return d.redirect(w, r, err, path)
}

// redirect leads to a page of the dashboard after a form was sent, if err is nil and all answers of get came. Else it
// returns the error.
func (d *Dashboard) redirect(w http.ResponseWriter, r *http.Request, err error, path string, pairs ...string) error {
	v := visitOf(r)
	if err = cmp.Or(v.err, err); err != nil {
		return err
	}
	return lead(w, r, v.Link(path, pairs...))
}

// maxMoments is how many entries of a timeline a page shows.
const maxMoments = 200

// addTimeline adds the timeline of an invoice to its page, from the cursor in the parameter timeline on.
func (d *Dashboard) addTimeline(r *http.Request, view *invoiceView) {
	query := url.Values{"limit": {strconv.Itoa(maxMoments)}}
	if cursor := r.URL.Query().Get("timeline"); cursor != "" {
		query.Set("cursor", cursor)
	}
	list := get[apitypes.Timeline](d, r, id("/api/invoices", view.ID)+"/timeline", query)
	view.Timeline, view.Truncated = list.Entries, list.Truncated
	if list.NextCursor != "" {
		view.MoreMoments = visitOf(r).Link("/dashboard/invoices/"+view.ID, "timeline", list.NextCursor)
	}
}

// invoiceList lists invoices, newest first. The filter q leads to the search.
var invoiceList = lister[apitypes.InvoiceList, apitypes.Invoice]{
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
	rows: func(list apitypes.InvoiceList) ([]apitypes.Invoice, string) {
		return list.Invoices, list.NextCursor
	},
}

// mailForm is the form that sends an invoice to the customer.
type mailForm struct {
	Address, Language string
	Languages         []*locale.Text
	Before, After     string // hours of the reminders
	Scheduled         bool   // a reminder is not due yet
}

// addMails adds the mails of an invoice to its page and, if it can be sent, the form.
func (d *Dashboard) addMails(r *http.Request, view *invoiceView) {
	v := visitOf(r)
	view.Mails = get[apitypes.MailList](d, r, id("/api/invoices", view.ID)+"/mails", nil).Mails
	if !d.cfg.MailsInvoices || view.Status != apitypes.StatusOpen || !v.Can(access.InvoicesWrite) {
		return
	}
	answer, _ := find[apitypes.MerchantResponse](d, r, id("/api/merchants", view.MerchantID)) // it may have no profile
	form := mailForm{Languages: locale.Languages(), Language: v.text.Lang()}
	form.Before, form.After = hoursTexts(answer.Merchant.ReminderHours)
	if view.Customer != nil {
		form.Address = view.Customer.Email
	}
	for _, m := range view.Mails {
		form.Language = m.Language
		form.Scheduled = form.Scheduled || m.Kind == apitypes.MailReminder && m.State == apitypes.MailWaiting
	}
	if r.PostForm.Has("email") { // it was refused
		form.Address, form.Language = r.PostForm.Get("email"), r.PostForm.Get("language")
		form.Before, form.After = r.PostForm.Get("before"), r.PostForm.Get("after")
	}
	view.Mail = &form
}

// sendInvoice sends an invoice to the customer.
func (d *Dashboard) sendInvoice(w http.ResponseWriter, r *http.Request) error {
	hours, ok := typedHours(r)
	if !ok {
		return d.showInvoice(w, r, http.StatusBadRequest, visitOf(r).text.T("mail.hours.wrong", nil))
	}
	body := apitypes.SendInvoiceRequest{Email: strings.TrimSpace(r.PostForm.Get("email")), Language: r.PostForm.Get("language"), ReminderHours: hours}
	return d.actOnInvoice(w, r, http.MethodPost, "/mails", body)
}

// hoursTexts returns the hours before and after the end of the time to pay as a form has them.
func hoursTexts(hours []int) (before, after string) {
	var early, late []string
	for _, h := range hours {
		if h < 0 {
			early = append(early, strconv.Itoa(-h))
		} else {
			late = append(late, strconv.Itoa(h))
		}
	}
	return strings.Join(early, ", "), strings.Join(late, ", ")
}

// typedHours returns the reminders of a form, and false if they are not valid.
func typedHours(r *http.Request) (hours []int, ok bool) {
	hours = make([]int, 0)
	for name, sign := range map[string]int{"before": -1, "after": 1} {
		for text := range strings.FieldsFuncSeq(r.PostForm.Get(name), func(c rune) bool { return strings.ContainsRune(" ,;、،", c) }) {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return nil, false
			}
			hours = append(hours, sign*n)
		}
	}
	slices.Sort(hours)
	hours = slices.Compact(hours)
	return hours, invoice.CheckReminderHours(hours) == nil
}
