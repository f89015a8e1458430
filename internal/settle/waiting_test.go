package settle_test

import (
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// late begins the world's chain at the head again, under another key, with all
// blocks from number 101 on unread. Invoices that the test creates before are
// not bound to a block.
func (w *world) late() {
	w.t.Helper()
	w.chainKey += "-late"
	w.Service = w.service()
}

// startLate starts the chain at the head; what is below was never read.
func (w *world) startLate() {
	w.t.Helper()
	w.must(w.Start(w.t.Context(), w.chainKey, w.head(), 101))
}

// TestWaitingPaymentIsNoRefundYet reads a payment between two settlement
// addresses again while it waits for older blocks: it is not taken for a
// refund meanwhile, because the rules have not said yet that it is no payment.
func TestWaitingPaymentIsNoRefundYet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		w.late()
		partner := invoice.Address{0: 0xac, 18: w.address[18], 19: w.address[19]}
		inv := w.create()
		theirs := w.create(amount(600_000), func(d *invoice.Draft) { d.Merchant = partner })
		unread := w.next(start + 1)
		w.blocks = append(w.blocks, unread)
		w.startLate()
		paid := tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID})
		paid.From = partner
		move := w.back(theirs.Amount)
		move.To = partner
		w.mine(start+2, paid)
		w.mine(start+3, move)
		w.final()
		if p := w.payment(move); p.Attributed() {
			t.Fatalf("before the older blocks were read, the payment went to %s", p.InvoiceID)
		}
		w.rescan()
		w.fill(101, w.head(), w.blocks[1:]...)
		if p := w.payment(move); p.InvoiceID != theirs.ID || p.Method != invoice.ByAmount {
			t.Errorf("the payment went to %q by %q, want %s", p.InvoiceID, p.Method, theirs.ID)
		}
		if events := w.told(inv); slices.Contains(events, "payment.refunded") {
			t.Errorf("it was announced as a refund, too: %v", events)
		}
		if got := w.invoice(inv.ID).AmountRefunded; !got.IsZero() {
			t.Errorf("%s count as refunded", got)
		}
	})
}
