package ledger_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// recounted returns the stored invoice, and the invoice with the sums of all its payments, and what remains after them,
// added up again.
func (w *world) recounted(id string) (stored, want invoice.Invoice) {
	w.t.Helper()
	stored = w.invoice(id)
	rows, err := ledger.NewReader(w.db.store).PaymentsOfInvoices(w.t.Context(), []string{id})
	w.must(err)
	payments := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		payments[i] = row.Payment
	}
	want = stored.Recount(payments)
	if want.Remaining = (invoice.Amount{}); want.Status == invoice.Open {
		want.Remaining = invoice.NewHistory(want, payments).Remainder()
	}
	return stored, want
}

// checkSums compares the stored sums of all invoices with their payments and refunds.
func (m *machine) checkSums(r *rapid.T) {
	for _, inv := range m.made {
		stored, want := m.recounted(inv.ID)
		if stored.Sums.Newest.Before(want.Sums.Newest) {
			r.Errorf("invoice %s has a payment above %+v, at %+v", inv.ID, stored.Sums.Newest, want.Sums.Newest)
		}
		want.Sums.Newest = stored.Sums.Newest // an upper bound
		if diff := gocmp.Diff(want, stored, gocmp.Comparer(func(a, b invoice.Amount) bool { return a == b })); diff != "" {
			r.Errorf("invoice %s (-recounted +stored):\n%s", inv.ID, diff)
		}
		refunds, err := ledger.RefundsOfInvoices(m.t.Context(), m.db.store, []string{inv.ID})
		expect.OK(r, err)
		m.checkPaidBack(r, refunds)
		var back invoice.Amount
		for _, refund := range refunds {
			if refund.Status == invoice.Confirmed {
				back = back.Plus(refund.Amount)
			}
		}
		if stored.AmountRefunded != back {
			r.Errorf("invoice %s has %s refunded, its payments %s", inv.ID, stored.AmountRefunded, back)
		}
	}
}

// checkPaidBack compares the refunded sum of each payment with its refunds.
func (m *machine) checkPaidBack(r *rapid.T, refunds []invoice.Refund) {
	want := make(map[string]ledger.RefundedSum)
	var ids []string
	for _, refund := range refunds {
		if _, ok := want[refund.PaymentID]; !ok {
			ids = append(ids, refund.PaymentID)
		}
		sum := want[refund.PaymentID]
		if refund.Status != invoice.Orphaned {
			sum.All = sum.All.Plus(refund.Amount)
		}
		if refund.Status == invoice.Confirmed {
			sum.Final = sum.Final.Plus(refund.Amount)
		}
		want[refund.PaymentID] = sum
	}
	got, err := ledger.RefundedSums(m.t.Context(), m.db.store, ids)
	m.must(err)
	for id := range want {
		expect.Equal(r, got[id], want[id], "paid back of payment %s:", id)
	}
}

// TestStaleSumsAreRecounted upgrades an invoice with payments that are older than the stored sums.
func TestStaleSumsAreRecounted(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		forget := func(id string) {
			t.Helper()
			if _, err := d.sql.ExecContext(t.Context(), "UPDATE invoices SET sums_stale = 1, payment_count = 0, arrived_in_time = '0', "+
				"newest_block = 0, due = '0', counted_block = 0 WHERE id = '"+id+"'"); err != nil {
				t.Fatal(err)
			}
		}
		for name, test := range map[string]func(w *world, inv invoice.Invoice, first invoice.Transfer){
			"and paid": func(w *world, inv invoice.Invoice, _ invoice.Transfer) {
				w.mine(start+3, tagged(w.pay(invoice.NewAmount(600_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
				w.final()
			},
			"and confirmed": func(w *world, inv invoice.Invoice, _ invoice.Transfer) {
				w.mine(start+3, tagged(w.pay(invoice.NewAmount(600_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
				forget(inv.ID)
				w.final()
			},
			"and left": func(w *world, inv invoice.Invoice, first invoice.Transfer) {
				w.reorg(1)
				w.mine(start+3, tagged(first, invoice.Evidence{Calldata: inv.CommitmentID}),
					tagged(w.pay(invoice.NewAmount(600_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
				w.final()
			},
			"and attributed to by hand": func(w *world, inv invoice.Invoice, _ invoice.Transfer) {
				p := w.pay(invoice.NewAmount(600_000)) // equals the remainder of another invoice
				w.mine(start+3, tagged(w.pay(invoice.NewAmount(400_000)), invoice.Evidence{Calldata: w.create().CommitmentID}), p)
				w.final()
				forget(inv.ID)
				w.must(w.AttributeManually(open(t), ledger.ManualAttribution{PaymentID: w.payment(p).ID, InvoiceID: inv.ID, By: "ann"}))
			},
		} {
			w := d.world(t)
			inv := w.create()
			first := w.pay(invoice.NewAmount(400_000))
			w.mine(start+1, tagged(first, invoice.Evidence{Calldata: inv.CommitmentID}))
			forget(inv.ID)
			test(w, inv, first)
			stored, want := w.recounted(inv.ID)
			if stored.Status != invoice.Paid || stored.AmountPaid != inv.Amount || stored.Sums != want.Sums {
				t.Errorf("stale %s: %s with %s\n%+v, want\n%+v", name, stored.Status, stored.AmountPaid, stored.Sums, want.Sums)
			}
			if got := w.eventTypes(inv); len(got) != 4 { // created, received twice, paid
				t.Errorf("stale %s: the events are %v", name, got)
			}
		}
	})
}

// TestCostOfAReorgOfALatePayment orphans a late payment of a partly paid invoice with few
// or many other late payments, which must not be read.
func TestCostOfAReorgOfALatePayment(t *testing.T) {
	d := alone(t)
	cost := func(late int) uint64 {
		w := d.world(t)
		inv := w.create(amount(34_000_000), func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 10) })
		w.mine(start+1, w.payFor(inv, 1_000_000))
		w.mine(start + 11)
		w.final()
		var dust []invoice.Transfer
		for range late {
			dust = append(dust, w.payFor(inv, 1))
		}
		w.mine(start+12, dust...)
		w.final()
		w.mine(start+13, w.payFor(inv, 1))
		return allocated(func() { w.reorg(1) })
	}
	if few, many := cost(10), cost(3000); many > 2*few {
		t.Errorf("a reorg of one of 3000 late payments allocates %d kB, of one of 10 %d kB", many, few)
	}
}

// TestCostOfDustBelowAPayment fills in dust below the payment that paid its invoice. The
// invoice is recounted once, not once for each batch.
func TestCostOfDustBelowAPayment(t *testing.T) {
	d := alone(t)
	cost := func(n int) uint64 {
		w := d.world(t)
		w.late()
		inv := w.create(amount(34_000_000))
		var dust []invoice.Transfer
		for i := range n {
			dust = append(dust, w.payFor(inv, 1))
			if i%10 == 0 { // each pays the amount due
				dust = append(dust, w.pay(invoice.NewAmount(34_000_000)))
			}
		}
		below := w.next(start+1, dust...)
		w.blocks = append(w.blocks, below)
		w.startLate()
		w.mine(start+2, w.pay(inv.TransferAmount))
		w.final()
		kB := allocated(func() { w.fill(below.Number, below.Header, below) })
		stored, want := w.recounted(inv.ID)
		if diff := gocmp.Diff(want, stored, gocmp.Comparer(func(a, b invoice.Amount) bool { return a == b })); diff != "" {
			t.Errorf("after %d payments of dust (-recounted +stored):\n%s", n, diff)
		}
		return kB / uint64(n)
	}
	if few, many := cost(1_000), cost(6_000); 2*many > 3*few {
		t.Errorf("each of 6000 payments of dust allocates %d kB, each of 1000 %d kB", many, few)
	}
}
