package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// as returns the context of a request by the merchant's key of a person.
func (w *world) as(name string) context.Context {
	return access.WithPrincipal(w.t.Context(), access.Principal{KeyID: "key_" + name, Name: name, MerchantID: w.merchant, Scopes: access.Finance})
}

// wantSubmitted fails the test unless an error reports that a person sends the refund.
func wantSubmitted(t *testing.T, what string, err error, by string) {
	t.Helper()
	var submitted *ledger.SubmittedError
	if !errors.As(err, &submitted) || submitted.By != by {
		t.Errorf("%s: %v, want that %s sends it", what, err, by)
	}
}

// TestSubmittedRefundDoesNotExpire records the transaction of a refund, which a slow wallet sends after the refund could
// be sent. Until then its amount is reserved, and no other refund is offered.
func TestSubmittedRefundDoesNotExpire(t *testing.T) {
	const day = 24 * 60 * 60
	eachWorld(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		unknown := w.mustPrepare(p, 300) // its wallet has not answered
		w.must(w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{8}, ledger.Once{}))
		w.must(w.SubmitRefund(w.as("maria"), unknown.ID, w.merchant, invoice.Hash{}, ledger.Once{}))
		for _, days := range []int64{14, 15, 100} {
			w.seconds.Store(start + days*day)
			w.must(w.ExpireRefunds(t.Context()))
			now := at(w.seconds.Load())
			got := w.refund(r.ID)
			if got.StatusAt(now) != invoice.RefundPending || got.Status != invoice.RefundPending || got.CanBeSent(now) || !slices.Contains(got.Warnings(now), invoice.WarnNotMined) {
				t.Errorf("after %d days it is %s, can be sent: %t, with the warnings %v", days, got.StatusAt(now), got.CanBeSent(now), got.Warnings(now))
			}
			if got := w.refund(unknown.ID); got.Status != invoice.RefundExpired {
				t.Errorf("after %d days the one without a transaction is %s", days, got.Status)
			}
			expect.Equal(t, w.payment(p.Transfer).Use, invoice.UseRefunding, "after %d days the payment is", days)
			_, err := w.SubmitRefund(w.as("juan"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
			wantSubmitted(t, "submitted by another", err, "maria")
			_, err = w.CancelRefund(t.Context(), r.ID, w.merchant)
			wantSubmitted(t, "canceled", err, "maria")
			expect.Error(t, ledger.ErrRefundExceeds, "more than is left")(w.prepare(p, 401))
		}
		w.mine(w.head().Time.Unix()+1, w.send(r))
		w.wantRefund("mined", r.ID, invoice.RefundPending, 600)
		w.final()
		w.wantRefund("final", r.ID, invoice.RefundConfirmed, 600)
		expect.Error(t, ledger.ErrRefundExceeds, "more than is left once it is final")(w.prepare(p, 401))
	})
}

// TestSubmitRefund sends a refund as two people: one may at a time.
func TestSubmitRefund(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		maria, juan := w.as("maria"), w.as("juan")
		first, err := w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		w.must(err)
		_, err = w.SubmitRefund(juan, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		wantSubmitted(t, "a second one", err, "maria")
		_, err = w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		wantSubmitted(t, "a second tab", err, "maria")
		_, err = w.CancelRefund(juan, r.ID, w.merchant)
		wantSubmitted(t, "a cancellation", err, "maria")
		_, err = w.WithdrawSubmission(juan, ledger.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant})
		wantSubmitted(t, "withdrawn by another before the wallet answered", err, "maria")

		w.advance(start + int64(invoice.SubmissionPatience.Seconds()))
		withdrawn, err := w.WithdrawSubmission(juan, ledger.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant, CheckedInWallet: true})
		if err != nil || withdrawn.WithdrawnBy != "juan" || withdrawn.InForce() {
			t.Fatalf("withdrawn: %+v, %v", withdrawn, err)
		}
		if e := w.newestEntry(r.ID); e.Action != access.ActionRefundWithdraw || e.Actor != "key_juan" || !strings.Contains(e.After, `"checkedInWallet":true`) {
			t.Errorf("the audit log has %+v", e)
		}
		second, err := w.SubmitRefund(juan, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		w.must(err)

		// The first wallet answers after all. Its transaction is kept, and the second stays in force.
		late, err := w.RecordTransaction(maria, r.ID, first.ID, w.merchant, invoice.Hash{1}, invoice.Hash{})
		if err != nil || late.InForce() || late.TxHash != (invoice.Hash{1}) {
			t.Errorf("recorded late: %+v, %v", late, err)
		}
		expect.Equal(t, w.newestEntry(r.ID).Action, access.ActionRefundSubmit, "the newest entry of the audit log is")
		w.must(w.WithdrawSubmission(juan, ledger.Withdrawal{RefundID: r.ID, SubmissionID: second.ID, MerchantID: w.merchant}))
		revived, err := w.RecordTransaction(maria, r.ID, first.ID, w.merchant, invoice.Hash{2}, invoice.Hash{})
		if err != nil || !revived.InForce() {
			t.Errorf("recorded when none is in force: %+v, %v", revived, err)
		}
		_, err = w.RecordTransaction(maria, r.ID, first.ID, w.merchant, invoice.Hash{3}, invoice.Hash{1})
		expect.Error(t, ledger.ErrSubmissionSent, "replaced after another transaction was recorded")(err)
		_, err = w.WithdrawSubmission(juan, ledger.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant, Gone: invoice.Hash{1}})
		expect.Error(t, ledger.ErrSubmissionSent, "another transaction is gone")(err)
		w.patience()
		w.must(w.WithdrawSubmission(juan, ledger.Withdrawal{RefundID: r.ID, SubmissionID: first.ID, MerchantID: w.merchant, Gone: invoice.Hash{2}}))

		all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), r.ID)
		if err != nil || len(all) != 2 || all[0].ID != second.ID || all[1].ID != first.ID {
			t.Errorf("the submissions are %+v, %v", all, err)
		}
		w.must(w.CancelRefund(juan, r.ID, w.merchant))
		_, err = w.SubmitRefund(juan, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		expect.Error(t, ledger.ErrRefundNotOpen, "of a canceled refund")(err)
	})
}

// TestSubmitRefundOnce repeats a submission with its key: its maker gets it again if it is unchanged
// since the request.
func TestSubmitRefundOnce(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		maria, juan := w.as("maria"), w.as("juan")
		var replayed bool
		once := ledger.Once{Key: "k", Scope: w.merchant, Replayed: &replayed}
		submit := func(ctx context.Context, tx invoice.Hash, once ledger.Once) (invoice.Submission, error) {
			replayed = false
			return w.service().SubmitRefund(ctx, r.ID, w.merchant, tx, once) // as after a restart
		}
		withdraw := func(s invoice.Submission) {
			w.patience()
			w.must(w.WithdrawSubmission(maria, ledger.Withdrawal{RefundID: r.ID, SubmissionID: s.ID, MerchantID: w.merchant, Gone: s.TxHash}))
		}
		first, err := submit(maria, invoice.Hash{}, once)
		if err != nil || replayed {
			t.Fatalf("the first request: replayed %t, %v", replayed, err)
		}
		if again, err := submit(maria, invoice.Hash{}, once); err != nil || !replayed || again != first {
			t.Errorf("repeated: replayed %t, %+v, %v", replayed, again, err)
		}
		expect.Error(t, ledger.ErrIdempotencyMismatch, "another request with the key")(submit(maria, invoice.Hash{1}, once))
		for _, other := range []ledger.Once{{Key: "k", Scope: "other"}, {Key: "l", Scope: w.merchant}, {}} {
			_, err = submit(maria, invoice.Hash{}, other)
			wantSubmitted(t, "a second tab", err, "maria")
		}
		for _, tx := range []invoice.Hash{{}, {1}} {
			_, err = submit(juan, tx, once)
			wantSubmitted(t, "another person with the key", err, "maria")
		}

		first, err = w.RecordTransaction(maria, r.ID, first.ID, w.merchant, invoice.Hash{1}, invoice.Hash{})
		w.must(err)
		_, err = submit(maria, invoice.Hash{}, once)
		wantSubmitted(t, "repeated after it was sent", err, "maria")
		withdraw(first)
		second, err := submit(juan, invoice.Hash{}, once)
		if err != nil || replayed || second.ID == first.ID {
			t.Errorf("another person once it was withdrawn: replayed %t, %+v, %v", replayed, second, err)
		}
		_, err = submit(maria, invoice.Hash{}, once)
		wantSubmitted(t, "repeated while another one is in force", err, "juan")
		withdraw(second)
		third, err := submit(maria, invoice.Hash{}, once)
		if err != nil || replayed || third.ID == first.ID || !third.InForce() {
			t.Errorf("repeated while none is in force: replayed %t, %+v, %v", replayed, third, err)
		}
		if again, err := submit(maria, invoice.Hash{}, once); err != nil || !replayed || again != third {
			t.Errorf("that one repeated: replayed %t, %+v, %v", replayed, again, err)
		}

		next := w.mustPrepare(w.paid(1000), 400) // of which the key is another one
		replayed = false
		if made, err := w.SubmitRefund(maria, next.ID, w.merchant, invoice.Hash{1}, once); err != nil || replayed || made.RefundID != next.ID {
			t.Errorf("of another refund: replayed %t, %+v, %v", replayed, made, err)
		}
	})
}

// TestSubmitRefundOfOthers finds only refunds of the merchant.
func TestSubmitRefundOfOthers(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		w.must(err)
		for what, call := range map[string]func(refund, submission, merchant string) error{
			"submit": func(refund, _, merchant string) error {
				_, err := w.SubmitRefund(t.Context(), refund, merchant, invoice.Hash{}, ledger.Once{})
				return err
			},
			"record": func(refund, submission, merchant string) error {
				_, err := w.RecordTransaction(t.Context(), refund, submission, merchant, invoice.Hash{1}, invoice.Hash{})
				return err
			},
			"withdraw": func(refund, submission, merchant string) error {
				_, err := w.WithdrawSubmission(t.Context(), ledger.Withdrawal{RefundID: refund, SubmissionID: submission, MerchantID: merchant})
				return err
			},
		} {
			expect.Error(t, db.ErrNotFound, "%s of another merchant", what)(call(r.ID, s.ID, "other"))
			expect.Error(t, db.ErrNotFound, "%s of no refund", what)(call("ref_none", s.ID, w.merchant))
			if what != "submit" {
				expect.Error(t, db.ErrNotFound, "%s of no submission", what)(call(r.ID, "sub_none", w.merchant))
			}
		}
	})
}

// TestSubmissionsAreBounded refuses more than invoice.MaxSubmissions of a refund.
func TestSubmissionsAreBounded(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 400)
		maria := w.as("maria")
		for range invoice.MaxSubmissions {
			s, err := w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
			w.must(err)
			w.must(w.WithdrawSubmission(maria, ledger.Withdrawal{RefundID: r.ID, SubmissionID: s.ID, MerchantID: w.merchant}))
		}
		_, err := w.SubmitRefund(maria, r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		expect.Error(t, ledger.ErrTooManySubmissions, "one more")(err)
	})
}
