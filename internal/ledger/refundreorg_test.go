package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const byReorg = "a transaction that left the chain"

// withdraw withdraws the submission in force of a refund. No node has its transaction.
func (w *world) withdraw(refundID string) error {
	w.t.Helper()
	all, err := ledger.NewReader(w.db.store).Submissions(w.t.Context(), refundID)
	w.must(err)
	s, ok := invoice.InForceOf(all)
	if !ok {
		w.t.Fatalf("no submission of %s is in force: %+v", refundID, all)
	}
	_, err = w.WithdrawSubmission(w.as("juan"), ledger.Withdrawal{RefundID: refundID, SubmissionID: s.ID, Gone: s.TxHash})
	return err
}

// TestDroppedRefundIsAwaited sends a refund as prepared, and a reorg drops its block. The amount is not
// offered again while the transaction may be mined.
func TestDroppedRefundIsAwaited(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		transfer := w.send(r)
		for range 2 { // the second time, the submission is there
			w.mine(w.head().Time.Unix()+1, transfer)
			w.reorg(1)
		}
		refused := func(when string) {
			t.Helper()
			if got := w.refund(r.ID); got.CanBeSent(at(w.seconds.Load())) || got.Status != invoice.RefundPending {
				t.Errorf("%s: the refund is %s and can be sent", when, got.Status)
			}
			_, err := w.SubmitRefund(w.as("juan"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
			wantSubmitted(t, when+": submitted by another", err, byReorg)
			_, err = w.CancelRefund(t.Context(), r.ID, w.merchant)
			wantSubmitted(t, when+": canceled", err, byReorg)
			_, err = w.prepare(p, 401)
			wantErr(t, when+": more than is left", err, ledger.ErrRefundExceeds)
		}
		refused("dropped")
		wantSubmitted(t, "withdrawn at once", w.withdraw(r.ID), byReorg)
		w.seconds.Add(int64(invoice.RefundLifetime / time.Second))
		w.must(w.ExpireRefunds(t.Context()))
		refused("after the time to send it")

		w.must(w.withdraw(r.ID))
		if got := w.refund(r.ID); got.StatusAt(at(w.seconds.Load())) != invoice.RefundExpired {
			t.Errorf("withdrawn, the refund is %s", got.StatusAt(at(w.seconds.Load())))
		}
		w.must(w.ExpireRefunds(t.Context()))
		again := w.mustPrepare(p, 600, to(invoice.Address{0xee}))
		if got := w.refund(again.ID).Warnings(at(w.seconds.Load())); !slices.Contains(got, invoice.WarnTransferDropped) {
			t.Errorf("another refund of the payment has the warnings %v", got)
		}
		w.mine(w.head().Time.Unix()+1, transfer) // after all
		w.wantRefund("mined after all", r.ID, invoice.RefundPending, 600)
		if got := w.refund(again.ID); got.CanBeSent(at(w.seconds.Load())) {
			t.Error("the other refund can be sent, though less is left")
		}
	})
}

// TestDroppedRefundIsWithdrawn: after ten minutes without the transaction the refund can be sent again, with a
// warning.
func TestDroppedRefundIsWithdrawn(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{1}, ledger.Once{})
		w.must(err)
		w.seconds.Add(int64(invoice.SubmissionPatience / time.Second))
		transfer := w.send(r)
		w.mine(w.head().Time.Unix()+1, transfer)
		w.reorg(1)
		wantSubmitted(t, "withdrawn within ten minutes of the reorg", w.withdraw(r.ID), "maria")
		if all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), r.ID); err != nil || len(all) != 1 || all[0].ID != s.ID || all[0].TxHash != transfer.TxHash {
			t.Errorf("the submissions are %+v, %v; want maria's, with the transaction that was seen", all, err)
		}
		w.seconds.Add(int64(invoice.SubmissionPatience / time.Second))
		w.must(w.withdraw(r.ID))
		if got := w.refund(r.ID); !got.CanBeSent(at(w.seconds.Load())) || !slices.Contains(got.Warnings(at(w.seconds.Load())), invoice.WarnTransferDropped) {
			t.Errorf("withdrawn, it can be sent: %t, with the warnings %v", got.CanBeSent(at(w.seconds.Load())), got.Warnings(at(w.seconds.Load())))
		}
	})
}

// TestDroppedRefundByHandIsAwaited sends a refund by hand, which a reorg drops while another one is prepared.
func TestDroppedRefundByHandIsAwaited(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		byHand := w.back(invoice.NewAmount(700))
		w.mine(w.head().Time.Unix()+1, byHand)
		w.mustPrepare(p, 300)
		w.reorg(1)
		_, err := w.prepare(p, 1)
		wantErr(t, "dropped", err, ledger.ErrRefundExceeds)
		if got := w.payment(p.Transfer).Use; got != invoice.UseRefunding {
			t.Errorf("the payment is %s", got)
		}
		record, _ := w.storedRefund(byHand)
		wantSubmitted(t, "withdrawn at once", w.withdraw(record.ID), byReorg)
		w.seconds.Add(int64(invoice.SubmissionPatience / time.Second))
		w.must(w.withdraw(record.ID))
		if got := w.mustPrepare(p, 700); !slices.Contains(got.Warnings(at(w.seconds.Load())), invoice.WarnTransferDropped) {
			t.Errorf("another refund has the warnings %v", got.Warnings(at(w.seconds.Load())))
		}
	})
}

// TestDroppedRefundIsPrepared drops a refund by hand. Its transaction then pays a prepared refund, so
// the list does not show it separately any more.
func TestDroppedRefundIsPrepared(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		named := w.send(r)
		byHand := tagged(withAmount(named, 100), invoice.Evidence{})
		w.mine(w.head().Time.Unix()+1, byHand)
		w.reorg(1)
		w.mine(w.head().Time.Unix()+1, named) // the same transaction, with other content
		w.wantRefund("mined with the name", r.ID, invoice.RefundPending, 600)
		w.final()
		w.wantRefunded("final", p, 600)
	})
}

// underpaid returns the item of an expired invoice with a payment of a part.
func (w *world) underpaid() (ledger.InboxItem, invoice.Transfer) {
	w.t.Helper()
	w.seconds.Store(w.head().Time.Unix())
	inv := w.create()
	part := w.payFor(inv, 600_000)
	w.mine(w.head().Time.Unix()+1, part)
	w.mine(inv.ExpiresAt.Unix() + 1)
	w.final()
	for _, item := range w.inbox(invoice.ItemUnderpaid) {
		if item.Invoice.ID == inv.ID {
			return item, part
		}
	}
	w.t.Fatalf("%s is not in the inbox", inv.ID)
	return ledger.InboxItem{}, part
}

// accept waives the rest of an invoice's amount.
func (w *world) accept(item ledger.InboxItem) error {
	req := w.dismissal(item)
	req.Outcome = invoice.Accepted
	_, err := w.Decide(w.as("maria"), req)
	return err
}

// TestDecidedWithoutLatePayment decides about an underpaid invoice, which gets more later. Once the
// later payment was refunded, no new decision is needed.
func TestDecidedWithoutLatePayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, outcome := range []invoice.Outcome{invoice.Dismissed, invoice.Accepted} {
			item, _ := w.underpaid()
			req := w.dismissal(item)
			req.Outcome = outcome
			d, err := w.Decide(w.as("maria"), req)
			w.must(err)
			w.wantItem("decided", item.Invoice, "")

			late := w.payFor(item.Invoice, 70_000)
			w.mine(w.head().Time.Unix()+1, late)
			w.final()
			w.wantItem("more came late", item.Invoice, invoice.ItemLate)
			r := w.mustPrepare(w.payment(late), 0)
			w.mine(w.head().Time.Unix()+1, w.send(r))
			w.wantItem("the refund is in a block", item.Invoice, invoice.ItemLate)
			w.final()
			w.wantItem(string(outcome)+", and what came late was refunded", item.Invoice, "")
			var decided *ledger.DecidedError
			if _, err := w.Decide(w.as("juan"), req); !errors.As(err, &decided) || decided.By != "maria" {
				t.Errorf("%s again: %v", outcome, err)
			}
			_, err = w.UndoDecision(t.Context(), d.ID, w.merchant)
			w.must(err)
			w.wantItem("undone", item.Invoice, invoice.ItemUnderpaid)
			w.mine(w.head().Time.Unix()+1, w.payFor(item.Invoice, 70_000))
			w.final()
			w.wantItem("more came late again", item.Invoice, invoice.ItemLate)
		}
	})
}

// wantItem fails the test unless an invoice has an item of the kind, or no item if the kind is empty.
func (w *world) wantItem(what string, inv invoice.Invoice, want invoice.ItemKind) {
	w.t.Helper()
	var got invoice.ItemKind
	for _, kind := range invoice.ItemKinds {
		for _, item := range w.inbox(kind) {
			if item.Invoice.ID == inv.ID {
				got = kind
			}
		}
	}
	if got != want {
		w.t.Errorf("%s: the invoice is in the inbox as %q, want %q", what, got, want)
	}
}

// TestAcceptedOrRefunded: the rest of an amount cannot be waived for money that goes back, in either
// order.
func TestAcceptedOrRefunded(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		item, part := w.underpaid()
		p := w.payment(part)
		r := w.mustPrepare(p, 1)
		if got := useName(w.accept(item)); got != "refunding" {
			t.Errorf("accepted while a refund is prepared: %s", got)
		}
		_, err := w.CancelRefund(t.Context(), r.ID, "")
		w.must(err)
		w.must(w.accept(item))
		if _, err := w.prepare(p, 1); useName(err) != "decided" {
			t.Errorf("refunded after it was accepted: %v", err)
		}
		late := w.pay(invoice.NewAmount(7_000))
		w.mine(w.head().Time.Unix()+1, late)
		w.final()
		_, err = w.attribute(w.payment(late), item.Invoice)
		w.must(err)
		w.mustPrepare(w.payment(late), 0) // it does not count toward the accepted amount

		// A transfer by hand ends the acceptance as soon as it is in a block.
		w.mine(w.head().Time.Unix()+1, w.back(p.Amount))
		inForce, err := ledger.DecisionsInForce(t.Context(), w.db.store, []string{item.Invoice.ID})
		if err != nil || len(inForce) != 0 {
			t.Errorf("in force after the money went back: %+v, %v", inForce, err)
		}

		other, part := w.underpaid()
		w.mine(w.head().Time.Unix()+1, w.back(invoice.NewAmount(600_000)))
		if got := w.payment(part).Use; got != invoice.UseRefunding {
			t.Fatalf("the payment is %s", got)
		}
		if got := useName(w.accept(other)); got != "refunding" {
			t.Errorf("accepted while the refund is in a block: %s", got)
		}
		w.final()
		if err := w.accept(other); !errors.Is(err, ledger.ErrItemChanged) {
			t.Errorf("accepted after it was refunded: %v", err)
		}
	})
}
