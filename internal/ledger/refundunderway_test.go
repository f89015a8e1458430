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

// TestFreedRefundWarnsOfNothing attributes a refund between two settlement addresses to an invoice by hand, also one
// that a reorg dropped and that was mined again. It left no block, so another refund of the payment has no warning
// about it, and it reserves no amount.
func TestFreedRefundWarnsOfNothing(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		other := invoice.Address{0: 0xab, 19: w.address[19], 18: w.address[18]}
		w.prove(w.address)
		for _, again := range []bool{false, true} {
			theirs := w.create(func(d *invoice.Draft) { d.Merchant = other })
			paid := tagged(w.pay(invoice.NewAmount(1_000)), invoice.Evidence{Calldata: w.create().CommitmentID})
			paid.From = other
			w.mine(w.head().Time.Unix()+1, paid)
			w.final()
			back := w.back(invoice.NewAmount(10))
			back.To = other
			w.mine(w.head().Time.Unix()+1, back)
			if again {
				w.reorg(1)
				w.mine(w.head().Time.Unix()+1, back)
			}
			w.final()
			w.wantRefunded("before", w.payment(paid), 10)
			w.must(w.AttributeManually(open(t), ledger.ManualAttribution{PaymentID: w.payment(back).ID, InvoiceID: theirs.ID, By: "ann"}))
			w.wantRefunded("after", w.payment(paid), 0)
			r := w.mustPrepare(w.payment(paid), 1_000)
			expect.Equal(t, w.refund(r.ID).MayReturn, false, "a transfer of the payment may be mined again")
		}
	})
}
