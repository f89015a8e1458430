package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// wantUnsendable fails the test unless a refund can neither be sent nor submitted and has all the warnings.
func (w *world) wantUnsendable(when, id string, warnings ...invoice.RefundWarning) {
	w.t.Helper()
	now := at(w.seconds.Load())
	got := w.refund(id)
	if got.CanBeSent(now) {
		w.t.Errorf("%s: the other refund can be sent", when)
	}
	for _, want := range warnings {
		if !slices.Contains(got.Warnings(now), want) {
			w.t.Errorf("%s: the other refund has the warnings %v, want %s", when, got.Warnings(now), want)
		}
	}
	_, err := w.SubmitRefund(w.as("juan"), id, w.merchant, invoice.Hash{9}, ledger.Once{})
	expect.Error(w.t, ledger.ErrRefundNotOpen, "%s: the other refund is submitted", when)(err)
}

// patience advances the clocks until a submission may be withdrawn.
func (w *world) patience() { w.seconds.Add(int64(invoice.SubmissionPatience / time.Second)) }

// TestNothingIsSentBesideDropped drops the transfer of a refund while another one of the payment is
// prepared. The other one is not offered until the dropped one is withdrawn.
func TestNothingIsSentBesideDropped(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		var w *world
		for name, prepare := range map[string]func(ledger.RefundRequest) (dropped invoice.Transfer, other string){
			"by hand": func(req ledger.RefundRequest) (invoice.Transfer, string) {
				other, err := w.PrepareRefund(open(t), req)
				w.must(err)
				return w.back(invoice.NewAmount(700)), other.ID
			},
			"expired": func(req ledger.RefundRequest) (invoice.Transfer, string) {
				first, err := w.PrepareRefund(open(t), req)
				w.must(err)
				w.seconds.Add(int64(invoice.RefundLifetime/time.Second) + 1)
				w.must(w.ExpireRefunds(t.Context()))
				other, err := w.PrepareRefund(open(t), req)
				w.must(err)
				return w.send(first), other.ID
			},
			"canceled": func(req ledger.RefundRequest) (invoice.Transfer, string) {
				first, err := w.PrepareRefund(open(t), req)
				w.must(err)
				w.must(w.CancelRefund(t.Context(), first.ID, w.merchant))
				other, err := w.PrepareRefund(open(t), req)
				w.must(err)
				return w.send(first), other.ID
			},
		} {
			w = d.world(t)
			p := w.paid(1000)
			transfer, other := prepare(ledger.RefundRequest{PaymentID: p.ID, MerchantID: w.merchant, Amount: invoice.NewAmount(1000), To: p.From, Account: invoice.AccountWithKey})
			w.mine(w.head().Time.Unix()+1, transfer)
			w.wantUnsendable(name+", in a block", other)
			w.reorg(1)
			w.wantUnsendable(name+", dropped", other, invoice.WarnTransferDropped, invoice.WarnExceedsRemainder)
			expect.Error(t, ledger.ErrRefundExceeds, "%s: another is prepared", name)(w.prepare(p, 1))

			w.patience()
			record, _ := w.storedRefund(transfer)
			w.must(w.withdraw(record.ID))
			if got := w.refund(other); !got.CanBeSent(at(w.seconds.Load())) || !slices.Contains(got.Warnings(at(w.seconds.Load())), invoice.WarnTransferDropped) {
				t.Errorf("%s, withdrawn: can be sent: %t, with the warnings %v", name, got.CanBeSent(at(w.seconds.Load())), got.Warnings(at(w.seconds.Load())))
			}
			w.must(w.CancelRefund(t.Context(), other, w.merchant))
		}
	})
}

// TestDroppedTransactionIsKept records another transaction of a refund while the one that a reorg dropped may be mined.
func TestDroppedTransactionIsKept(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, byHand := range []bool{true, false} {
			w := d.world(t)
			p := w.paid(1000)
			transfer := w.back(invoice.NewAmount(1000))
			if !byHand {
				r := w.mustPrepare(p, 1000)
				_, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{1}, ledger.Once{}) // which the wallet replaced
				w.must(err)
				transfer = w.send(r)
			}
			w.mine(w.head().Time.Unix()+1, transfer)
			w.reorg(1)
			record, _ := w.storedRefund(transfer)
			all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), record.ID)
			w.must(err)
			if signed := all[0].SignedHash; byHand != signed.IsZero() || !byHand && signed != (invoice.Hash{1}) {
				t.Errorf("by hand %t, the hash that the wallet answered is %s", byHand, signed)
			}
			put := func(tx invoice.Hash) error {
				_, err := w.RecordTransaction(w.as("maria"), record.ID, all[0].ID, w.merchant, tx, all[0].TxHash)
				return err
			}
			w.patience()
			var submitted *ledger.SubmittedError
			if err := put(invoice.Hash{1}); !errors.As(err, &submitted) || submitted.TxHash != transfer.TxHash {
				t.Errorf("another transaction: %v, want an error that names the known one", err)
			}
			w.must(put(transfer.TxHash)) // no effect
			expect.Error(t, ledger.ErrRefundExceeds, "another refund")(w.prepare(p, 1))

			w.must(w.withdraw(record.ID))
			w.must(put(invoice.Hash{1}))
			if all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), record.ID); err != nil || all[0].Signed() != (invoice.Hash{1}) || !all[0].SignedHash.IsZero() {
				t.Errorf("recorded again: %+v, %v", all, err)
			}
			expect.Error(t, ledger.ErrRefundExceeds, "another refund while the other transaction may be mined")(w.prepare(p, 1))
			wantSubmitted(t, "withdrawn at once", w.withdraw(record.ID), all[0].By)
			w.patience()
			w.must(w.withdraw(record.ID))
			other := record
			if byHand {
				other = w.mustPrepare(p, 0)
			}
			if got := w.refund(other.ID).Warnings(at(w.seconds.Load())); !slices.Contains(got, invoice.WarnTransferDropped) {
				t.Errorf("withdrawn, it has the warnings %v", got)
			}
		}
	})
}

// TestRecordedTransactionHasTime records a transaction long after its submission began. It may take as
// long to reach the nodes as any other.
func TestRecordedTransactionHasTime(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 1000)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		w.must(err)
		put := func(tx invoice.Hash) {
			t.Helper()
			w.must(w.RecordTransaction(w.as("maria"), r.ID, s.ID, w.merchant, tx, invoice.Hash{7}))
		}
		for _, tx := range []invoice.Hash{{7}, {8}} { // the wallet replaces the first one
			w.patience()
			put(tx)
			wantSubmitted(t, "withdrawn at once", w.withdraw(r.ID), "maria")
		}
		w.seconds.Add(int64(invoice.SubmissionPatience/time.Second) - 1)
		put(invoice.Hash{8}) // no effect
		wantSubmitted(t, "withdrawn a second too early", w.withdraw(r.ID), "maria")
		w.seconds.Add(1)
		w.must(w.withdraw(r.ID))
		put(invoice.Hash{8}) // the wallet has sent it after all
		wantSubmitted(t, "withdrawn at once again", w.withdraw(r.ID), "maria")
	})
}

// TestTransactionAfterTheEnd records the transaction of a refund that was stored as expired, or canceled: it may be
// mined, so its amount is reserved.
func TestTransactionAfterTheEnd(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, end := range []invoice.RefundStatus{invoice.RefundExpired, invoice.RefundCanceled} {
			p := w.paid(1000)
			r := w.mustPrepare(p, 600)
			s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
			w.must(err)
			if end == invoice.RefundExpired {
				w.seconds.Add(int64(invoice.RefundLifetime/time.Second) + 1)
				w.must(w.ExpireRefunds(t.Context()))
			} else {
				w.must(w.WithdrawSubmission(w.as("maria"), ledger.Withdrawal{RefundID: r.ID, SubmissionID: s.ID}))
				w.must(w.CancelRefund(t.Context(), r.ID, w.merchant))
			}
			fits, exceeds := w.mustPrepare(p, 400), w.mustPrepare(p, 600)
			w.must(w.RecordTransaction(w.as("maria"), r.ID, s.ID, w.merchant, invoice.Hash{7}, invoice.Hash{}))
			now := at(w.seconds.Load())
			if got := w.refund(r.ID); got.Status != end || !slices.Contains(got.Warnings(now), invoice.WarnNotMined) {
				t.Errorf("it is %s, want %s, with the warnings %v", got.Status, end, got.Warnings(now))
			}
			if !w.refund(fits.ID).CanBeSent(now) {
				t.Errorf("%s: what it leaves cannot be refunded", end)
			}
			w.wantUnsendable(string(end), exceeds.ID, invoice.WarnExceedsRemainder)
			for _, other := range []string{fits.ID, exceeds.ID} {
				w.must(w.CancelRefund(t.Context(), other, w.merchant))
			}
			expect.Error(t, ledger.ErrRefundExceeds, "%s", string(end)+": more than it leaves")(w.prepare(p, 401))
			expect.Equal(t, w.payment(p.Transfer).Use, invoice.UseRefunding, "%s: the payment is", end)
			w.patience()
			w.must(w.withdraw(r.ID))
			w.mustPrepare(p, 1000)
		}
	})
}

// TestAcceptedWhileDropped: the rest of an amount is not waived while a refund that a reorg dropped may be mined.
func TestAcceptedWhileDropped(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, name := range []string{"by hand", "canceled", "canceled, with a transaction"} {
			w := d.world(t)
			item, part := w.underpaid()
			var id string
			if name == "by hand" {
				transfer := w.back(invoice.NewAmount(600_000))
				w.mine(w.head().Time.Unix()+1, transfer)
				w.reorg(1)
				record, _ := w.storedRefund(transfer)
				id = record.ID
			} else {
				r := w.mustPrepare(w.payment(part), 600_000)
				s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
				w.must(err)
				w.must(w.WithdrawSubmission(w.as("maria"), ledger.Withdrawal{RefundID: r.ID, SubmissionID: s.ID}))
				w.must(w.CancelRefund(t.Context(), r.ID, ""))
				if name == "canceled" {
					w.mine(w.head().Time.Unix()+1, w.send(r))
					w.reorg(1)
				} else {
					w.must(w.RecordTransaction(w.as("maria"), r.ID, s.ID, "", invoice.Hash{7}, invoice.Hash{}))
				}
				id = r.ID
			}
			expect.Equal(t, useName(w.accept(item)), "refunding", "%s: accepted while the refund may be mined:", name)
			w.patience()
			w.must(w.withdraw(id))
			w.must(w.accept(item))
		}
	})
}
