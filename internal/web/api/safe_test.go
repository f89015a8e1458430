package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestIntegrationSafe sends refunds from a contract, and withdraws them.
func TestIntegrationSafe(t *testing.T) {
	at := new(atomic.Int64)
	at.Store(now)
	s := newIntegrationAt(t, dbtest.Open(t, dbtest.SQLite(t)), func() time.Time { return time.Unix(at.Load(), 0) })
	payment, head := s.confirmedPayment(t)
	refund := func() string {
		return "/api/refunds/" + decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"amount":"900000"}`), http.StatusCreated).Refund.ID
	}
	first := refund()
	begin := func(path string) apitypes.Submission {
		return decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", path+"/submissions", `{"txHash":"`+invoice.Hash{7}.String()+`"}`), http.StatusCreated).Submission
	}
	submission := begin(first)
	withdraw := first + "/submissions/" + submission.ID + "/withdraw"
	shown := func(path string) *apitypes.SubmissionSafe {
		return decode[apitypes.RefundResponse](t, do(s.handler, "GET", path+"?include=safe", ""), http.StatusOK).Submissions[0].Safe
	}
	wantProblem(t, do(s.handler, "GET", first+"?include=all", ""), http.StatusBadRequest, "invalid_field", "include")
	wantProblem(t, do(s.handler, "POST", withdraw+"?checkedInWallet=yes", ""), http.StatusBadRequest, "invalid_field", "checkedInWallet")
	if got := shown(first); got != nil {
		t.Errorf("without a node, %+v", got)
	}

	s.nodes.state = chain.Unknown
	at.Add(3 * 24 * 3600) // people sign for days
	for _, test := range []struct {
		state         chain.SafeState
		tx            chain.TransactionState
		detail, query string
	}{
		{chain.SafeWaiting, chain.Unknown, "as its transaction number 8.", ""},
		{chain.SafeWaiting, chain.Unknown, "as its transaction number 8.", "?checkedInWallet=true"},
		{chain.SafeSettling, chain.Unknown, "not final or not read", "?checkedInWallet=true"},
		{chain.SafeUnknown, chain.Unknown, "checkedInWallet=true", ""},
		{chain.SafeUnknown, chain.Failed, "checkedInWallet=true", "?checkedInWallet=false"}, // its execution can be repeated
	} {
		s.nodes.safe, s.nodes.state = chain.SafeReport{State: test.state, Nonce: 8}, test.tx
		if p := wantProblem(t, do(s.handler, "POST", withdraw+test.query, ""), http.StatusConflict, "refund_submitted", ""); !strings.Contains(p.Detail, test.detail) {
			t.Errorf("%s: %q, want %q", test.state, p.Detail, test.detail)
		}
		got := shown(first)
		if got == nil || got.State != apitypes.SubmissionSafeState(test.state) || (got.Nonce == nil) != (test.state == chain.SafeUnknown) {
			t.Errorf("%s: the refund shows %+v", test.state, got)
		}
	}
	if s.nodes.readThrough != head.Number {
		t.Errorf("the nodes were asked about block %d, want %d", s.nodes.readThrough, head.Number)
	}
	s.nodes.safe.State, s.nodes.state = chain.SafeUnknown, chain.Queued // the transaction that executes
	if got := shown(first); got != nil {
		t.Errorf("a transaction that nodes have shows %+v", got)
	}
	wantProblem(t, do(s.handler, "POST", withdraw+"?checkedInWallet=true", ""), http.StatusConflict, "refund_submitted", "")

	// Without the wallet's answer, only the person who began knows what it did.
	s.nodes.state, s.nodes.safe = chain.Unknown, chain.SafeReport{State: chain.SafeUsed, Nonce: 8}
	decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", withdraw, ""), http.StatusOK)
	s.nodes.safe.State = chain.SafeUnknown
	own := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", first+"/submissions", `{}`), http.StatusCreated).Submission
	decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", first+"/submissions/"+own.ID+"/withdraw", ""), http.StatusOK)

	// The transfer of a second refund is taken for the first one.
	second := refund()
	submission = begin(second)
	withdraw = second + "/submissions/" + submission.ID + "/withdraw"
	block := invoice.Header{Number: 102, Hash: invoice.Hash{4}, Parent: head.Hash, Time: invoice.Unix(at.Load())}
	base, _ := chain.Lookup("base")
	from, err := chain.ParseAddress(address)
	must(t, err)
	s.observe(t, block, invoice.Transfer{
		ChainKey: "base", TxHash: invoice.Hash{5}, Token: base.Tokens[0].Address, Currency: "USDC", From: from, To: invoice.Address{0xbb},
		Position: invoice.Position{BlockNumber: 102, BlockHash: block.Hash, BlockTime: block.Time}, Amount: invoice.NewAmount(900_000),
	})
	if got := decode[apitypes.RefundResponse](t, do(s.handler, "GET", first, ""), http.StatusOK).Refund.Status; got != apitypes.RefundConfirmed {
		t.Fatalf("the first refund is %s", got)
	}
	s.nodes.safe.State = chain.SafeUsed
	wantProblem(t, do(s.handler, "POST", withdraw, ""), http.StatusConflict, "refund_submitted", "")
	if got := shown(second); got == nil || got.State != apitypes.SafeUnknown {
		t.Errorf("the second refund shows %+v", got)
	}
	wantProblem(t, do(s.handler, "POST", withdraw+"?checkedInWallet=true", ""), http.StatusConflict, "refund_submitted", "") // too early
	at.Add(int64(invoice.SubmissionPatience / time.Second))
	decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", withdraw+"?checkedInWallet=true", ""), http.StatusOK)
}
