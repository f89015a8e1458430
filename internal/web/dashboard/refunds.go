package dashboard

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

// refundList lists refunds, newest first.
var refundList = lister[apitypes.RefundList, apitypes.RefundRecord]{
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
	rows: func(list apitypes.RefundList) ([]apitypes.RefundRecord, string) {
		return list.Refunds, list.NextCursor
	},
}

// refundPage is the page of a refund.
type refundPage struct {
	apitypes.RefundRecord
	Transaction *apitypes.RefundTransaction
	ClaimURL    string
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
	return d.showRefundOf(w, r, code, refused, d.refundOf(r, include...))
}

// showRefundOf shows the refund of an answer.
func (d *Dashboard) showRefundOf(w http.ResponseWriter, r *http.Request, code int, refused string, found apitypes.RefundResponse) error {
	body := refundPage{RefundRecord: found.Refund, Transaction: found.Transaction, ClaimURL: found.ClaimURL, Error: refused, State: refundState(found)}
	body.Submission, body.Withdrawn = d.submissions(found)
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
	found := d.refundOf(r)
	if found.Transaction == nil {
		return cmp.Or(visitOf(r).err, error(errNotFound))
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+found.Refund.ID+`.json"`)
	d.Write(w, r, http.StatusOK, "application/json", found.Transaction.Safe)
	return nil
}

// refundOf returns the refund in the path, with what the interface includes.
func (d *Dashboard) refundOf(r *http.Request, include ...string) apitypes.RefundResponse {
	query := make(url.Values)
	if len(include) > 0 {
		query["include"] = include
	}
	return get[apitypes.RefundResponse](d, r, id("/api/refunds", r.PathValue("id")), query)
}

// changeRefund returns a handler that cancels a refund, or approves the address that the payer named.
// The form repeats the address.
func (d *Dashboard) changeRefund(act string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body any = struct{}{}
		if act == "approve" {
			body = apitypes.ApproveRefundRequest{To: r.PostFormValue("to")}
		}
		page := id("/dashboard/refunds", r.PathValue("id"))
		if v := visitOf(r); act == "cancel" && !v.session.Confirmed(d.cfg.Now()) {
			if d.refundOf(r).Refund.Status == apitypes.RefundAwaitingApproval { // somebody else may be about to approve it
				return d.redirect(w, r, nil, "/dashboard/confirm", "next", v.Link(page))
			}
		}
		err := d.service.send(r.Context(), http.MethodPost, id("/api/refunds", r.PathValue("id"))+"/"+act, body, nil)
		return d.outcome(w, r, err, func(w http.ResponseWriter, r *http.Request, status int, refused string) error {
			return d.showRefund(w, r, status, refused)
		}, page)
	}
}

// refundForm is the page on which a refund of a payment is prepared.
type refundForm struct {
	apitypes.Payment
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
	form := refundForm{Payment: d.paymentOf(r), Key: rand.Text()}
	if amount, err := invoice.ParseAmount(r.URL.Query().Get("amount")); err == nil {
		form.Amount = visitOf(r).major(amount.String())
	}
	return d.showRefundForm(w, r, http.StatusOK, form)
}

// paymentOf returns the payment in the path.
func (d *Dashboard) paymentOf(r *http.Request) apitypes.Payment {
	return get[apitypes.PaymentResponse](d, r, id("/api/payments", r.PathValue("id")), nil).Payment
}

func (d *Dashboard) showRefundForm(w http.ResponseWriter, r *http.Request, code int, form refundForm) error {
	return d.render(w, r, code, "refundform.html", "refundForm.title", form)
}

// prepareRefund prepares a refund, and leads to its page.
func (d *Dashboard) prepareRefund(w http.ResponseWriter, r *http.Request) error {
	p := d.paymentOf(r)
	form := refundForm{
		Payment: p, Key: r.PostFormValue("key"), Amount: strings.TrimSpace(r.PostFormValue("amount")), Recipient: strings.TrimSpace(r.PostFormValue("to")),
		Ask: r.PostFormValue("ask") != "", Reason: strings.TrimSpace(r.PostFormValue("reason")),
	}
	if form.Confirm = form.Recipient != "" && !strings.EqualFold(form.Recipient, p.From) && !visitOf(r).session.Confirmed(d.cfg.Now()); form.Confirm {
		return d.showRefundForm(w, r, http.StatusForbidden, form)
	}
	asked := apitypes.PrepareRefundRequest{To: form.Recipient, Reason: form.Reason}
	if form.Ask {
		asked.To = "ask_payer"
	}
	if form.Amount != "" {
		asked.Amount = visitOf(r).minorUnits(form.Amount)
	}
	var made apitypes.RefundResponse
	err := d.service.sendOnce(r.Context(), http.MethodPost, id("/api/payments", p.ID)+"/refunds", form.Key, asked, &made)
	if form.Error, err = detail(err); err != nil {
		return err
	}
	if form.Error != "" {
		return d.showRefundForm(w, r, http.StatusConflict, form)
	}
	return d.showPrepared(w, r, made)
}

// showPrepared leads to the page of a refund that was prepared just now.
func (d *Dashboard) showPrepared(w http.ResponseWriter, r *http.Request, made apitypes.RefundResponse) error {
	var found apitypes.RefundResponse
	if made.ClaimURL != "" {
		found = get[apitypes.RefundResponse](d, r, id("/api/refunds", made.Refund.ID), nil)
	}
	if found.ClaimURL != made.ClaimURL { // without a master key this is the only time that it is shown
		return d.showRefundOf(w, r, http.StatusOK, "", made)
	}
	return d.redirect(w, r, nil, id("/dashboard/refunds", made.Refund.ID))
}

// submissionRoutes returns the routes by which people record that they send a refund.
func (d *Dashboard) submissionRoutes() []webpage.Route {
	const path = "/dashboard/refunds/{id}/submissions"
	return []webpage.Route{
		d.route("GET /dashboard/refunds/{id}/wallet", access.PaymentsRead, d.refundWallet),
		d.route("POST "+path, access.InvoicesWrite, d.submission(http.MethodPost, "", func(r *http.Request) any {
			return apitypes.SubmitRefundRequest{TxHash: hashField(r)} // of a transaction that is sent already
		})),
		d.route("POST "+path+"/{submission}/transaction", access.InvoicesWrite, d.submission(http.MethodPut, "", func(r *http.Request) any {
			return apitypes.RecordTransactionRequest{TxHash: hashField(r)}
		}), webpage.CallsNodes),
		d.route("POST "+path+"/{submission}"+withdrawal, access.InvoicesWrite, d.submission(http.MethodPost, withdrawal, func(*http.Request) any {
			return json.RawMessage("{}") // the submission did not send a transaction
		}), webpage.CallsNodes),
	}
}

// withdrawal is the end of the path that withdraws a submission.
const withdrawal = "/withdraw"

// submissionRow is a submission of a refund.
type submissionRow struct {
	apitypes.Submission
}

// Nonce returns the number of the submission's transaction in a Safe, or "".
func (s submissionRow) Nonce() string {
	if s.Safe == nil || s.Safe.Nonce == nil {
		return ""
	}
	return strconv.FormatInt(*s.Safe.Nonce, 10)
}

// Declarable reports whether a person may be asked to declare that the submission is not executed: if that is not known, or
// could not be read again after a request was refused.
func (s submissionRow) Declarable(refused string) bool {
	return s.Safe == nil && refused != "" || s.Safe != nil && s.Safe.State == apitypes.SafeUnknown
}

// submissions returns the submission that is in force, or nil, and those that were withdrawn.
func (d *Dashboard) submissions(found apitypes.RefundResponse) (current *submissionRow, withdrawn []submissionRow) {
	for _, s := range found.Submissions {
		row := submissionRow{s}
		if s.WithdrawnAt == 0 {
			current = &row
		} else {
			withdrawn = append(withdrawn, row)
		}
	}
	return current, withdrawn
}

// walletRefund is the data for the script that has a wallet send a refund. Amounts are in minor units.
type walletRefund struct {
	From     string     `json:"from"`
	Amount   string     `json:"amount"`
	Currency string     `json:"currency"`
	Decimals int        `json:"decimals"`
	ChainID  uint64     `json:"chainId"`
	Network  string     `json:"network"` // display name
	Coin     chain.Coin `json:"coin"`
	RPC      []string   `json:"rpc,omitempty"` // nodes, for a wallet that lacks the network
	// Token and Data are the contract and the calldata; absent if the refund cannot be sent.
	Token string `json:"token,omitempty"`
	Data  string `json:"data,omitempty"`
	// State changes whenever the page's content does.
	State      string               `json:"state"`
	Submission *apitypes.Submission `json:"submission,omitempty"` // that is in force
}

// refundWallet answers with the walletRefund of a refund.
func (d *Dashboard) refundWallet(w http.ResponseWriter, r *http.Request) error {
	found := d.refundOf(r)
	if err := visitOf(r).err; err != nil {
		return err
	}
	refund, current := found.Refund, (*apitypes.Submission)(nil)
	if row, _ := d.submissions(found); row != nil {
		current = &row.Submission
	}
	network := d.chains[refund.ChainKey]
	data := walletRefund{
		From: refund.From, Amount: refund.Amount, Currency: refund.Currency, Decimals: chain.TokenDecimals, ChainID: network.ID,
		Network: visitOf(r).Network(refund.ChainKey), Coin: network.Coin(), RPC: network.WalletNodes(), State: refundState(found), Submission: current,
	}
	if found.Transaction != nil {
		data.Token, data.Data = found.Transaction.To, found.Transaction.Data
	}
	return d.WriteJSON(w, r, http.StatusOK, data)
}

// refundState returns a text that changes whenever the content of a refund's page does.
func refundState(found apitypes.RefundResponse) string {
	state := fmt.Sprint(found.Refund.Status, " ", found.Refund.TxHash, " ", found.Transaction != nil)
	for _, s := range found.Submissions {
		state += fmt.Sprint(" ", s.ID, s.TxHash, s.WithdrawnAt)
	}
	return state
}

func hashField(r *http.Request) string {
	return strings.ToLower(strings.TrimSpace(r.PostFormValue("txHash")))
}

// submission returns a handler that changes a submission through the interface. The path names the submission unless it
// is a new one. Scripts ask for JSON and get the interface's answer; forms lead to the refund's page.
func (d *Dashboard) submission(method, act string, body func(r *http.Request) any) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return d.changeSubmission(w, r, method, act, body(r))
	}
}

func (d *Dashboard) changeSubmission(w http.ResponseWriter, r *http.Request, method, act string, body any) error {
	path, query := id("/api/refunds", r.PathValue("id"))+"/submissions", make(url.Values)
	if named := r.PathValue("submission"); named != "" {
		path = id(path, named) + act
	}
	if r.PostForm.Has("checkedInWallet") {
		query.Set("checkedInWallet", "true")
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a submission: %w", err)
	}
	var answer apitypes.SubmissionResponse
	err = d.service.call(r.Context(), method, path, query, "", text, &answer)
	if strings.HasPrefix(r.Header.Get("Accept"), "application/json") {
		var p *problem
		if errors.As(err, &p) {
			return d.WriteJSON(w, r, p.Status, p.Problem)
		}
		if err != nil {
			return err
		}
		return d.WriteJSON(w, r, http.StatusOK, answer)
	}
	return d.outcome(w, r, err, func(w http.ResponseWriter, r *http.Request, status int, refused string) error {
		if method == http.MethodPut || act == withdrawal {
			return d.showRefund(w, r, status, refused, "safe")
		}
		return d.showRefund(w, r, status, refused)
	}, id("/dashboard/refunds", r.PathValue("id")))
}
