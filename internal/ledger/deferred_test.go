package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
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
			expect.Error(t, ledger.ErrUndecided, "%s attributed by hand", p.Amount)(w.attribute(p, other))
			expect.Equal(t, w.payment(p.Transfer).InvoiceID, "", "before it was decided, %s went to", p.Amount)
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
			expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "reorg %t: the invoice is", reorg)
			expect.Equal(t, len(w.unattributedIDs), 510, "reorg %t: payments were found unattributed:", reorg)
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

// attribution returns the request that attributes the payment of an item to an invoice.
func (w *world) attribution(i ledger.InboxItem, inv invoice.Invoice) ledger.DecisionRequest {
	req := w.dismissal(i)
	req.Outcome, req.InvoiceID = invoice.Attributed, inv.ID
	return req
}

// attributeLater decides to attribute a payment, lets the delay pass, and applies the decision.
func (w *world) attributeLater(p ledger.PaymentRow, inv invoice.Invoice) (invoice.Payment, error) {
	items, _, err := w.Inbox(w.t.Context(), ledger.InboxFilter{MerchantID: w.merchant, ObjectID: p.ID})
	w.must(err)
	if len(items) != 1 {
		w.t.Fatalf("the payment has %d items", len(items))
	}
	req := w.attribution(items[0], inv)
	req.Reason = "she wrote to us"
	if _, err := w.Decide(w.as("maria"), req); err != nil {
		return invoice.Payment{}, err
	}
	w.seconds.Add(int64(invoice.AttributionDelay.Seconds()))
	w.must(w.ApplyAttributions(w.t.Context()))
	return w.payment(p.Transfer).Payment, nil
}

// decided returns the newest decision about a payment.
func (w *world) decided(p ledger.PaymentRow) invoice.Decision {
	w.t.Helper()
	found, err := ledger.NewReader(w.db.store).Decisions(w.t.Context(), ledger.DecisionFilter{ObjectID: p.ID, Limit: 1})
	w.must(err)
	return found[0]
}

// TestAttributionAppliesOnce decides to attribute a final payment. Nothing else changes for a minute. Then all replicas
// apply the decision at the same time, one of them after it was restarted. It takes effect once.
func TestAttributionAppliesOnce(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
		w.final()
		d, err := w.Decide(w.as("maria"), w.attribution(w.only(invoice.ItemUnattributed), inv))
		w.must(err)
		if len(w.inbox(invoice.ItemUnattributed)) != 0 {
			t.Error("the payment is still in the inbox")
		}
		w.seconds.Add(59)
		w.must(w.ApplyAttributions(t.Context()))
		if got := w.invoice(inv.ID); got.Status != invoice.Open || !got.AmountPaid.IsZero() || len(w.eventTypes(inv)) != 1 || w.payment(p.Transfer).Attributed() {
			t.Errorf("within the minute, the invoice is %s with %s and %v", got.Status, got.AmountPaid, w.eventTypes(inv))
		}
		w.seconds.Add(1)
		all := append(w.replicas(), &process{Service: w.service()})
		var group sync.WaitGroup
		for _, replica := range all {
			group.Go(func() { expect.NoError(t, replica.ApplyAttributions(t.Context())) })
		}
		group.Wait()
		if got, types := w.invoice(inv.ID), strings.Join(w.eventTypes(inv), " "); got.Status != invoice.Paid || number(got.AmountPaid) != 1_500_000 || types != "invoice.created payment.received invoice.paid" {
			t.Errorf("the invoice is %s with %s and %s", got.Status, got.AmountPaid, types)
		}
		if got := w.payment(p.Transfer); got.InvoiceID != inv.ID || got.AttributedBy != "maria" || got.AttributedAt != at(start+60) {
			t.Errorf("the payment is of %q by %q at %v", got.InvoiceID, got.AttributedBy, got.AttributedAt)
		}
		_, err = w.UndoDecision(w.as("juan"), d.ID, w.merchant)
		var attributed *ledger.AttributedError
		if !errors.As(err, &attributed) || attributed.InvoiceID != inv.ID {
			t.Errorf("undone after it took effect: %v", err)
		}
	})
}

// TestUndoAgainstApply undoes an attribution while it takes effect. Exactly one of the two happens, with all that
// belongs to it.
func TestUndoAgainstApply(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		for i := range 8 {
			inv := w.create()
			p := w.unattributedPayment(w.head().Time.Unix()+1, invoice.NewAmount(1_500_000+uint64(i)))
			w.final()
			d, err := w.Decide(w.as("maria"), w.attribution(w.only(invoice.ItemUnattributed), inv))
			w.must(err)
			w.seconds.Add(60)
			var group sync.WaitGroup
			var undo error
			group.Go(func() { _, undo = replicas[0].UndoDecision(w.as("juan"), d.ID, w.merchant) })
			group.Go(func() { expect.NoError(t, replicas[1].ApplyAttributions(t.Context())) })
			group.Wait()
			is, got, row := w.invoice(inv.ID), w.decided(p), w.payment(p.Transfer)
			undone := undo == nil && got.UndoneBy == "juan" && got.AppliedAt.IsZero() && is.Status == invoice.Open && is.AmountPaid.IsZero() &&
				!row.Attributed() && row.Use == invoice.UseUndecided && len(w.eventTypes(inv)) == 1
			applied := errors.Is(undo, ledger.ErrAttributed) && got.UndoneBy == "" && !got.AppliedAt.IsZero() && is.Status == invoice.Paid &&
				row.InvoiceID == inv.ID && row.Use == invoice.UseCounted && len(w.eventTypes(inv)) == 3
			if undone == applied {
				t.Errorf("undo: %v; the decision is %+v, the invoice %s with %v, the payment %s of %q", undo, got, is.Status, w.eventTypes(inv), row.Use, row.InvoiceID)
			}
			if undone {
				w.must(w.attribute(p, inv))
			}
		}
	})
}

// TestAttributionThatCannotApply drops the payment's block before the decision takes effect. The decision is undone with
// the reason, and the payment is in the inbox once it is mined again.
func TestAttributionThatCannotApply(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
		w.must(w.Decide(w.as("maria"), w.attribution(w.only(invoice.ItemUnattributed), inv)))
		w.reorg(1)
		w.seconds.Add(60)
		w.must(w.ApplyAttributions(t.Context()))
		if got := w.decided(p); got.UndoneBy != "the service: the payment's block left the chain" || !got.AppliedAt.IsZero() {
			t.Errorf("the decision is %+v", got)
		}
		w.mine(start+11, p.Transfer)
		if item := w.only(invoice.ItemUnattributed); item.Payment.ID != p.ID || item.Payment.Use != invoice.UseUndecided {
			t.Errorf("the inbox has %+v", item)
		}
	})
}

// TestRecoveryUndoesAttributions begins a recovery of a backup in which an attribution had not taken effect.
func TestRecoveryUndoesAttributions(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
		w.must(w.Decide(w.as("maria"), w.attribution(w.only(invoice.ItemUnattributed), inv)))
		for range 2 {
			rowtest.Must(t, w.db.store.Update(t.Context(), func(tx *db.Tx) error {
				_, err := ledger.RecoverFrom(t.Context(), tx, false, at(start+20))
				return err
			}))
		}
		w.seconds.Add(60)
		w.must(w.ApplyAttributions(t.Context()))
		if got := w.decided(p); got.UndoneBy != "quittance recover" || got.UndoneAt != at(start+20) || w.only(invoice.ItemUnattributed).Payment.Use != invoice.UseUndecided {
			t.Errorf("the decision is %+v", got)
		}
	})
}
