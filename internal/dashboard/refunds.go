package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// refundFilters are the parameters of the list of refunds that the REST interface takes.
var refundFilters = []string{"status", "chainKey", "paymentId", "invoiceId", "txHash"}

// refundList is the list of refunds.
type refundList struct {
	transferList
	Rows []refundRow
}

// refundRow is a refund in a list.
type refundRow struct {
	apitypes.RefundRecord
	Money   template.HTML
	Network string
}

// refundTable is what the template of that name shows.
type refundTable struct {
	Page *visit
	Rows []refundRow
}

func (d *Dashboard) refundRow(r apitypes.RefundRecord) refundRow {
	return refundRow{r, d.money(r.Amount, r.Currency, r.ChainKey), chain.NetworkName(r.ChainKey)}
}

// refunds lists refunds, newest first.
func (d *Dashboard) refunds(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	body := refundList{transferList: transferList{Networks: d.networks()}}
	for _, s := range invoice.RefundStatuses {
		body.Statuses = append(body.Statuses, string(s))
	}
	query := refundQuery(v, r, &body.transferList)
	if to := objectPage(body.Filter.Get("q")); to != "" {
		d.redirect(w, r, to)
		return nil
	}
	var list apitypes.RefundList
	err := d.service.get(r.Context(), "/api/refunds", query, &list)
	if body.Error, err = detail(err); err != nil {
		return err
	}
	for _, refund := range list.Refunds {
		body.Rows = append(body.Rows, d.refundRow(refund))
	}
	body.Next = nextPage(v, body.Filter, list.NextCursor)
	return d.render(w, r, status(body.Error), "refunds.html", "refunds.title", body)
}

// exportRefunds answers with the CSV of the filtered refunds.
func (d *Dashboard) exportRefunds(w http.ResponseWriter, r *http.Request) error {
	d.export(w, r, "/api/refunds", refundQuery(visitOf(r), r, new(transferList)))
	return nil
}

// refundQuery returns the query of the interface for the filters of a request, and sets them
// in the list.
func refundQuery(v *visit, r *http.Request, list *transferList) url.Values {
	query := v.query()
	list.Filter = filtered(r, query, refundFilters)
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	if text != "" {
		list.Filter.Set("q", text)
	}
	switch {
	case text == "":
	case strings.HasPrefix(text, invoice.PrefixInvoice):
		query.Set("invoiceId", text)
	default:
		query.Set("txHash", strings.ToLower(text))
	}
	list.Export = filteredPage(v, "/dashboard/refunds.csv", list.Filter)
	return query
}

// refundPage is the page of a refund.
type refundPage struct {
	refundRow
	Transaction *apitypes.RefundTransaction
	ClaimURL    string
	Explorer    string // address of the transaction in the block explorer, or empty
	Error       string // what the interface refused, or empty
}

// refund shows a refund, with the transaction while it can be sent.
func (d *Dashboard) refund(w http.ResponseWriter, r *http.Request) error {
	return d.showRefund(w, r, http.StatusOK, "")
}

func (d *Dashboard) showRefund(w http.ResponseWriter, r *http.Request, code int, refused string) error {
	var found apitypes.RefundResponse
	if err := d.service.get(r.Context(), id("/api/refunds", r.PathValue("id")), nil, &found); err != nil {
		return err
	}
	body := refundPage{refundRow: d.refundRow(found.Refund), Transaction: found.Transaction, ClaimURL: found.ClaimURL, Error: refused}
	body.Explorer = d.explorer(found.Refund.ChainKey, found.Refund.TxHash)
	return d.render(w, r, code, "refund.html", "refund.title", body)
}

// walletURL returns a link of the EIP-681 form as it is, and nothing else.
func walletURL(link string) template.URL {
	if strings.HasPrefix(link, "ethereum:0x") {
		return template.URL(link) //nolint:gosec // of addresses and numbers, which the interface wrote
	}
	return ""
}

// safeFile answers with the batch file of a refund for the Transaction Builder of Safe.
func (d *Dashboard) safeFile(w http.ResponseWriter, r *http.Request) error {
	var found apitypes.RefundResponse
	if err := d.service.get(r.Context(), id("/api/refunds", r.PathValue("id")), nil, &found); err != nil {
		return err
	}
	if found.Transaction == nil {
		return errNotFound
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="`+found.Refund.ID+`.json"`)
	_, err := w.Write(found.Transaction.Safe)
	return err
}

// changeRefund returns a handler that cancels a refund, or approves the address that the
// payer named and the form repeats.
func (d *Dashboard) changeRefund(act string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := parseForm(w, r); err != nil {
			return err
		}
		var body any = json.RawMessage("{}")
		if act == "approve" {
			body = apitypes.ApproveRefundRequest{To: r.PostFormValue("to")}
		}
		path := id("/api/refunds", r.PathValue("id"))
		refused, err := detail(d.service.send(r.Context(), http.MethodPost, path+"/"+act, body, nil))
		if err != nil {
			return err
		}
		if refused != "" {
			return d.showRefund(w, r, http.StatusConflict, refused)
		}
		d.redirect(w, r, id("/dashboard/refunds", r.PathValue("id")))
		return nil
	}
}

// refundForm is the page on which a refund of a payment is prepared.
type refundForm struct {
	paymentRow
	Key       string // makes the form prepare one refund, however often it is sent
	Amount    string // in units of the token
	Recipient string
	Ask       bool // the payer names the address
	Reason    string
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
		form.Amount = amount.Major(d.decimals(p))
	}
	return d.showRefundForm(w, r, http.StatusOK, form, p)
}

// paymentOf returns the payment that the path names.
func (d *Dashboard) paymentOf(r *http.Request) (apitypes.Payment, error) {
	var found apitypes.PaymentResponse
	err := d.service.get(r.Context(), id("/api/payments", r.PathValue("id")), nil, &found)
	return found.Payment, err
}

// decimals returns the decimals of a payment's token.
func (d *Dashboard) decimals(p apitypes.Payment) int {
	token, _ := d.chains[p.ChainKey].Token(p.Currency)
	return token.Decimals
}

func (d *Dashboard) showRefundForm(w http.ResponseWriter, r *http.Request, code int, form refundForm, p apitypes.Payment) error {
	form.paymentRow = d.paymentRow(p)
	return d.render(w, r, code, "refundform.html", "refundForm.title", form)
}

// prepareRefund prepares a refund, and leads to its page.
func (d *Dashboard) prepareRefund(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	form := refundForm{
		Key: r.PostFormValue("key"), Amount: strings.TrimSpace(r.PostFormValue("amount")), Recipient: strings.TrimSpace(r.PostFormValue("to")),
		Ask: r.PostFormValue("ask") != "", Reason: strings.TrimSpace(r.PostFormValue("reason")),
	}
	asked := apitypes.PrepareRefundRequest{To: form.Recipient, Reason: form.Reason}
	if form.Ask {
		asked.To = "ask_payer"
	}
	if form.Amount != "" {
		asked.Amount = minorUnits(form.Amount, d.decimals(p))
	}
	var made apitypes.RefundResponse
	err = d.service.create(r.Context(), id("/api/payments", p.ID)+"/refunds", form.Key, asked, &made)
	if form.Error, err = detail(err); err != nil {
		return err
	}
	if form.Error != "" {
		return d.showRefundForm(w, r, http.StatusConflict, form, p)
	}
	d.redirect(w, r, id("/dashboard/refunds", made.Refund.ID))
	return nil
}
