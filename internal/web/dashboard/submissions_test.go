package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
)

// TestSubmissions sends a refund as two people without scripts. One may, and the other sees who does.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paid(nil)
	maria, juan := w.named("acme", "maria", access.Finance), w.named("acme", "<b>juan</b>", access.Finance)
	var payments apitypes.PaymentList
	maria.api("GET", "/api/payments", nil, &payments)
	var made apitypes.RefundResponse
	maria.api("POST", "/api/payments/"+payments.Payments[0].ID+"/refunds", member{"amount": "1500000"}, &made)
	path := "/dashboard/refunds/" + made.Refund.ID
	submissions := path + "/submissions"

	seen := maria.get(path).want(t, http.StatusOK, "Start sending")
	maria.submit(seen, submissions, nil).want(t, http.StatusOK, "It is being sent", "maria has been sending this refund since")
	juan.submit(seen, submissions, nil).want(t, http.StatusConflict, "maria has been sending this refund since")
	page := juan.get(path).want(t, http.StatusOK, "It is being sent", "No transaction is known", "Sign it elsewhere")
	if slices.Contains(page.Actions(), path+"/cancel") || slices.Contains(page.Actions(), submissions) {
		t.Error("a refund that somebody sends can be canceled or sent")
	}
	juan.post(path+"/cancel", nil).want(t, http.StatusConflict, "maria has been sending this refund since")

	data := juan.get(path + "/wallet")
	var read struct {
		From, Amount, Token, Data, State string
		Decimals                         int
		ChainID                          uint64
		Submission                       apitypes.Submission
	}
	if err := json.Unmarshal([]byte(data.body), &read); err != nil {
		t.Fatal(err)
	}
	if read.From != chain.Checksum(acmePays) || read.Amount != "1500000" || read.Decimals != 6 || read.ChainID != 7 || read.Data != made.Transaction.Data || read.Submission.By != "maria" {
		t.Errorf("a wallet's script reads %s", data.body)
	}

	act := submissions + "/" + read.Submission.ID
	maria.submit(page, act+"/transaction", url.Values{"txHash": {"0x12"}}).want(t, http.StatusConflict, "Tx hash ")
	hash := invoice.Hash{7}.String()
	maria.submit(page, act+"/transaction", url.Values{"txHash": {" " + strings.ToUpper(hash[2:4]) + hash[2:] + " "}}).want(t, http.StatusConflict, "Tx hash ")
	maria.submit(page, act+"/transaction", url.Values{"txHash": {" " + hash + " "}}).want(t, http.StatusOK, hash, "This page changes once the transfer is seen.")
	before := read.State
	if err := json.Unmarshal([]byte(juan.get(path+"/wallet").body), &read); err != nil || read.State == before {
		t.Error("a page does not notice the transaction")
	}
	juan.submit(juan.get(path), act+"/withdraw", nil).want(t, http.StatusConflict, "after 10 minutes")

	support := w.person("acme", access.Support)
	if actions := support.get(path).want(t, http.StatusOK, "maria has been sending this refund").Actions(); slices.ContainsFunc(actions, func(a string) bool { return strings.Contains(a, "/submissions") }) {
		t.Errorf("who may not refund has %v", actions)
	}
	support.post(submissions, nil).want(t, http.StatusForbidden)
	support.post(act+"/withdraw", nil).want(t, http.StatusForbidden)
	globex := w.person("globex", access.Admin)
	globex.get(path+"/wallet").want(t, http.StatusNotFound)
	globex.post(act+"/transaction", url.Values{"txHash": {hash}}).want(t, http.StatusNotFound)
}

// TestSafeEqualRefunds has a Safe make a transfer that is counted for one of two equal refunds.
func TestSafeEqualRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.chain.Token(acmePays, 6) // the node answers nonce() with this number
	w.paid(nil)
	maria := w.named("acme", "maria", access.Finance)
	var payments apitypes.PaymentList
	maria.api("GET", "/api/payments", nil, &payments)
	prepare := func(nonce uint64) string {
		var made apitypes.RefundResponse
		maria.api("POST", "/api/payments/"+payments.Payments[0].ID+"/refunds", member{"amount": "1500000"}, &made)
		signed := chain.SafeTransactionHash(7, acmePays, houseToken, common.FromHex(made.Transaction.Data), nonce)
		var begun apitypes.SubmissionResponse
		maria.api("POST", "/api/refunds/"+made.Refund.ID+"/submissions", member{"txHash": signed.String()}, &begun)
		return made.Refund.ID
	}
	first, second := prepare(8), prepare(6)
	w.chain.MineAt(max(w.now().Unix(), w.chain.Head().Time+1), chaintest.NewTx(chaintest.Transfer(houseToken, acmePays, payer, invoice.NewAmount(1_500_000))))
	w.chain.MineAt(w.chain.Head().Time + 1)
	w.await("confirmed refund", func() bool {
		var is apitypes.RefundResponse
		maria.api("GET", "/api/refunds/"+first, nil, &is)
		return is.Refund.Status == apitypes.RefundConfirmed
	})
	w.chain.Token(acmePays, 7)
	maria.get("/dashboard/refunds/"+second).want(t, http.StatusOK, "It may have made the transfer that was counted for "+first,
		"each transfer like this was counted for another refund, such as "+first)
	maria.get("/dashboard/refunds/"+first).want(t, http.StatusOK, "may still execute its transaction number 8")
}

// TestSafeSubmission shows what a Safe does with a refund, and asks the person where the service does not know that.
func TestSafeSubmission(t *testing.T) {
	t.Parallel()
	const next = 6
	w := newWorld(t)
	w.chain.Token(acmePays, next) // the node answers nonce() with this number
	w.paid(nil)
	maria := w.named("acme", "maria", access.Finance)
	var payments apitypes.PaymentList
	maria.api("GET", "/api/payments", nil, &payments)
	var made apitypes.RefundResponse
	maria.api("POST", "/api/payments/"+payments.Payments[0].ID+"/refunds", member{"amount": "1500000"}, &made)
	path := "/dashboard/refunds/" + made.Refund.ID
	var begun apitypes.SubmissionResponse
	maria.api("POST", "/api/refunds/"+made.Refund.ID+"/submissions", member{}, &begun)
	act := path + "/submissions/" + begun.Submission.ID
	record := func(nonce uint64) answer {
		w.forward(chain.RequestWindow) // for another budget of node calls
		signed := chain.SafeTransactionHash(7, acmePays, houseToken, common.FromHex(made.Transaction.Data), nonce)
		return maria.submit(maria.get(path), act+"/transaction", url.Values{"txHash": {signed.String()}})
	}
	const declared = "no such transaction was or will be executed"
	page := record(next)
	page.want(t, http.StatusOK, "waits in the Safe as transaction number 6.")
	if strings.Contains(page.Words(), declared) {
		t.Error("a person is asked although the Safe answers")
	}
	maria.submit(page, act+"/withdraw", nil).want(t, http.StatusConflict, "can still execute this refund", "waits in the Safe as transaction number 6.")
	w.forward(chain.RequestWindow)
	for range 10 { // more than the budget for them
		page = maria.get(path)
	}
	maria.submit(page, act+"/withdraw", nil).want(t, http.StatusConflict, "can still execute this refund")
	record(next-1).want(t, http.StatusConflict, "can still execute this refund", "waits in the Safe as transaction number 6.")
	w.chain.Token(acmePays, next+1) // the owners reject it
	w.forward(chain.RequestWindow)
	maria.submit(maria.get(path), act+"/withdraw", nil).want(t, http.StatusOK, "maria began")
	maria.api("POST", "/api/refunds/"+made.Refund.ID+"/submissions", member{"txHash": invoice.Hash{7}.String()}, &begun)
	act = path + "/submissions/" + begun.Submission.ID
	maria.get(path).want(t, http.StatusOK, "The account is a contract.", declared)
	w.forward(chain.RequestWindow)
	refused := maria.submit(maria.get(path), act+"/withdraw", nil)
	refused.want(t, http.StatusConflict, "its owners may have signed", declared)
	maria.submit(refused, act+"/withdraw", url.Values{"checkedInWallet": {"true"}}).want(t, http.StatusConflict, "after 10 minutes")
	record(next).want(t, http.StatusConflict, "Withdraw the submission first")
}
