package settle_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// as returns the context of a request by the merchant's key of a person.
func (w *world) as(name string) context.Context {
	return access.WithPrincipal(w.t.Context(), access.Principal{KeyID: "key_" + name, Name: name, MerchantID: w.merchant, Scopes: access.Finance})
}

// wantSubmitted fails the test unless an error says that a person sends the refund.
func wantSubmitted(t *testing.T, what string, err error, by string) {
	t.Helper()
	var submitted *settle.SubmittedError
	if !errors.As(err, &submitted) || submitted.By != by {
		t.Errorf("%s: %v, want that %s sends it", what, err, by)
	}
}

// TestSubmitRefund has two people send a refund: one may at a time.
func TestSubmitRefund(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		maria, juan := w.as("maria"), w.as("juan")
		first, err := w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{})
		w.must(err)
		_, err = w.SubmitRefund(juan, r.ID, w.merchant, invoice.Hash{})
		wantSubmitted(t, "a second one", err, "maria")
		_, err = w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{})
		wantSubmitted(t, "a second tab", err, "maria")
		_, err = w.CancelRefund(juan, r.ID, w.merchant)
		wantSubmitted(t, "a cancellation", err, "maria")
		_, err = w.WithdrawSubmission(juan, settle.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant})
		wantSubmitted(t, "withdrawn by another before the wallet answered", err, "maria")

		w.advance(start + int64(invoice.SubmissionPatience.Seconds()))
		withdrawn, err := w.WithdrawSubmission(juan, settle.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant})
		if err != nil || withdrawn.WithdrawnBy != "juan" || withdrawn.InForce() {
			t.Fatalf("withdrawn: %+v, %v", withdrawn, err)
		}
		if e := w.newestEntry(r.ID); e.Action != access.ActionRefundWithdraw || e.Actor != "key_juan" {
			t.Errorf("the audit log has %+v", e)
		}
		second, err := w.SubmitRefund(juan, r.ID, w.merchant, invoice.Hash{})
		w.must(err)

		// The first wallet answers after all. Its transaction is kept, and the second stays in force.
		late, err := w.RecordTransaction(maria, r.ID, first.ID, w.merchant, invoice.Hash{1})
		if err != nil || late.InForce() || late.TxHash != (invoice.Hash{1}) {
			t.Errorf("recorded late: %+v, %v", late, err)
		}
		_, err = w.WithdrawSubmission(juan, settle.Withdrawal{RefundID: r.ID, SubmissionID: second.ID, MerchantID: w.merchant})
		w.must(err)
		revived, err := w.RecordTransaction(maria, r.ID, first.ID, w.merchant, invoice.Hash{2})
		if err != nil || !revived.InForce() {
			t.Errorf("recorded when none is in force: %+v, %v", revived, err)
		}
		_, err = w.WithdrawSubmission(juan, settle.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant, Gone: invoice.Hash{1}})
		wantErr(t, "another transaction is gone", err, settle.ErrSubmissionSent)
		_, err = w.WithdrawSubmission(juan, settle.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant, Gone: invoice.Hash{2}})
		w.must(err)

		all, err := w.db.store.Submissions(t.Context(), r.ID)
		if err != nil || len(all) != 2 || all[0].ID != second.ID || all[1].ID != first.ID {
			t.Errorf("the submissions are %+v, %v", all, err)
		}
		_, err = w.CancelRefund(juan, r.ID, w.merchant)
		w.must(err)
		_, err = w.SubmitRefund(juan, r.ID, w.merchant, invoice.Hash{})
		wantErr(t, "of a canceled refund", err, settle.ErrRefundNotOpen)
	})
}

// TestSubmitRefundOfOthers finds refunds of the merchant alone.
func TestSubmitRefundOfOthers(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{})
		w.must(err)
		for what, call := range map[string]func(refund, submission, merchant string) error{
			"submit": func(refund, _, merchant string) error {
				_, err := w.SubmitRefund(t.Context(), refund, merchant, invoice.Hash{})
				return err
			},
			"record": func(refund, submission, merchant string) error {
				_, err := w.RecordTransaction(t.Context(), refund, submission, merchant, invoice.Hash{1})
				return err
			},
			"withdraw": func(refund, submission, merchant string) error {
				_, err := w.WithdrawSubmission(t.Context(), settle.Withdrawal{RefundID: refund, SubmissionID: submission, MerchantID: merchant})
				return err
			},
		} {
			wantErr(t, what+" of another merchant", call(r.ID, s.ID, "other"), store.ErrNotFound)
			wantErr(t, what+" of no refund", call("ref_none", s.ID, w.merchant), store.ErrNotFound)
			if what != "submit" {
				wantErr(t, what+" of no submission", call(r.ID, "sub_none", w.merchant), store.ErrNotFound)
			}
		}
	})
}

// TestSubmitRefundConcurrently lets one of many send a refund.
func TestSubmitRefundConcurrently(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		var won atomic.Int64
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				var submitted *settle.SubmittedError
				switch _, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}); {
				case err == nil:
					won.Add(1)
				case !errors.As(err, &submitted):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 {
			t.Errorf("%d may send the refund", won.Load())
		}
	})
}

// TestSubmissionsAreBounded refuses more than invoice.MaxSubmissions of a refund.
func TestSubmissionsAreBounded(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		maria := w.as("maria")
		for range invoice.MaxSubmissions {
			s, err := w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{})
			w.must(err)
			_, err = w.WithdrawSubmission(maria, settle.Withdrawal{RefundID: r.ID, SubmissionID: s.ID, MerchantID: w.merchant})
			w.must(err)
		}
		_, err := w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{})
		wantErr(t, "one more", err, settle.ErrTooManySubmissions)
	})
}
