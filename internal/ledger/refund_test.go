package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// read fills in the final part of the gap.
func (w *world) read() {
	w.t.Helper()
	cur, err := w.Cursor(w.t.Context(), w.chainKey)
	w.must(err)
	if cur.Gap == nil || cur.Gap.Next > cur.Confirmed.Number {
		return
	}
	last := min(cur.Gap.Last, cur.Confirmed.Number)
	w.fill(cur.Gap.Next, w.blocks[last-100].Header, w.blocks[cur.Gap.Next-100:last-99]...)
}

// refunds counts the events payment.refunded of each invoice.
func (w *world) refunds() map[string]int {
	w.t.Helper()
	told := make(map[string]int)
	for _, e := range dbtest.Events(w.t, w.db.sql, w.merchant) {
		if e.Type == invoice.EventRefunded {
			told[e.InvoiceID]++
		}
	}
	return told
}

// shops are the settlement addresses of two merchants that pay each other.
type shops struct {
	*world
	second invoice.Address
}

// newShops returns two addresses, the first of which has paid an invoice of the second over 1,000,000.
func newShops(t *testing.T, d *database) (shops, invoice.Invoice) {
	t.Helper()
	s := shops{world: d.world(t)}
	s.second = s.address
	s.second[1] = 0xff
	s.prove(s.address, s.second)
	inv := s.create(s.of(1_000_000, s.second))
	s.mine(start+1, s.move(s.address, s.second, inv.TransferAmount))
	return s, inv
}

func (s shops) of(n uint64, at invoice.Address) func(*invoice.Draft) {
	return func(d *invoice.Draft) { d.Amount, d.Merchant = invoice.NewAmount(n), at }
}

// move returns a transfer from one address to another.
func (s shops) move(from, to invoice.Address, a invoice.Amount) invoice.Transfer {
	t := s.pay(a)
	t.From, t.To = from, to
	return t
}

func (s shops) wantInvoice(name string, inv invoice.Invoice, status invoice.Status, refunded uint64) {
	s.t.Helper()
	got := s.invoice(inv.ID)
	if got.Status != status || got.AmountRefunded != invoice.NewAmount(refunded) {
		s.t.Errorf("%s: %s with %s refunded, want %s with %d", name, got.Status, got.AmountRefunded, status, refunded)
	}
	if told := s.refunds()[inv.ID]; (told > 0) != (refunded > 0) {
		s.t.Errorf("%s: %d refunds were announced of %d", name, told, refunded)
	}
}

// TestManualAttributionOrphansRefund manually attributes a transfer that was read as a
// refund. Its events were sent; the sums are corrected.
func TestManualAttributionOrphansRefund(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, final := range []bool{false, true} {
			s, theirs := newShops(t, d)
			s.final()
			stays := invoice.NewAmount(100) // another refund of the payment
			s.finalized(s.move(s.second, s.address, stays))
			back := s.move(s.second, s.address, theirs.TransferAmount.Minus(stays))
			ours := s.create(s.of(number(back.Amount), s.address))
			s.mine(s.head().Time.Unix()+1, back)
			if final {
				s.final()
			}
			s.must(s.attribute(s.payment(back), ours))
			s.final()
			s.rescan()
			s.read()
			for id, want := range map[string]invoice.Amount{ours.ID: {}, theirs.ID: stays} {
				if got := s.invoice(id); got.Status != invoice.Paid || got.AmountRefunded != want {
					t.Errorf("final %t: %s with %s refunded", final, got.Status, got.AmountRefunded)
				}
			}
			expect.Equal(t, s.refunds()[theirs.ID], map[bool]int{false: 1, true: 2}[final], "final %t: refunds were announced:", final)
		}
	})
}

// TestRefundThatTurnsOutToBeAPayment reads a refund again, with evidence that was missing the first time.
func TestRefundThatTurnsOutToBeAPayment(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		s, theirs := newShops(t, d)
		ours := s.create(s.of(5_000_000, s.address))
		back := s.move(s.second, s.address, theirs.TransferAmount)
		s.mine(start+2, back)
		s.reorg(1)
		s.mine(start+3, tagged(back, invoice.Evidence{Calldata: ours.CommitmentID}))
		s.final()
		s.wantInvoice("tagged", theirs, invoice.Paid, 0)
		expect.Equal(t, s.invoice(ours.ID).AmountPaid, theirs.TransferAmount, "the invoice it names has")
		refunds, err := ledger.RefundsByID(t.Context(), d.store, []string{invoice.TransferID(invoice.PrefixRefund, back.ChainKey, back.TxHash, 0)})
		if err != nil || len(refunds) != 1 || refunds[0].Status != invoice.Orphaned {
			t.Errorf("the refund is %+v, %v; want it orphaned", refunds, err)
		}
	})
}

// TestTaggedRefundToAnotherPayer refunds a payment from an exchange to an account that paid another invoice, and names
// the first invoice. The transfer is a refund of neither.
func TestTaggedRefundToAnotherPayer(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		one, two := w.create(amount(34_000_000)), w.create(amount(50_000_000))
		paid := w.pay(one.TransferAmount)
		paid.From = invoice.Address{0xee}
		w.mine(start+1, paid, w.pay(two.TransferAmount))
		w.mine(start+2, tagged(w.back(one.Amount), invoice.Evidence{Calldata: one.CommitmentID}))
		w.final()
		for _, inv := range []invoice.Invoice{one, two} {
			if got := w.invoice(inv.ID).AmountRefunded; !got.IsZero() {
				t.Errorf("of the invoice over %s, %s are refunded, want 0", inv.Amount, got)
			}
		}
		if got := w.refunds(); len(got) > 0 {
			t.Errorf("refunds were announced of %v", got)
		}
	})
}
