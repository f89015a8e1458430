package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
)

// maxPaymentsShown bounds the payments and the refunds on the page of an invoice.
const maxPaymentsShown = 50

// invoiceView is the page of an invoice.
type invoiceView struct {
	apitypes.Invoice
	Network string
	Money   moneyIn
	// AllUnattributed is the address of a list with more payments than were looked at for Unattributed, or empty.
	AllUnattributed string
	Checkout        string // address of the payer's page; empty of a draft
	Code            *webpage.QRCode
	Payments        []paymentOfInvoice
	Refunds         []apitypes.RefundRecord
	Mails           []apitypes.Mail
	Mail            *mailForm // nil if the invoice cannot be sent
	Timeline        []moment
	MoreMoments     string // address of the page with the rest of the timeline, or empty
	Truncated       bool   // the timeline is incomplete
	MorePayments    bool
	invoiceActs
	Error string // why an action was refused, or empty
}

// paymentOfInvoice is a payment of an invoice.
type paymentOfInvoice struct {
	apitypes.Payment
	Explorer string // page of the transaction in the block explorer, or empty
}

// moneyIn formats amounts of minor units of a token. It is for templates.
type moneyIn func(minor any) template.HTML

// Of returns an element with an amount.
func (m moneyIn) Of(minor any) template.HTML { return m(minor) }

// moneyIn returns a function that formats amounts of a token.
func (v *visit) moneyIn(currency string) moneyIn {
	return func(minor any) template.HTML { return v.money(template.HTMLEscaper(minor), currency) }
}

// showInvoice shows the invoice of a request, with the reason why an action was refused, if any.
func (d *Dashboard) showInvoice(w http.ResponseWriter, r *http.Request, status int, refused string) error {
	v := visitOf(r)
	inv, err := d.findInvoice(r)
	if err != nil {
		return err
	}
	view := invoiceView{Invoice: inv, Network: v.Network(inv.ChainKey), Money: v.moneyIn(inv.Currency), Error: refused}
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
		if err := d.addTransfers(r, &view); err != nil {
			return err
		}
		if err := d.addActs(r, &view); err != nil {
			return err
		}
	}
	if err := d.addMails(r, &view); err != nil {
		return err
	}
	if err := d.addTimeline(r, &view); err != nil {
		return err
	}
	return d.render(w, r, status, "invoice.html", "payments.invoice", view)
}

// findInvoice returns the invoice that the path of a request names.
func (d *Dashboard) findInvoice(r *http.Request) (apitypes.Invoice, error) {
	var answer apitypes.InvoiceResponse
	err := d.service.get(r.Context(), id("/api/invoices", r.PathValue("id")), nil, &answer)
	return answer.Invoice, err
}

// addTransfers adds the payments and the refunds of an invoice to its page.
func (d *Dashboard) addTransfers(r *http.Request, view *invoiceView) error {
	var payments apitypes.PaymentList
	query := url.Values{"limit": {strconv.Itoa(maxPaymentsShown)}}
	if err := d.service.get(r.Context(), id("/api/invoices", view.ID)+"/payments", query, &payments); err != nil {
		return err
	}
	for _, p := range payments.Payments {
		view.Payments = append(view.Payments, paymentOfInvoice{p, d.explorer(p.ChainKey, p.TxHash)})
	}
	var refunds apitypes.RefundList
	query.Set("invoiceId", view.ID)
	if err := d.service.get(r.Context(), "/api/refunds", query, &refunds); err != nil {
		return err
	}
	view.Refunds, view.MorePayments = refunds.Refunds, payments.NextCursor != "" || refunds.NextCursor != ""
	return nil
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

// showing returns a handler that shows a page without a refusal.
func showing(show showFunc) handler {
	return func(w http.ResponseWriter, r *http.Request) error { return show(w, r, http.StatusOK, "") }
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

// redirect leads to a page of the dashboard after a form was sent, if err is nil. It returns err.
func (d *Dashboard) redirect(w http.ResponseWriter, r *http.Request, err error, path string, pairs ...string) error {
	if err == nil {
		seeOther(w, r, visitOf(r).Link(path, pairs...))
	}
	return err
}
