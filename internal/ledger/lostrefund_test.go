package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// forget deletes a prepared refund that was not sent, like a restored backup.
func (w *world) forget(r invoice.RefundRecord) {
	w.t.Helper()
	for _, statement := range []string{"DELETE FROM refund_submissions WHERE refund_id = $1", "DELETE FROM refund_records WHERE id = $1"} {
		_, err := w.db.sql.ExecContext(w.t.Context(), statement, r.ID)
		w.must(err)
	}
	w.must(w.db.store.Update(w.t.Context(), func(tx *db.Tx) error { return ledger.RefreshUses(w.t.Context(), tx, r.PaymentID) }))
}

// TestLostRefundIsRecognized restores a backup from before refunds were prepared and sent to another account than the
// payer's. Their transfers are read afterwards: they become the same refunds, and their amounts are not offered again.
func TestLostRefundIsRecognized(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		first, second := w.mustPrepare(p, 700, to(invoice.Address{0xee})), w.mustPrepare(p, 200)
		w.forget(first)
		w.forget(second)
		if left, err := w.prepare(p, 0); err != nil || number(left.Amount) != 1000 {
			t.Fatalf("before the chain is read %s can be refunded, %v", left.Amount, err)
		} else {
			w.forget(left)
		}
		w.mine(w.head().Time.Unix()+1, w.send(first), w.send(second))
		w.wantRefund("mined", first.ID, invoice.RefundPending, 700)
		w.reorg(1)
		w.wantRefunded("dropped", p, 0)
		if r := w.refund(first.ID); r.CanBeSent(at(w.seconds.Load())) {
			t.Errorf("a recovered refund whose block was dropped can be sent: %+v", r)
		}
		w.mine(w.head().Time.Unix()+2, w.send(first), w.send(second))
		w.final()
		for _, want := range []invoice.RefundRecord{first, second} {
			w.wantRefund("final", want.ID, invoice.RefundConfirmed, number(want.Amount))
			got := w.refund(want.ID)
			if got.Tag != want.Tag || got.PaymentID != p.ID || got.MerchantID != want.MerchantID || got.To != want.To || got.Amount != want.Amount || got.Reason == "" {
				t.Errorf("recovered %+v, prepared was %+v", got, want)
			}
		}
		w.wantRefunded("final", p, 900)
		if got := w.invoice(p.InvoiceID).AmountRefunded; number(got) != 900 {
			t.Errorf("the invoice has %s refunded", got)
		}
		if r := w.mustPrepare(p, 0); number(r.Amount) != 100 {
			t.Errorf("%s is offered, want 100", r.Amount)
		}
	})
}

// TestLostPaymentAndRefund reads a payment and its refund in one block, in a database that has neither.
func TestLostPaymentAndRefund(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		inv := w.create(amount(1000))
		pay := tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID})
		refundID := invoice.NewIDs(func() time.Time { return at(start + 1000) }, w.random).New(invoice.PrefixRefund)
		var err error
		back := w.back(invoice.NewAmount(1000))
		back.To = invoice.Address{0xee}
		back.Evidence.Calldata, err = invoice.RefundTag(invoice.TransferID(invoice.PrefixPayment, w.chainKey, pay.TxHash, pay.Ordinal), refundID)
		w.must(err)
		w.mine(w.head().Time.Unix()+1, pay, back)
		w.final()
		w.wantRefund("final", refundID, invoice.RefundConfirmed, 1000)
		w.wantRefunded("final", w.payment(pay), 1000)
	})
}

// TestForeignTagsRestoreNothing sends transfers with tags that name a payment that they do not refund,
// or another refund.
func TestForeignTagsRestoreNothing(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p, q := w.paid(1000), w.paid(500)
		known := w.mustPrepare(q, 100)
		lost := w.mustPrepare(p, 600, to(invoice.Address{0xee}))
		w.forget(lost)
		tooMuch, elsewhere, otherToken, taken := w.send(lost), w.send(lost), w.send(lost), w.send(lost)
		tooMuch.Amount = invoice.NewAmount(1001)
		elsewhere.From = payer
		otherToken.Token, otherToken.Currency = eurc, "EURC"
		var err error
		taken.Evidence.Calldata, err = invoice.RefundTag(p.ID, known.ID)
		w.must(err)
		w.mine(w.head().Time.Unix()+1, tooMuch, elsewhere, otherToken, taken)
		w.final()
		if _, err := ledger.NewReader(w.db.store).RefundRecord(t.Context(), lost.ID); err == nil {
			t.Errorf("it restored %s", lost.ID)
		}
		w.wantRefunded("foreign", p, 0)
		w.wantRefund("known", known.ID, invoice.RefundPending, 0)
	})
}

// TestTagOfOlderVersion requires that a refund with a tag that cannot be recomputed is recognized by its record.
func TestTagOfOlderVersion(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 400, to(invoice.Address{0xee}))
		old := w.hash("the hash that an older version stored")
		_, err := w.db.sql.ExecContext(t.Context(), "UPDATE refund_records SET tag = $1 WHERE id = $2", old.String(), r.ID)
		w.must(err)
		transfer := w.send(r)
		transfer.Evidence.Calldata = old
		w.mine(w.head().Time.Unix()+1, transfer)
		w.final()
		w.wantRefund("final", r.ID, invoice.RefundConfirmed, 400)
	})
}

// TestUnrecognizedTransfers finds transfers out of a settlement address during a recovery. Refunds of the payments that they
// may have refunded cannot be sent, until a person has checked the transfers.
func TestUnrecognizedTransfers(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		small, large := w.paid(1000), w.paid(5000)
		prepared := w.mustPrepare(large, 400, to(invoice.Address{0xee}))
		w.mine(w.head().Time.Unix()+1, tagged(w.back(invoice.NewAmount(77)), invoice.Evidence{})) // before the recovery
		w.final()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		out := func(n uint64, to invoice.Address) invoice.Transfer {
			t := w.back(invoice.NewAmount(n))
			t.To = to
			return t
		}
		elsewhere, equal, tooMuch := out(1001, invoice.Address{0x99}), out(1000, invoice.Address{0x98}), out(1_000_000, invoice.Address{0x97})
		inEuro := inEUR(out(10, invoice.Address{0x96}))
		w.mine(w.head().Time.Unix()+1, elsewhere, equal, tooMuch, inEuro, w.send(prepared), out(5, payer))
		w.final()
		later := w.paid(9000) // after the transfers
		all, err := ledger.UnrecognizedTransfers(ctx, w.db.store, w.chainKey, ledger.UnrecognizedTransfer{}, 10)
		w.must(err)
		found := make(map[invoice.Hash][]string)
		for _, u := range all {
			found[u.TxHash] = u.Payments
			if u.From != w.address || u.ChainKey != w.chainKey || u.Token != usdc && u.TxHash != inEuro.TxHash {
				t.Errorf("found %+v", u)
			}
		}
		want := map[invoice.Hash][]string{elsewhere.TxHash: {large.ID}, equal.TxHash: {large.ID, small.ID}, tooMuch.TxHash: {}, inEuro.TxHash: {}}
		expect.NoDiff(t, cmp.Diff(want, found, cmpopts.EquateEmpty()), "unrecognized transfers and their payments")
		w.Service = w.service()
		r, free := w.mustPrepare(small, 0), w.mustPrepare(later, 0)
		now := at(w.seconds.Load())
		if got := w.refund(r.ID); got.CanBeSent(now) || !slices.Contains(got.Warnings(now), invoice.WarnMayBeRefunded) {
			t.Errorf("the refund can be sent: %v, with %v", got.CanBeSent(now), got.Warnings(now))
		}
		if _, err := w.SubmitRefund(ctx, r.ID, "", invoice.Hash{}, ledger.Once{}); !errors.Is(err, ledger.ErrRefundNotOpen) {
			t.Errorf("the refund is submitted: %v", err)
		}
		if got := w.refund(free.ID); !got.CanBeSent(now) {
			t.Errorf("the refund of a payment that came after the transfers has %v", got.Warnings(now))
		}
		for _, u := range all {
			w.must(w.db.store.Update(ctx, func(tx *db.Tx) error { return ledger.CheckTransfer(ctx, tx, u.ID) }))
		}
		if got := w.refund(r.ID); !got.CanBeSent(now) || slices.Contains(got.Warnings(now), invoice.WarnMayBeRefunded) {
			t.Errorf("after the check the refund has %v", got.Warnings(now))
		}
	})
}

// TestTwoTagsWithOneID mines two transfers that name one refund of two payments. Their sender chooses the id. Only the
// first restores the refund, and the block is stored.
func TestTwoTagsWithOneID(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		first, second := w.paid(1000), w.paid(500)
		id := invoice.NewIDs(func() time.Time { return at(start + 1000) }, w.random).New(invoice.PrefixRefund)
		a, b := w.back(invoice.NewAmount(100)), w.back(invoice.NewAmount(200))
		for transfer, paid := range map[*invoice.Transfer]string{&a: first.ID, &b: second.ID} {
			tag, err := invoice.RefundTag(paid, id)
			w.must(err)
			transfer.Evidence.Calldata = tag
		}
		w.mine(w.head().Time.Unix()+1, a, b)
		w.final()
		r, err := ledger.NewReader(w.db.store).RefundRecord(t.Context(), id)
		w.must(err)
		if r.PaymentID != first.ID {
			t.Errorf("the refund pays back %s, want %s", r.PaymentID, first.ID)
		}
	})
}
