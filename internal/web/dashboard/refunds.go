package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// refundList lists refunds, newest first.
var refundList = lister[apitypes.RefundList, refundRow]{
	page: "/dashboard/refunds", api: "/api/refunds", template: "refunds.html", title: "nav.refunds", jump: toObject, csv: true,
	filters: []filter{
		{name: "q", text: "refunds.search", kind: "search", apply: func(_ *visit, query url.Values, text string) {
			switch {
			case text == "":
			case strings.HasPrefix(text, invoice.PrefixInvoice):
				query.Set("invoiceId", text)
			default:
				query.Set("txHash", strings.ToLower(text))
			}
		}},
		{name: "status", text: "invoices.status", kind: "select", options: optionsOf("refund.status", invoice.RefundStatuses)},
		{name: "chainKey", text: "invoices.network", kind: "select", options: severalNetworks},
		{name: "paymentId"}, {name: "invoiceId"}, {name: "txHash"},
	},
	rows: func(v *visit, list apitypes.RefundList) ([]refundRow, string) {
		return v.refundRows(list.Refunds), list.NextCursor
	},
}

// refundRow is a refund in a list.
type refundRow struct {
	apitypes.RefundRecord
	Money   template.HTML
	Network string
}

func (v *visit) refundRow(r apitypes.RefundRecord) refundRow {
	return refundRow{r, v.money(r.Amount, r.Currency), v.Network(r.ChainKey)}
}

func (v *visit) refundRows(refunds []apitypes.RefundRecord) []refundRow {
	return rowsOf(refunds, v.refundRow)
}

// refundPage is the page of a refund.
type refundPage struct {
	refundRow
	Transaction *apitypes.RefundTransaction
	ClaimURL    string
	Explorer    string // address of the transaction in the block explorer, or empty
	Error       string // reason for which the interface refused a request, or empty
	State       string // changes whenever the page's content does
	Submission  *submissionRow
	Withdrawn   []submissionRow
}

// refund shows a refund, with the transaction while it can be sent.
func (d *Dashboard) refund(w http.ResponseWriter, r *http.Request) error {
	return d.showRefund(w, r, http.StatusOK, "", "safe")
}

// showRefund shows the refund in the path, with what the interface includes.
func (d *Dashboard) showRefund(w http.ResponseWriter, r *http.Request, code int, refused string, include ...string) error {
	found, err := d.refundOf(r, include...)
	if err != nil {
		return err
	}
	return d.showRefundOf(w, r, code, refused, found)
}

// showRefundOf shows the refund of an answer.
func (d *Dashboard) showRefundOf(w http.ResponseWriter, r *http.Request, code int, refused string, found apitypes.RefundResponse) error {
	v := visitOf(r)
	body := refundPage{refundRow: v.refundRow(found.Refund), Transaction: found.Transaction, ClaimURL: found.ClaimURL, Error: refused, State: refundState(found)}
	body.Submission, body.Withdrawn = d.submissions(found)
	body.Explorer = d.explorer(found.Refund.ChainKey, found.Refund.TxHash)
	return d.render(w, r, code, "refund.html", "refund.title", body)
}

// walletURL returns a link of the EIP-681 form unchanged, and "" for any other text.
func walletURL(link string) template.URL {
	if strings.HasPrefix(link, "ethereum:0x") {
		return template.URL(link) //nolint:gosec // of addresses and numbers, which the interface wrote
	}
	return ""
}

// safeFile answers with the batch file of a refund for the Transaction Builder of Safe.
func (d *Dashboard) safeFile(w http.ResponseWriter, r *http.Request) error {
	found, err := d.refundOf(r)
	if err != nil {
		return err
	}
	if found.Transaction == nil {
		return errNotFound
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+found.Refund.ID+`.json"`)
	d.Write(w, r, http.StatusOK, "application/json", found.Transaction.Safe)
	return nil
}

// refundOf returns the refund in the path, with what the interface includes.
func (d *Dashboard) refundOf(r *http.Request, include ...string) (found apitypes.RefundResponse, err error) {
	query := make(url.Values)
	if len(include) > 0 {
		query["include"] = include
	}
	err = d.service.get(r.Context(), id("/api/refunds", r.PathValue("id")), query, &found)
	return found, err
}

// changeRefund returns a handler that cancels a refund, or approves the address that the payer named.
// The form repeats the address.
func (d *Dashboard) changeRefund(act string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body any = json.RawMessage("{}")
		if act == "approve" {
			body = apitypes.ApproveRefundRequest{To: r.PostFormValue("to")}
		}
		if v := visitOf(r); act == "cancel" && !v.session.Confirmed(d.cfg.Now()) {
			found, err := d.refundOf(r)
			if err != nil {
				return err
			}
			if found.Refund.Status == apitypes.RefundAwaitingApproval { // somebody else may be about to approve it
				return d.redirect(w, r, nil, "/dashboard/confirm", "next", v.Link(id("/dashboard/refunds", r.PathValue("id"))))
			}
		}
		path := id("/api/refunds", r.PathValue("id"))
		refused, err := detail(d.service.send(r.Context(), http.MethodPost, path+"/"+act, body, nil))
		if err != nil {
			return err
		}
		if refused != "" {
			return d.showRefund(w, r, http.StatusConflict, refused)
		}
		return d.redirect(w, r, nil, id("/dashboard/refunds", r.PathValue("id")))
	}
}

// refundForm is the page on which a refund of a payment is prepared.
type refundForm struct {
	paymentRow
	Key       string // makes the form prepare only one refund
	Amount    string // in units of the token
	Recipient string
	Ask       bool // the payer names the address
	Reason    string
	Confirm   bool // the person must confirm before the form is accepted
	Error     string
}

// prepareRefundPage shows the form. The parameter amount, in minor units, suggests one.
func (d *Dashboard) prepareRefundPage(w http.ResponseWriter, r *http.Request) error {
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	form := refundForm{Key: rand.Text()}
	if amount, err := invoice.ParseAmount(r.URL.Query().Get("amount")); err == nil {
		form.Amount = visitOf(r).major(amount.String())
	}
	return d.showRefundForm(w, r, http.StatusOK, form, p)
}

// paymentOf returns the payment in the path.
func (d *Dashboard) paymentOf(r *http.Request) (apitypes.Payment, error) {
	var found apitypes.PaymentResponse
	err := d.service.get(r.Context(), id("/api/payments", r.PathValue("id")), nil, &found)
	return found.Payment, err
}

func (d *Dashboard) showRefundForm(w http.ResponseWriter, r *http.Request, code int, form refundForm, p apitypes.Payment) error {
	form.paymentRow = visitOf(r).paymentRow(p)
	return d.render(w, r, code, "refundform.html", "refundForm.title", form)
}

// prepareRefund prepares a refund, and leads to its page.
func (d *Dashboard) prepareRefund(w http.ResponseWriter, r *http.Request) error {
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	form := refundForm{
		Key: r.PostFormValue("key"), Amount: strings.TrimSpace(r.PostFormValue("amount")), Recipient: strings.TrimSpace(r.PostFormValue("to")),
		Ask: r.PostFormValue("ask") != "", Reason: strings.TrimSpace(r.PostFormValue("reason")),
	}
	if form.Confirm = form.Recipient != "" && !strings.EqualFold(form.Recipient, p.From) && !visitOf(r).session.Confirmed(d.cfg.Now()); form.Confirm {
		return d.showRefundForm(w, r, http.StatusForbidden, form, p)
	}
	asked := apitypes.PrepareRefundRequest{To: form.Recipient, Reason: form.Reason}
	if form.Ask {
		asked.To = "ask_payer"
	}
	if form.Amount != "" {
		asked.Amount = visitOf(r).minorUnits(form.Amount)
	}
	var made apitypes.RefundResponse
	err = d.service.create(r.Context(), id("/api/payments", p.ID)+"/refunds", form.Key, asked, &made)
	if form.Error, err = detail(err); err != nil {
		return err
	}
	if form.Error != "" {
		return d.showRefundForm(w, r, http.StatusConflict, form, p)
	}
	return d.showPrepared(w, r, made)
}

// showPrepared leads to the page of a refund that was prepared just now.
func (d *Dashboard) showPrepared(w http.ResponseWriter, r *http.Request, made apitypes.RefundResponse) error {
	var found apitypes.RefundResponse
	if made.ClaimURL != "" {
		if err := d.service.get(r.Context(), id("/api/refunds", made.Refund.ID), nil, &found); err != nil {
			return err
		}
	}
	if found.ClaimURL != made.ClaimURL { // without a master key this is the only time that it is shown
		return d.showRefundOf(w, r, http.StatusOK, "", made)
	}
	return d.redirect(w, r, nil, id("/dashboard/refunds", made.Refund.ID))
}
