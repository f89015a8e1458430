package ledger_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// dust returns n refunds of 1 unit of a payment. With tags, each names a refund that was prepared for the payment and that
// the database does not have.
func (w *world) dust(p ledger.PaymentRow, n int, tags bool) []invoice.Transfer {
	w.t.Helper()
	all := make([]invoice.Transfer, n)
	ids := invoice.NewIDs(func() time.Time { return w.head().Time }, w.random)
	for i := range all {
		all[i] = w.back(invoice.NewAmount(1))
		if tags {
			tag, err := invoice.RefundTag(p.ID, ids.New(invoice.PrefixRefund))
			w.must(err)
			all[i].Evidence.Calldata = tag
		}
	}
	return all
}

// costOfDust returns how many kilobytes each of n refunds of 1 unit of a payment allocates, by step.
func (w *world) costOfDust(n int, tags bool) map[string]uint64 {
	w.t.Helper()
	p := w.paid(1_000_000)
	w.mine(w.head().Time.Unix()+1, w.dust(p, n, tags)...) // refunds before
	w.final()
	again := w.dust(p, n, tags)
	each := func(fn func()) uint64 { return allocated(fn) / uint64(n) }
	return map[string]uint64{
		"observe":   each(func() { w.mine(w.head().Time.Unix()+1, again...) }),
		"roll back": each(func() { w.reorg(1) }),
		"mine":      each(func() { w.mine(w.head().Time.Unix()+2, again...) }),
		"confirm":   each(func() { w.final() }),
		"prepare": allocated(func() {
			if _, err := w.prepare(p, 1); err != nil && !tags {
				w.must(err)
			}
		}),
		"list": allocated(func() {
			_, err := ledger.NewReader(w.db.store).RefundRecords(w.t.Context(), ledger.RefundFilter{Limit: 200})
			w.must(err)
		}),
		"list the payment": allocated(func() {
			_, err := ledger.NewReader(w.db.store).AmountsRefunded(w.t.Context(), []string{p.ID})
			w.must(err)
		}),
	}
}

// TestCostOfManyRefunds refunds a payment in thousands of transfers. A transfer must not read the refunds before it.
func TestCostOfManyRefunds(t *testing.T) {
	d := alone(t)
	for _, tags := range []bool{false, true} {
		few, many := d.world(t).costOfDust(1_000, tags), d.world(t).costOfDust(6_000, tags)
		t.Logf("tags %t: each of 1000 refunds allocates kB: %v, each of 6000: %v", tags, few, many)
		for step, kB := range many {
			if 2*kB > 3*few[step] {
				t.Errorf("tags %t, %s: each of 6000 refunds allocates %d kB, each of 1000 %d kB", tags, step, kB, few[step])
			}
		}
	}
}

// TestRestoredRefundsAreBounded sends more transfers with tags than refunds can be prepared for a payment. The rest are
// refunds by the rules for transfers that were not prepared.
func TestRestoredRefundsAreBounded(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		w.mustPrepare(p, 2)
		all := w.dust(p, invoice.MaxPreparedRefunds+1, true)
		w.mine(w.head().Time.Unix()+1, all[:50]...)
		w.mine(w.head().Time.Unix()+1, all[50:]...)
		w.final()
		w.wantRefunded("of all", p, invoice.MaxPreparedRefunds+1)
		last := invoice.MaxPreparedRefunds - 2
		for i, transfer := range all {
			id := invoice.TransferID(invoice.PrefixRefund, transfer.ChainKey, transfer.TxHash, transfer.Ordinal)
			if r := w.refund(id); r.Prepared() != (i <= last) || r.Status != invoice.RefundConfirmed || r.PaymentID != p.ID {
				t.Errorf("refund %d was prepared %t and is %s, of the payment %s", i, r.Prepared(), r.Status, r.PaymentID)
			}
		}
		expect.Error(t, ledger.ErrTooManyRefunds, "another refund")(w.prepare(p, 1))
	})
}

// TestUseAfterALateRefund reads a final refund of the whole payment of which a canceled refund may be mined. Less is left
// than that refund needs, so it reserves nothing.
func TestUseAfterALateRefund(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
		w.must(err)
		w.must(w.WithdrawSubmission(w.as("maria"), ledger.Withdrawal{RefundID: r.ID, SubmissionID: s.ID}))
		w.must(w.CancelRefund(t.Context(), r.ID, w.merchant))
		w.must(w.RecordTransaction(w.as("maria"), r.ID, s.ID, w.merchant, invoice.Hash{7}, invoice.Hash{}))
		expect.Equal(t, w.payment(p.Transfer).Use, invoice.UseRefunding, "before, the payment is")

		b := w.next(w.head().Time.Unix()+1, w.back(p.Amount))
		seen := b
		seen.Transfers = nil
		w.observe(seen)
		w.final()
		w.must(w.Rescan(t.Context(), w.chainKey, b.Number))
		w.fill(b.Number, b.Header, b)
		expect.Equal(t, w.payment(p.Transfer).Use, invoice.UseRefunded, "after, the payment is")
	})
}

// TestCostOfRefundsOfManyPayments refunds some of few or many payments between two accounts. A refund must not copy all of
// them.
func TestCostOfRefundsOfManyPayments(t *testing.T) {
	d := alone(t)
	cost := func(payments int) uint64 {
		w := d.world(t)
		w.create()
		paid := make([]invoice.Transfer, payments)
		for i := range paid {
			paid[i] = w.pay(invoice.NewAmount(100_000))
		}
		w.mine(w.head().Time.Unix()+1, paid...)
		w.final()
		back := w.dust(ledger.PaymentRow{}, 2_000, false)
		kB := allocated(func() { w.mine(w.head().Time.Unix()+1, back...) }) / uint64(len(back))
		w.wantRefunded("of the newest payment", w.payment(paid[payments-1]), uint64(len(back)))
		return kB
	}
	if few, many := cost(10), cost(2_000); 2*many > 3*few {
		t.Errorf("a refund of one of 2000 payments allocates %d kB, of one of 10 %d kB", many, few)
	}
}

// TestCostOfRefundsThatNameAnInvoice sends dust to an account that paid once, with calldata that names an invoice with
// few or many payments of another account. A transfer must not list all of them.
func TestCostOfRefundsThatNameAnInvoice(t *testing.T) {
	d := alone(t)
	cost := func(payments int) uint64 {
		w := d.world(t)
		inv := w.create()
		once := w.pay(invoice.NewAmount(7))
		paid := []invoice.Transfer{once}
		for range payments {
			dust := tagged(w.pay(invoice.NewAmount(100)), invoice.Evidence{Calldata: inv.CommitmentID})
			dust.From = invoice.Address{0xbc}
			paid = append(paid, dust)
		}
		w.mine(w.head().Time.Unix()+1, paid...)
		w.final()
		back := make([]invoice.Transfer, 2_000)
		for i := range back {
			back[i] = tagged(w.back(invoice.NewAmount(1)), invoice.Evidence{Calldata: inv.CommitmentID})
		}
		kB := allocated(func() { w.mine(w.head().Time.Unix()+1, back...) }) / uint64(len(back))
		w.wantRefunded("of the payment without the invoice", w.payment(once), 0)
		return kB
	}
	if few, many := cost(10), cost(1_000); 2*many > 3*max(few, 4) {
		t.Errorf("a transfer that names an invoice with 1000 payments allocates %d kB, of one with 10 %d kB", many, few)
	}
}
