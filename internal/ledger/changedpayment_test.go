package ledger_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/expect"
)

// lostPayment mines a payment of 1000 that names its invoice, and mines refunds of it. A reorg drops
// them all, and only the refunds are mined again.
func (w *world) lostPayment(refunds ...uint64) (inv invoice.Invoice, paid invoice.Transfer, back []invoice.Transfer) {
	w.t.Helper()
	inv = w.create(amount(1000))
	paid = tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID})
	w.mine(w.head().Time.Unix()+1, paid)
	for _, n := range refunds {
		back = append(back, w.back(invoice.NewAmount(n)))
	}
	w.mine(w.head().Time.Unix()+1, back...)
	w.reorg(2)
	w.mine(w.head().Time.Unix() + 3)
	w.mine(w.head().Time.Unix()+1, back...)
	return inv, paid, back
}

// states returns the states of the refunds that transfers are stored as.
func (w *world) states(back []invoice.Transfer) (states []invoice.PaymentStatus) {
	w.t.Helper()
	for _, t := range back {
		record, refund := w.storedRefund(t)
		if record.Status != invoice.RefundStatus(refund.Status) || record.PaymentID != refund.PaymentID {
			w.t.Errorf("the refund is %s of %s, and its record %s of %s", refund.Status, refund.PaymentID, record.Status, record.PaymentID)
		}
		states = append(states, refund.Status)
	}
	return states
}

// TestRefundsOfAPaymentThatChanged drops a payment by a reorg, but not its refunds. The payment is
// mined again with another amount. Refunds that do not fit into it are no longer refunds.
func TestRefundsOfAPaymentThatChanged(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, c := range map[string]struct {
			refunds []uint64
			returns uint64
			kept    []bool
		}{
			"a little less":        {[]uint64{1000}, 999, []bool{false}},
			"enough":               {[]uint64{400}, 400, []bool{true}},
			"more":                 {[]uint64{1000}, 3000, []bool{true}},
			"enough for the first": {[]uint64{600, 400}, 600, []bool{true, false}},
			"enough for one":       {[]uint64{600, 400}, 500, []bool{false, true}},
			"enough for two":       {[]uint64{300, 400, 200}, 500, []bool{true, false, true}},
		} {
			w := d.world(t)
			inv, paid, back := w.lostPayment(c.refunds...)
			w.mine(w.head().Time.Unix()+1, withAmount(paid, c.returns))
			var pending, confirmed []invoice.PaymentStatus
			var sum uint64
			for i, kept := range c.kept {
				if kept {
					pending, confirmed = append(pending, invoice.Pending), append(confirmed, invoice.Confirmed)
					sum += c.refunds[i]
				} else {
					pending, confirmed = append(pending, invoice.Orphaned), append(confirmed, invoice.Orphaned)
				}
			}
			expect.NoDiff(t, gocmp.Diff(pending, w.states(back)), "%s: the refunds", name)
			w.wantRefunded(name, w.payment(paid), sum)
			w.final()
			expect.NoDiff(t, gocmp.Diff(confirmed, w.states(back)), "%s: the final refunds", name)
			if got := w.invoice(inv.ID); number(got.AmountPaid) != c.returns || number(got.AmountRefunded) != sum {
				t.Errorf("%s: %s are paid and %s refunded, want %d and %d", name, got.AmountPaid, got.AmountRefunded, c.returns, sum)
			}
			expect.Len(t, w.inbox(invoice.ItemWithoutPayment), 0, "%s: the inbox has", name)
		}
	})
}

// TestRefundTakesAnotherPaymentInstead mines a payment again with less than its refund, after another
// payment was found that the provider had left out. The refund then belongs to that one.
func TestRefundTakesAnotherPaymentInstead(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		other := w.create(amount(2000))
		missed := w.next(start+1, tagged(w.pay(other.Amount), invoice.Evidence{Calldata: other.CommitmentID}))
		hidden := missed
		hidden.Transfers = nil
		w.observe(hidden)
		w.final()
		inv, paid, back := w.lostPayment(1000)
		w.must(w.Rescan(t.Context(), w.chainKey, missed.Number))
		w.fill(missed.Number, missed.Header, missed)
		w.wantRefundOf(back[0], invoice.Pending, paid)
		w.mine(w.head().Time.Unix()+1, withAmount(paid, 10))
		record, refund := w.storedRefund(back[0])
		second := w.payment(missed.Transfers[0])
		if refund.Status != invoice.Pending || refund.PaymentID != second.ID || record.InvoiceID != other.ID {
			t.Errorf("the refund is %s of %s and invoice %s, want one of %s", refund.Status, refund.PaymentID, record.InvoiceID, second.ID)
		}
		w.wantRefunded("the payment", w.payment(paid), 0)
		w.wantRefunded("the other", second, 1000)
		w.final()
		for id, want := range map[string]uint64{inv.ID: 0, other.ID: 1000} {
			if got := w.invoice(id).AmountRefunded; number(got) != want || w.refunds()[id] != min(int(want), 1) {
				t.Errorf("of invoice %s, %s are refunded, want %d; announced %v", id, got, want, w.refunds())
			}
		}
	})
}

// TestRollupsOfARefundWhosePaymentChanged mines a payment again without an invoice, after its refund
// was final. The period of the refund has to be added up again.
func TestRollupsOfARefundWhosePaymentChanged(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		stale := func() (periods []time.Time) {
			w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) (err error) {
				periods, err = report.TakeStaleRollups(t.Context(), tx, 10)
				return err
			}))
			return periods
		}
		inv, paid, back := w.lostPayment(1000)
		w.final()
		_, refund := w.storedRefund(back[0])
		stale()
		w.mine(w.head().Time.Unix()+1, tagged(withAmount(paid, 400), invoice.Evidence{}))
		if got := stale(); len(got) != 1 || !got[0].Equal(ledger.RollupStart(refund.ConfirmedAt)) {
			t.Errorf("stale are %v, want the time of %v", got, refund.ConfirmedAt)
		}
		if got := w.invoice(inv.ID).AmountRefunded; !got.IsZero() {
			t.Errorf("%s are refunded of the invoice", got)
		}
	})
}

// TestRefundOfAPaymentOfOthers mines a payment again between other accounts or in another currency.
// Its refund does not refund that payment, which is large enough for it.
func TestRefundOfAPaymentOfOthers(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, change := range map[string]func(w *world, t invoice.Transfer) invoice.Transfer{
			"from another account": func(_ *world, t invoice.Transfer) invoice.Transfer {
				t.From = invoice.Address{0xbc}
				return t
			},
			"to another merchant's deposit address": func(w *world, t invoice.Transfer) invoice.Transfer {
				t.To = w.create(deposited, func(d *invoice.Draft) { d.MerchantID, d.Merchant = w.merchant+"-partner", invoice.Address{0xad} }).DepositAddress
				return t
			},
			"in another currency": func(_ *world, t invoice.Transfer) invoice.Transfer { return inEUR(t) },
		} {
			w := d.world(t)
			_, paid, back := w.lostPayment(400)
			paid = change(w, paid)
			w.mine(w.head().Time.Unix()+1, paid)
			w.final()
			if got := w.states(back); got[0] != invoice.Orphaned {
				t.Errorf("%s: the refund is %s", name, got[0])
			}
			w.wantRefunded(name, w.payment(paid), 0)
			if got := w.refunds(); len(got) != 0 {
				t.Errorf("%s: refunds were announced %v", name, got)
			}
		}
	})
}
