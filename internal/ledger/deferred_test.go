package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// late restarts the world's chain at its head under another key, with all blocks from
// number 101 unread. Existing invoices are not bound to a height.
func (w *world) late() {
	w.t.Helper()
	w.chainKey += "-late"
	w.Service = w.service()
}

// startLate starts the chain at its head; the blocks below were never read.
func (w *world) startLate() {
	w.t.Helper()
	w.must(w.Start(w.t.Context(), w.chainKey, w.head(), 101))
}

// startAboveUnread adds a block, starts the chain above it, and returns the unread block.
func (w *world) startAboveUnread() ledger.Block {
	w.t.Helper()
	unread := w.next(start + 1)
	w.blocks = append(w.blocks, unread)
	w.startLate()
	return unread
}

// TestRulesPrecedeClaimsAndManualAttribution claims and manually attributes a payment that is deferred for unread
// blocks. Both wait for the rules, and apply only if no rule attributes the payment.
func TestRulesPrecedeClaimsAndManualAttribution(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.late()
		payer := newAccount(t)
		asks, other := w.create(), w.create(amount(5_000_000))
		w.startAboveUnread()
		exact := w.unattributedPaymentOf(payer, start+2, number(asks.Amount))
		short := w.unattributedPaymentOf(payer, start+3, number(other.Amount)-10_000)
		w.final()
		for range 2 {
			if got, err := w.claimFor(other, exact, &payer); got != ledger.ClaimKept || err != nil {
				t.Errorf("a claim to what may be another's: %q, %v", got, err)
			}
		}
		if got, err := w.claimFor(other, short, &payer); got != ledger.ClaimKept || err != nil {
			t.Errorf("a claim to what waits: %q, %v", got, err)
		}
		for _, p := range []ledger.PaymentRow{exact, short} {
			if _, err := w.attribute(p, other); !errors.Is(err, ledger.ErrUndecided) {
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
		if got, err := w.claimFor(other, short, &payer); got != ledger.ClaimCounted || err != nil {
			t.Errorf("claimed once more: %q, %v", got, err)
		}
	})
}

// TestUndecidedPaymentIsNoRefund reads a deferred payment between two settlement addresses
// again. It must not become a refund before the rules have decided that it is no payment.
func TestUndecidedPaymentIsNoRefund(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.late()
		partner := invoice.Address{0: 0xac, 18: w.address[18], 19: w.address[19]}
		inv := w.create()
		theirs := w.create(amount(600_000), func(d *invoice.Draft) { d.Merchant = partner })
		w.startAboveUnread()
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
		if events := w.eventTypes(inv); slices.Contains(events, "payment.refunded") {
			t.Errorf("it was announced as a refund, too: %v", events)
		}
		if got := w.invoice(inv.ID).AmountRefunded; !got.IsZero() {
			t.Errorf("%s count as refunded", got)
		}
	})
}

// TestDeferredPaymentIsMinedAgain orphans more deferred payments than one transaction decides. After the unread blocks
// were read they are mined again, and are attributed as without the reorg.
func TestDeferredPaymentIsMinedAgain(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, reorg := range []bool{false, true} {
			w := d.world(t)
			w.late()
			inv := w.create()
			unread := w.startAboveUnread()
			transfers := []invoice.Transfer{w.pay(inv.Amount)}
			for range 510 {
				transfers = append(transfers, w.pay(invoice.NewAmount(7)))
			}
			w.mine(start+2, transfers...)
			if reorg {
				w.reorg(1)
				w.fill(101, unread.Header)
				w.mine(start+3, transfers...)
			} else {
				w.fill(101, unread.Header)
			}
			w.mine(inv.ExpiresAt.Unix() + 1)
			w.final()
			w.checkAttributed(transfers[0], inv, invoice.ByAmount)
			if got := w.invoice(inv.ID).Status; got != invoice.Paid {
				t.Errorf("reorg %t: the invoice is %s, want paid", reorg, got)
			}
			if got := len(w.unattributedIDs); got != 510 {
				t.Errorf("reorg %t: %d payments were found unattributed, want 510", reorg, got)
			}
			if left, err := ledger.NewReader(d.store).WhichUndecided(t.Context(), []string{w.payment(transfers[0]).ID, w.payment(transfers[1]).ID}); err != nil || len(left) > 0 {
				t.Errorf("reorg %t: still undecided: %q, %v", reorg, left, err)
			}
		}
	})
}

// TestManyDeferredRefunds defers more payments and refunds than one transaction decides.
func TestManyDeferredRefunds(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.late()
		inv := w.create()
		unread := w.startAboveUnread()
		strays, backs := make([]invoice.Transfer, 510), make([]invoice.Transfer, 510)
		for i := range strays {
			strays[i], backs[i] = w.pay(inv.Amount), w.back(inv.Amount)
		}
		w.mine(start+2, append(strays[:300:300], backs[:300]...)...)
		w.mine(start+3, append(strays[300:], backs[300:]...)...)
		w.final()
		w.fill(101, unread.Header)
		// In each block, the payment is refunded in the same block.
		if got := w.invoice(inv.ID); got.AmountRefunded != inv.Amount.Plus(inv.Amount) {
			t.Errorf("the invoice is %s, of which %s are refunded", got.Status, got.AmountRefunded)
		}
		if got := w.refunds(); got[inv.ID] != 2 {
			t.Errorf("refunds announced: %v", got)
		}
		for _, s := range strays {
			p := w.payment(s)
			back, err := ledger.NewReader(w.db.store).AmountsRefunded(t.Context(), []string{p.ID})
			if w.must(err); back[p.ID] != inv.Amount {
				t.Fatalf("of the payment in block %d at %d %q are paid back", p.BlockNumber, p.LogIndex, back[p.ID])
			}
		}
	})
}

// TestPaymentWithADeferredRefundIsNotClaimed claims a payment that may have a deferred refund. The
// claim is stored for the merchant to decide.
func TestPaymentWithADeferredRefundIsNotClaimed(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.late()
		payer := newAccount(t)
		w.startAboveUnread()
		inv := w.create()
		p := w.unattributedPaymentOf(payer, start+2, 990_000)
		back := w.back(invoice.NewAmount(990_000))
		back.To = payer.address
		w.mine(start+3, back)
		if got, err := w.claimFor(inv, p, &payer); got != ledger.ClaimKept || err != nil {
			t.Errorf("the claim: %q, %v; want it kept", got, err)
		}
	})
}
