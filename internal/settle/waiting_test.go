package settle_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
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

// TestNobodyOvertakesTheRules has a payment that waits for older blocks be
// claimed and attributed by hand. Both wait for the rules, which give it to
// the invoice that asks for it; what they leave goes to who claims it then.
func TestNobodyOvertakesTheRules(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		w.late()
		payer := newAccount(t)
		asks, other := w.create(), w.create(amount(5_000_000))
		w.blocks = append(w.blocks, w.next(start+1))
		w.startLate()
		exact := w.strayOf(payer, start+2, number(asks.Amount))
		short := w.strayOf(payer, start+3, number(other.Amount)-10_000)
		w.final()
		for range 2 {
			if got, err := w.claimFor(other, exact, &payer); got != settle.ClaimKept || err != nil {
				t.Errorf("a claim to what may be another's: %q, %v", got, err)
			}
		}
		if got, err := w.claimFor(other, short, &payer); got != settle.ClaimKept || err != nil {
			t.Errorf("a claim to what waits: %q, %v", got, err)
		}
		for _, p := range []store.PaymentRow{exact, short} {
			if _, err := w.attribute(p, other); !errors.Is(err, settle.ErrUndecided) {
				t.Errorf("%s attributed by hand: %v, want ErrUndecided", p.Amount, err)
			}
			if to := w.payment(p.Transfer).InvoiceID; to != "" {
				t.Errorf("%s went to %s before it was decided", p.Amount, to)
			}
		}
		w.fill(101, w.blocks[1].Header)
		if p := w.payment(exact.Transfer); p.InvoiceID != asks.ID || p.Method != invoice.ByAmount {
			t.Errorf("%s went to %q by %q, want %s", p.Amount, p.InvoiceID, p.Method, asks.ID)
		}
		if claims := w.claims(short.ID); len(claims) != 1 || !claims[0].Signed || claims[0].AttributedTo != "" {
			t.Errorf("claims that are left to decide: %+v", claims)
		}
		if got, err := w.claimFor(other, short, &payer); got != settle.ClaimCounted || err != nil {
			t.Errorf("claimed once more: %q, %v", got, err)
		}
	})
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
