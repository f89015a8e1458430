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
	"github.com/quittance/quittance/internal/ledger"
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
		{chain.SafeUnknown, chain.Settled, "checkedInWallet=true", "?checkedInWallet=false"}, // its execution can be repeated
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
	if got := s.nodes.readThrough; got.Number != head.Number || got.Hash != head.Hash {
		t.Errorf("the nodes were asked about block %+v, want %+v", got, head)
	}
	s.nodes.safe.State, s.nodes.state = chain.SafeUnknown, chain.Queued // the transaction that executes
	if got := shown(first); got != nil {
		t.Errorf("a transaction that nodes have shows %+v", got)
	}
	wantProblem(t, do(s.handler, "POST", withdraw+"?checkedInWallet=true", ""), http.StatusConflict, "refund_submitted", "")

	// Another hash would hide one that can still be executed.
	record := func(want int, hash byte) {
		t.Helper()
		if w := do(s.handler, "PUT", first+"/submissions/"+submission.ID, `{"txHash":"`+invoice.Hash{hash}.String()+`"}`); w.Code != want {
			t.Errorf("recorded hash %d while the known one is %s: %d, %s", hash, s.nodes.safe.State, w.Code, w.Body)
		}
	}
	s.nodes.state = chain.Unknown
	for _, s.nodes.safe.State = range []chain.SafeState{chain.SafeWaiting, chain.SafeSettling, chain.SafeUnknown} {
		record(http.StatusConflict, 8)
		record(http.StatusOK, 7)
	}
	s.nodes.state = ""
	record(http.StatusServiceUnavailable, 8)
	s.nodes.state = chain.Unknown
	for _, s.nodes.safe.State = range []chain.SafeState{chain.SafeUsed, chain.SafeNone} {
		record(http.StatusOK, 8)
		record(http.StatusOK, 7)
	}

	// Without the wallet's answer, the person who began declares that it will not be executed, at once.
	s.nodes.safe = chain.SafeReport{State: chain.SafeUsed, Nonce: 8}
	decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", withdraw, ""), http.StatusOK)
	s.nodes.safe.State = chain.SafeUnknown
	own := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", first+"/submissions", `{}`), http.StatusCreated).Submission
	withdraw = first + "/submissions/" + own.ID + "/withdraw"
	wantProblem(t, do(s.handler, "POST", withdraw, ""), http.StatusConflict, "refund_submitted", "")
	s.nodes.fails = true
	decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", withdraw+"?checkedInWallet=true", ""), http.StatusOK)
	s.nodes.fails = false

	// Of two equal refunds, the submitted one is paid.
	second := refund()
	begin(second)
	s.moved(t, 102, head.Hash, invoice.Address{0xbb}, 900_000)
	for path, want := range map[string]apitypes.RefundStatus{first: apitypes.RefundPending, second: apitypes.RefundConfirmed} {
		if got := decode[apitypes.RefundResponse](t, do(s.handler, "GET", path, ""), http.StatusOK).Refund.Status; got != want {
			t.Errorf("refund %s is %s, want %s", path, got, want)
		}
	}
	// The Safe did not pay it with the recorded hash, and can pay it again.
	s.nodes.safe.State = chain.SafeWaiting
	if got := shown(second); got == nil || got.State != apitypes.SafeWaiting || *got.Nonce != 8 {
		t.Errorf("a paid refund that the Safe can pay again shows %+v", got)
	}
	for _, s.nodes.safe.State = range []chain.SafeState{chain.SafeUsed, chain.SafeSettling, chain.SafeUnknown, chain.SafeNone} {
		if got := shown(second); got != nil {
			t.Errorf("a paid refund shows %+v", got)
		}
	}
}

// transferOut is a transfer of an amount from the settlement address, in a block of its own.
func transferOut(t *testing.T, number uint64, parent invoice.Hash, to invoice.Address, amount uint64) (invoice.Header, invoice.Transfer) {
	t.Helper()
	block := invoice.Header{Number: number, Hash: invoice.Hash{0x80, byte(number)}, Parent: parent, Time: invoice.Unix(now + int64(number))}
	base, _ := chain.Lookup("base")
	from, err := chain.ParseAddress(address)
	must(t, err)
	return block, invoice.Transfer{
		ChainKey: "base", TxHash: invoice.Hash{0x70, byte(number)}, Token: base.Tokens[0].Address, Currency: "USDC", From: from, To: to,
		Position: invoice.Position{BlockNumber: number, BlockHash: block.Hash, BlockTime: block.Time}, Amount: invoice.NewAmount(amount),
	}
}

// moved stores a transferOut, and returns the block's hash.
func (s integration) moved(t *testing.T, number uint64, parent invoice.Hash, to invoice.Address, amount uint64) invoice.Hash {
	t.Helper()
	block, transfer := transferOut(t, number, parent, to, amount)
	s.observe(t, block, transfer)
	return block.Hash
}

// TestIntegrationSafeAfterReorg drops the execution. Anyone can repeat it with the owners' signatures.
func TestIntegrationSafeAfterReorg(t *testing.T) {
	at := new(atomic.Int64)
	at.Store(now)
	s := newIntegrationAt(t, dbtest.Open(t, dbtest.SQLite(t)), func() time.Time { return time.Unix(at.Load(), 0) })
	payment, head := s.confirmedPayment(t)
	refund := "/api/refunds/" + decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"amount":"900000"}`), http.StatusCreated).Refund.ID
	submission := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", refund+"/submissions", `{"txHash":"`+invoice.Hash{7}.String()+`"}`), http.StatusCreated).Submission
	block, transfer := transferOut(t, 102, head.Hash, invoice.Address{0xbb}, 900_000)
	must(t, s.service.Observe(t.Context(), "base", []ledger.Block{{Header: block, Transfers: []invoice.Transfer{transfer}}}))
	must(t, s.service.Rollback(t.Context(), "base", head))
	s.nodes.state, s.nodes.safe = chain.Unknown, chain.SafeReport{State: chain.SafeWaiting, Nonce: 8}
	at.Add(3600)
	p := wantProblem(t, do(s.handler, "POST", refund+"/submissions/"+submission.ID+"/withdraw?checkedInWallet=true", ""), http.StatusConflict, "refund_submitted", "")
	if !strings.Contains(p.Detail, "as its transaction number 8.") || s.nodes.signed != (invoice.Hash{7}) {
		t.Errorf("asked about %s: %q", s.nodes.signed, p.Detail)
	}
	got := decode[apitypes.RefundResponse](t, do(s.handler, "GET", refund+"?include=safe", ""), http.StatusOK).Submissions[0]
	if got.TxHash != transfer.TxHash.String() || got.Safe == nil || got.Safe.State != apitypes.SafeWaiting || s.nodes.signed != (invoice.Hash{7}) {
		t.Errorf("the refund shows %+v", got)
	}
}

// TestIntegrationSafeExecutedUnnoticed has a Safe execute refunds in a way that records no transfer like the refund. A
// number that it has used proves that it did not execute them only if that would have been recorded.
func TestIntegrationSafeExecutedUnnoticed(t *testing.T) {
	other := invoice.Address{19: 0xcc}
	for name, execute := range map[string]func(s integration, prepare func(body string) string, begin func(refund, body string) string, head invoice.Header) (submission string){
		"less is left": func(s integration, prepare func(string) string, begin func(_, _ string) string, head invoice.Header) string {
			submission := begin(prepare(`{"amount":"4000000"}`), `{"txHash":"`+invoice.Hash{7}.String()+`"}`)
			s.moved(t, 103, s.moved(t, 102, head.Hash, invoice.Address{0xbb}, 1_500_000), invoice.Address{0xbb}, 4_000_000)
			return submission
		},
		"canceled": func(s integration, prepare func(string) string, begin func(_, _ string) string, head invoice.Header) string {
			refund := prepare(`{"amount":"4000000","to":"` + other.String() + `"}`)
			submission := begin(refund, `{}`)
			decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", submission+"/withdraw?checkedInWallet=true", ""), http.StatusOK)
			decode[apitypes.RefundResponse](t, do(s.handler, "POST", refund+"/cancel", ""), http.StatusOK)
			decode[apitypes.SubmissionResponse](t, do(s.handler, "PUT", submission, `{"txHash":"`+invoice.Hash{7}.String()+`"}`), http.StatusOK)
			s.moved(t, 102, head.Hash, other, 4_000_000)
			return submission
		},
		"counted for another": func(s integration, prepare func(string) string, begin func(_, _ string) string, head invoice.Header) string {
			prepare(`{"amount":"1000000"}`)
			second := prepare(`{"amount":"1000000"}`)
			s.moved(t, 102, head.Hash, invoice.Address{0xbb}, 1_000_000)
			return begin(second, `{"txHash":"`+invoice.Hash{7}.String()+`"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := new(atomic.Int64)
			at.Store(now)
			s := newIntegrationAt(t, dbtest.Open(t, dbtest.SQLite(t)), func() time.Time { return time.Unix(at.Load(), 0) })
			payment, head := s.confirmedPayment(t)
			s.nodes.state, s.nodes.safe = chain.Unknown, chain.SafeReport{State: chain.SafeUnknown, Nonce: 8}
			prepare := func(body string) string {
				at.Add(60)
				return "/api/refunds/" + decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", body), http.StatusCreated).Refund.ID
			}
			begin := func(refund, body string) string {
				at.Add(60)
				return refund + "/submissions/" + decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", refund+"/submissions", body), http.StatusCreated).Submission.ID
			}
			submission := execute(s, prepare, begin, head)
			s.nodes.safe.State = chain.SafeUsed
			at.Add(3600)
			wantProblem(t, do(s.handler, "POST", submission+"/withdraw", ""), http.StatusConflict, "refund_submitted", "")
			refund, _, _ := strings.Cut(submission, "/submissions/")
			got := decode[apitypes.RefundResponse](t, do(s.handler, "GET", refund+"?include=safe", ""), http.StatusOK)
			if len(got.Submissions) == 0 || got.Submissions[0].Safe == nil || got.Submissions[0].Safe.State != apitypes.SafeUnknown {
				t.Fatalf("the refund shows %+v", got.Submissions)
			}
			shown := got.Submissions[0].Safe
			counted := shown.RefundID != "" && shown.RefundID != got.Refund.ID &&
				decode[apitypes.RefundResponse](t, do(s.handler, "GET", "/api/refunds/"+shown.RefundID, ""), http.StatusOK).Refund.Status == apitypes.RefundConfirmed
			if shown.Nonce == nil || *shown.Nonce != 8 || counted != (name == "counted for another") {
				t.Errorf("the refund shows number %v and refund %q", shown.Nonce, shown.RefundID)
			}
			decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", submission+"/withdraw?checkedInWallet=true", ""), http.StatusOK)
		})
	}
}
