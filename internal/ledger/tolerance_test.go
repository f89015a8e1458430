package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
)

// TestTolerance uses a merchant with a tolerance of 5 %: 50,000 for an invoice over
// 1,000,000.
func TestTolerance(t *testing.T) {
	t.Parallel()
	const created, received, paid = "invoice.created", "payment.received", "invoice.paid"
	n := invoice.NewAmount
	each(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			play      func(w *world, inv invoice.Invoice)
			status    invoice.Status
			exception invoice.Exception
			paid      uint64
			method    invoice.Method // of the first payment
			events    []string
		}{
			"enough": {func(w *world, _ invoice.Invoice) {
				w.mine(start+10, w.pay(n(950_000)))
			}, invoice.Paid, invoice.Underpaid, 950_000, invoice.ByTolerance, []string{created, received, paid}},
			"one less than enough": {func(w *world, _ invoice.Invoice) {
				w.mine(start+10, w.pay(n(949_999)))
			}, invoice.Open, "", 0, "", []string{created}},
			"one short": {func(w *world, _ invoice.Invoice) {
				w.mine(start+10, w.pay(n(999_999)))
			}, invoice.Paid, invoice.Underpaid, 999_999, invoice.ByTolerance, []string{created, received, paid}},
			"the amount": {func(w *world, _ invoice.Invoice) {
				w.mine(start+10, w.pay(n(1_000_000)))
			}, invoice.Paid, "", 1_000_000, invoice.ByAmount, []string{created, received, paid}},
			"enough, and then the rest": {func(w *world, inv invoice.Invoice) {
				tag := invoice.Evidence{Calldata: inv.CommitmentID}
				w.mine(start+10, w.pay(n(950_000)), tagged(w.pay(n(50_000)), tag))
			}, invoice.Paid, "", 1_000_000, invoice.ByTolerance, []string{created, received, received, paid}},
			"enough, twice": {func(w *world, _ invoice.Invoice) {
				w.mine(start+10, w.pay(n(950_000)), w.pay(n(950_000))) // the second stays unattributed
			}, invoice.Paid, invoice.Underpaid, 950_000, invoice.ByTolerance, []string{created, received, paid}},
			"too late": {func(w *world, _ invoice.Invoice) {
				w.mine(start+3601, w.pay(n(950_000)))
			}, invoice.Expired, "", 0, "", []string{created, "invoice.expired"}},
		} {
			w := d.world(t)
			w.merchant = "lenient-" + w.merchant
			inv := w.create()
			if inv.Tolerance != n(50_000) {
				t.Fatalf("the tolerance is %s, want 50000", inv.Tolerance)
			}
			test.play(w, inv)
			first := w.payment(w.blocks[len(w.blocks)-1].Transfers[0])
			w.final()
			got := w.invoice(inv.ID)
			if got.Status != test.status || got.Exception != test.exception || number(got.AmountPaid) != test.paid || got.Tolerance != inv.Tolerance {
				t.Errorf("%s: it is %s, %q, paid %s, tolerating %s", name, got.Status, got.Exception, got.AmountPaid, got.Tolerance)
			}
			if first.Method != test.method {
				t.Errorf("%s: the payment was attributed by %q, want %q", name, first.Method, test.method)
			}
			if diff := cmp.Diff(test.events, w.eventTypes(inv)); diff != "" {
				t.Errorf("%s: events (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestChainOfTolerances mines many transfers in one block. Each is the amount of an invoice that the transfer before it
// pays within the tolerance, so that the invoices that it may pay are known only after that one.
func TestChainOfTolerances(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.merchant = "lenient-" + w.merchant
		const transfers = 70 // more than the reads of one decision
		var invoices []invoice.Invoice
		var block []invoice.Transfer
		n := uint64(1_000_000)
		for range transfers {
			block = append(block, w.pay(invoice.NewAmount(n)))
			n += n / 25
			invoices = append(invoices, w.create(amount(n)))
		}
		w.mine(start+10, block...)
		w.final()
		for i, inv := range invoices {
			if p := w.payment(block[i]); p.InvoiceID != inv.ID || p.Method != invoice.ByTolerance {
				t.Errorf("transfer %d belongs to %q by %q, want %s by tolerance", i, p.InvoiceID, p.Method, inv.ID)
			}
			if got := w.invoice(inv.ID); got.Status != invoice.Paid {
				t.Errorf("invoice %d is %s", i, got.Status)
			}
		}
	})
}
