package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/web/webpage"
)

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
	Explorer string // address of the transaction in the block explorer, or empty
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
		row := submissionRow{s, d.explorer(found.Refund.ChainKey, s.TxHash)}
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
	found, err := d.refundOf(r)
	if err != nil {
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
	refused, err := detail(err)
	if refused != "" {
		var include []string
		if method == http.MethodPut || act == withdrawal {
			include = []string{"safe"}
		}
		return d.showRefund(w, r, http.StatusConflict, refused, include...)
	}
	return d.redirect(w, r, err, id("/dashboard/refunds", r.PathValue("id")))
}
