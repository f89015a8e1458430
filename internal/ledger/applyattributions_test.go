package ledger_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

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
				_, err := w.attribute(p, inv)
				w.must(err)
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
		_, err := w.Decide(w.as("maria"), w.attribution(w.only(invoice.ItemUnattributed), inv))
		w.must(err)
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
		_, err := w.Decide(w.as("maria"), w.attribution(w.only(invoice.ItemUnattributed), inv))
		w.must(err)
		for range 2 {
			rowtest.Must(t, w.db.store.Update(t.Context(), func(tx *db.Tx) error {
				return ledger.RecoverFrom(t.Context(), tx, at(start+20))
			}))
		}
		w.seconds.Add(60)
		w.must(w.ApplyAttributions(t.Context()))
		if got := w.decided(p); got.UndoneBy != "quittance recover" || got.UndoneAt != at(start+20) || w.only(invoice.ItemUnattributed).Payment.Use != invoice.UseUndecided {
			t.Errorf("the decision is %+v", got)
		}
	})
}
