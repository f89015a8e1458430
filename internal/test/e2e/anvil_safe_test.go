package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// safeWallet is a Safe of three owners. Two must sign.
type safeWallet struct {
	*service
	replica *replica
	owners  []anviltest.Account // in the order of their addresses
	address string
}

// safeCall is a transaction of a Safe.
type safeCall struct {
	to, data string
	nonce    uint64
}

// newSafe deploys a Safe with the contracts in a folder of npm's packages.
func (s *service) newSafe(r *replica, contract, factory string) *safeWallet {
	s.Helper()
	modules, err := testdeps.NodeModules(s.Context(), "e2e", "testdata/safe")
	expect.OK(s, err)
	deploy := func(artifact string) string {
		text, err := os.ReadFile(filepath.Join(modules, artifact))
		expect.OK(s, err)
		var compiled struct{ Bytecode string }
		expect.OK(s, json.Unmarshal(text, &compiled))
		return s.chain.Send(s, s.relay, "--create", compiled.Bytecode).Contract
	}
	w := &safeWallet{service: s, replica: r, owners: slices.Clone(s.chain.Accounts[4:7])}
	slices.SortFunc(w.owners, func(a, b anviltest.Account) int {
		return cmp.Compare(strings.ToLower(a.Address), strings.ToLower(b.Address))
	})
	zero := common.Address{}.Hex()
	setup := s.chain.Cast(s, "calldata", "setup(address[],uint256,address,bytes,address,address,uint256,address)",
		fmt.Sprintf("[%s,%s,%s]", w.owners[0].Address, w.owners[1].Address, w.owners[2].Address), "2", zero, "0x", zero, zero, "0", zero)
	maker := []string{deploy(factory), "createProxyWithNonce(address,bytes,uint256)", deploy(contract), setup, "1"}
	predicted := slices.Clone(maker)
	predicted[1] += "(address)"
	w.address = s.chain.Cast(s, append([]string{"call"}, predicted...)...)
	s.chain.Send(s, s.relay, maker...)
	return w
}

// hash returns the hash that the owners sign, by the Safe itself.
func (w *safeWallet) hash(c safeCall) string {
	w.Helper()
	zero := common.Address{}.Hex()
	is := w.chain.Cast(w, "call", w.address, "getTransactionHash(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,uint256)(bytes32)",
		c.to, "0", c.data, "0", "0", "0", "0", zero, zero, fmt.Sprint(c.nonce))
	own := chain.SafeTransactionHash(anviltest.ChainID, invoice.Address(common.HexToAddress(w.address)), invoice.Address(common.HexToAddress(c.to)), common.FromHex(c.data), c.nonce)
	if own.String() != is {
		w.Errorf("the Safe signs %s; the service computes %s", is, own)
	}
	return is
}

// sign has the second owner sign a transaction.
func (w *safeWallet) sign(c safeCall) {
	w.chain.Send(w, w.owners[1], w.address, "approveHash(bytes32)", w.hash(c))
}

// execute has the first owner execute a signed transaction, and returns the hash of the transaction that does.
func (w *safeWallet) execute(c safeCall, status string) string {
	w.Helper()
	zero := common.Address{}.Hex()
	signatures := "0x"
	for _, owner := range w.owners[:2] { // 1: the owner approved the hash, or sends the transaction
		signatures += fmt.Sprintf("%064s%064d01", strings.ToLower(owner.Address[2:]), 0)
	}
	text := w.chain.Cast(w, "send", "--json", "--gas-limit", "500000", "--private-key", w.owners[0].Key, w.address,
		"execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)",
		c.to, "0", c.data, "0", "0", "0", "0", zero, zero, signatures)
	var r anviltest.Receipt
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Status != status {
		w.Fatalf("the execution of number %d: %v, %s; want %s", c.nonce, err, text, status)
	}
	return r.TxHash
}

// prepare prepares a refund of a payment.
func (w *safeWallet) prepare(payment, amount string) apitypes.RefundResponse {
	w.Helper()
	made, err := w.api(w.replica).PrepareRefund(w.Context(), payment, apitypes.PrepareRefundRequest{Amount: amount})
	expect.OK(w, err)
	return made
}

// submit records the answer of a wallet, and returns the path of the submission.
func (w *safeWallet) submit(refund, hash string) string {
	w.Helper()
	made, err := w.api(w.replica).SubmitRefund(w.Context(), refund, apitypes.SubmitRefundRequest{TxHash: hash})
	expect.OK(w, err)
	return "/api/refunds/" + refund + "/submissions/" + made.ID
}

// refuses fails the test unless a submission cannot be withdrawn, for a reason.
func (w *safeWallet) refuses(submission, reason string) {
	w.Helper()
	if status, text := w.do(w.replica, http.MethodPost, submission+"/withdraw", ""); status != http.StatusConflict || !strings.Contains(text, reason) {
		w.Errorf("the withdrawal was answered %d, %s; want %q", status, text, reason)
	}
}

// refusesOther is refuses for another person than the one who began, if the wallet has not answered.
func (w *safeWallet) refusesOther(submission string) {
	w.Helper()
	other, err := client.New(w.replica.url, client.WithKey(w.merchantKey(w.replica)), client.WithRetries(0))
	expect.OK(w, err)
	path := strings.Split(submission, "/")
	if _, err := other.WithdrawSubmission(w.Context(), path[3], path[5], false); err == nil || !strings.Contains(err.Error(), "checkedInWallet=true") {
		w.Errorf("another person's withdrawal: %v", err)
	}
}

// shows fails the test unless a refund has a state in the Safe, at once or soon.
func (w *safeWallet) shows(refund string, state apitypes.SubmissionSafeState) {
	w.Helper()
	var found apitypes.RefundResponse
	err := await(within(w, w.patience), func() bool {
		var err error
		found, err = w.api(w.replica).Refund(w.Context(), refund, true)
		expect.OK(w, err)
		return len(found.Submissions) > 0 && found.Submissions[0].Safe != nil && found.Submissions[0].Safe.State == state
	})
	if err != nil {
		w.Errorf("the refund is %+v; want %s", found.Submissions, state)
	}
}

// TestExtraSafe refunds from Safes. One transaction fails, and is executed later. Another one is rejected.
func TestExtraSafe(t *testing.T) {
	t.Parallel()
	for version, contracts := range map[string][2]string{
		"1.3.0": {"@gnosis.pm/safe-contracts/build/artifacts/contracts/GnosisSafe.sol/GnosisSafe.json",
			"@gnosis.pm/safe-contracts/build/artifacts/contracts/proxies/GnosisSafeProxyFactory.sol/GnosisSafeProxyFactory.json"},
		"1.4.1": {"@safe-global/safe-contracts/build/artifacts/contracts/Safe.sol/Safe.json",
			"@safe-global/safe-contracts/build/artifacts/contracts/proxies/SafeProxyFactory.sol/SafeProxyFactory.json"},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newService(t, dbtest.SQLite(t))
			s.allow("    requestCallsPerSecond: 10000\n")
			refundFromSafe(s.newSafe(s.start(), contracts[0], contracts[1]))
		})
	}
}

func refundFromSafe(w *safeWallet) {
	w.Helper()
	draft := w.draft(9_000_000)
	draft.MerchantAddress = w.address
	made, err := w.api(w.replica).CreateInvoice(w.Context(), draft)
	expect.OK(w, err)
	w.awaitPayment(w.replica, made.ID, w.transfer(w.payer, w.address, made.Invoice.TransferAmount), apitypes.PaymentConfirmed)
	payment := w.payments(w.replica)[0].ID

	// The Safe sends its money elsewhere first, so that the refund fails.
	sent := w.prepare(payment, "1000000")
	away := safeCall{w.token, w.chain.Cast(w, "calldata", "transfer(address,uint256)", w.till.Address, made.Invoice.TransferAmount), 0}
	call := safeCall{w.token, sent.Transaction.Data, 1}
	submission := w.submit(sent.Refund.ID, w.hash(call))
	w.refuses(submission, "as its transaction number 1.")
	w.sign(away)
	w.sign(call)
	w.execute(away, "0x1")
	w.execute(call, "0x0")
	w.refuses(submission, "as its transaction number 1.")
	w.shows(sent.Refund.ID, apitypes.SafeWaiting)
	w.transfer(w.payer, w.address, "9000000")
	tx := w.execute(call, "0x1")
	var is apitypes.RefundResponse
	if err := await(within(w, w.patience), func() bool {
		is, err = w.api(w.replica).Refund(w.Context(), sent.Refund.ID, false)
		return err == nil && is.Refund.Status == apitypes.RefundConfirmed
	}); err != nil || is.Refund.TxHash != tx {
		w.Errorf("the executed refund is %+v, want %s", is.Refund, tx)
	}

	// The next one is signed, and rejected by a call of its number that does nothing.
	rejected := w.prepare(payment, "1000001")
	call = safeCall{w.token, rejected.Transaction.Data, 2}
	submission = w.submit(rejected.Refund.ID, w.hash(call))
	w.sign(call)
	w.refuses(submission, "as its transaction number 2.")
	nothing := safeCall{w.address, "0x", 2}
	w.sign(nothing)
	w.execute(nothing, "0x1")
	w.shows(rejected.Refund.ID, apitypes.SafeUsed)
	if status, text := w.do(w.replica, http.MethodPost, submission+"/withdraw", ""); status != http.StatusOK {
		w.Errorf("the withdrawal was answered %d, %s", status, text)
	}

	// The service cannot know which calls a batch makes, or how a wallet acted that did not answer.
	w.refuses(w.submit(rejected.Refund.ID, common.Hash{1}.Hex()), "checkedInWallet=true")
	w.shows(rejected.Refund.ID, apitypes.SafeUnknown)
	asked := w.submit(w.prepare(payment, "1000002").Refund.ID, "")
	w.refusesOther(asked)
	w.refuses(asked, "checkedInWallet=true")
	if status, text := w.do(w.replica, http.MethodPost, asked+"/withdraw?checkedInWallet=true", ""); status != http.StatusOK {
		w.Errorf("the withdrawal of the person who began was answered %d, %s", status, text)
	}
}
