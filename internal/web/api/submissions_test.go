package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

func (b *backend) SubmitRefund(ctx context.Context, _, _ string, _ invoice.Hash, _ ledger.Once) (invoice.Submission, error) {
	return invoice.Submission{}, b.fail(ctx)
}

func (b *backend) RecordTransaction(ctx context.Context, _, _, _ string, _, _ invoice.Hash) (invoice.Submission, error) {
	return invoice.Submission{}, b.fail(ctx)
}

func (b *backend) WithdrawSubmission(ctx context.Context, _ ledger.Withdrawal) (invoice.Submission, error) {
	return invoice.Submission{}, b.fail(ctx)
}

func (b *backend) SubmissionSeen(ctx context.Context, _, _, _ string, _ invoice.Hash) error {
	return b.fail(ctx)
}

func (b *backend) TransferLike(ctx context.Context, _ invoice.RefundRecord, _ time.Time) (string, error) {
	return "", b.fail(ctx)
}

func (b *backend) Cursor(ctx context.Context, _ string) (ledger.Cursor, error) {
	return ledger.Cursor{}, b.fail(ctx)
}

func (b *backend) Submissions(ctx context.Context, _ ...string) ([]invoice.Submission, error) {
	return nil, b.fail(ctx)
}

// TestIntegrationSubmissionSeen withdraws a submission after its 10 minutes. A node has the
// transaction then, so the 10 minutes start again.
func TestIntegrationSubmissionSeen(t *testing.T) {
	store := dbtest.Open(t, dbtest.SQLite(t))
	at := new(atomic.Int64)
	at.Store(now)
	s := newIntegrationAt(t, store, func() time.Time { return time.Unix(at.Load(), 0) })
	payment, _ := s.confirmedPayment(t)
	made := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{}`), http.StatusCreated)
	path := "/api/refunds/" + made.Refund.ID + "/submissions"
	submission := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", path, `{"txHash":"`+invoice.Hash{7}.String()+`"}`), http.StatusCreated).Submission
	const patience = int64(invoice.SubmissionPatience / time.Second)
	withdraw := func(after int64, state chain.TransactionState) *httptest.ResponseRecorder {
		at.Add(after)
		s.nodes.state = state
		return do(s.handler, "POST", path+"/"+submission.ID+"/withdraw", "")
	}
	wantProblem(t, withdraw(patience, chain.Queued), http.StatusConflict, "refund_submitted", "")
	wantProblem(t, withdraw(patience-1, chain.Unknown), http.StatusConflict, "refund_submitted", "")
	if got := decode[apitypes.SubmissionResponse](t, withdraw(1, chain.Unknown), http.StatusOK).Submission; got.WithdrawnBy == "" || got.StartedAt != now {
		t.Errorf("withdrawn after no node has had it for 10 minutes: %+v", got)
	}
}

// TestIntegrationMinedSubmissions withdraws submissions of which the transaction was mined, with the amount of the refund
// or another one. It waits for the block, which may still be dropped.
func TestIntegrationMinedSubmissions(t *testing.T) {
	for amount, sent := range map[uint64]bool{900_000: true, 890_000: false} {
		s := newIntegration(t, dbtest.Open(t, dbtest.SQLite(t)))
		payment, head := s.confirmedPayment(t)
		made := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"amount":"900000"}`), http.StatusCreated)
		path := "/api/refunds/" + made.Refund.ID
		block, transfer := transferOut(t, 102, head.Hash, invoice.Address{0xbb}, amount)
		made.Submissions = append(made.Submissions, decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", path+"/submissions", `{"txHash":"`+transfer.TxHash.String()+`"}`), http.StatusCreated).Submission)
		withdraw := func() *httptest.ResponseRecorder {
			return do(s.handler, "POST", path+"/submissions/"+made.Submissions[0].ID+"/withdraw", "")
		}
		s.nodes.state, s.nodes.mined = chain.Mined, block.Number
		wantProblem(t, withdraw(), http.StatusConflict, "refund_submitted", "")
		put := do(s.handler, "PUT", path+"/submissions/"+made.Submissions[0].ID, `{"txHash":"`+invoice.Hash{9}.String()+`"}`)
		wantProblem(t, put, http.StatusConflict, "refund_submitted", "") // it would hide the mined one
		s.observe(t, block, transfer)
		if sent {
			wantProblem(t, withdraw(), http.StatusConflict, "refund_submitted", "")
			continue
		}
		decode[apitypes.SubmissionResponse](t, withdraw(), http.StatusOK)
		decode[apitypes.RefundResponse](t, do(s.handler, "POST", path+"/cancel", ""), http.StatusOK)
	}
}

// TestIntegrationWritesOnce repeats a submission and an erasure with their keys.
func TestIntegrationWritesOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s := newIntegration(t, store)
		payment, _ := s.confirmedPayment(t)
		made := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{}`), http.StatusCreated)
		for _, test := range []struct {
			path, body, other string
			status            int
		}{
			{"/api/refunds/" + made.Refund.ID + "/submissions", `{}`, `{"txHash":"` + invoice.Hash{1}.String() + `"}`, http.StatusCreated},
			{"/api/customers/erase", `{"merchantId":"acme","customer":"c-77"}`, `{"merchantId":"acme","customer":"c-78"}`, http.StatusOK},
		} {
			first := do(s.handler, "POST", test.path, test.body, "Idempotency-Key", "k")
			again := do(s.handler, "POST", test.path, test.body, "Idempotency-Key", `"k"`)
			if first.Code != test.status || first.Header().Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: %d, %v", test.path, first.Code, first.Header())
			}
			if again.Code != test.status || again.Header().Get("Idempotency-Replayed") != "true" || again.Body.String() != first.Body.String() {
				t.Errorf("%s repeated: %d, %v, %s, want %s", test.path, again.Code, again.Header(), again.Body, first.Body)
			}
			wantProblem(t, do(s.handler, "POST", test.path, test.other, "Idempotency-Key", "k"), http.StatusUnprocessableEntity, "idempotency_mismatch", "")
			wantProblem(t, do(s.handler, "POST", test.path, test.body, "Idempotency-Key", "a b"), http.StatusBadRequest, "invalid_field", "Idempotency-Key")
		}
	})
}

// TestIntegrationSubmissions submits a refund twice, records its transaction, and withdraws the submission once the
// transaction is gone.
func TestIntegrationSubmissions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s := newIntegration(t, store)
		payment, _ := s.confirmedPayment(t)
		made := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"amount":"900000"}`), http.StatusCreated)
		refund := "/api/refunds/" + made.Refund.ID
		if made.Submissions != nil {
			t.Errorf("a new refund has %+v", made.Submissions)
		}

		first := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", refund+"/submissions", `{}`), http.StatusCreated).Submission
		submission := refund + "/submissions/" + first.ID
		if p := wantProblem(t, do(s.handler, "POST", refund+"/submissions", `{}`), http.StatusConflict, "refund_submitted", ""); !strings.Contains(p.Detail, "has been sending this refund since 20") {
			t.Errorf("the refusal says %q", p.Detail)
		}
		wantProblem(t, do(s.handler, "POST", refund+"/cancel", ""), http.StatusConflict, "refund_submitted", "")

		for body, field := range map[string]string{`{}`: "txHash", `{"txHash":"0x1"}`: "txHash", `{"txHash":"` + invoice.Hash{}.String() + `"}`: "txHash"} {
			wantProblem(t, do(s.handler, "PUT", submission, body), http.StatusBadRequest, "invalid_field", field)
		}
		wantProblem(t, do(s.handler, "PUT", refund+"/submissions/sub_none", `{"txHash":"`+invoice.Hash{7}.String()+`"}`), http.StatusNotFound, "not_found", "")
		for range 2 {
			got := decode[apitypes.SubmissionResponse](t, do(s.handler, "PUT", submission, `{"txHash":"`+invoice.Hash{7}.String()+`"}`), http.StatusOK).Submission
			if got.TxHash != (invoice.Hash{7}).String() || got.By == "" || got.StartedAt != now || got.RefundID != made.Refund.ID {
				t.Errorf("recorded %+v", got)
			}
		}

		wantProblem(t, do(s.handler, "POST", submission+"/withdraw", ""), http.StatusServiceUnavailable, "unavailable", "")
		for _, state := range []chain.TransactionState{chain.Queued, chain.Mined, chain.Unknown} { // the last may be on its way
			s.nodes.state = state
			wantProblem(t, do(s.handler, "POST", submission+"/withdraw", ""), http.StatusConflict, "refund_submitted", "")
		}
		s.nodes.fails = true
		wantProblem(t, do(s.handler, "POST", submission+"/withdraw", ""), http.StatusServiceUnavailable, "unavailable", "")
		s.nodes.fails, s.nodes.state = false, chain.Settled
		for range 2 {
			got := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", submission+"/withdraw", ""), http.StatusOK).Submission
			if got.WithdrawnBy == "" || got.WithdrawnAt != now {
				t.Errorf("withdrawn %+v", got)
			}
		}
		waiting := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", refund+"/submissions", `{}`), http.StatusCreated).Submission
		s.nodes.waits = true
		wantProblem(t, do(s.handler, "POST", refund+"/submissions/"+waiting.ID+"/withdraw", ""), http.StatusConflict, "refund_submitted", "")
		s.nodes.waits, s.nodes.fails = false, true
		wantProblem(t, do(s.handler, "POST", refund+"/submissions/"+waiting.ID+"/withdraw", ""), http.StatusServiceUnavailable, "unavailable", "")
		s.nodes.fails = false
		decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", refund+"/submissions/"+waiting.ID+"/withdraw", ""), http.StatusOK)
		sent := decode[apitypes.SubmissionResponse](t, do(s.handler, "POST", refund+"/submissions", `{"txHash":"`+invoice.Hash{8}.String()+`"}`), http.StatusCreated).Submission
		read := decode[apitypes.RefundResponse](t, do(s.handler, "GET", refund, ""), http.StatusOK)
		if len(read.Submissions) != 3 || read.Submissions[0] != sent || sent.TxHash != (invoice.Hash{8}).String() || read.Transaction == nil {
			t.Errorf("the refund has %+v", read)
		}
	})
}
