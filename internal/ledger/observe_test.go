package ledger_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestReorgChangesAttribution replaces the block of a payment by one in which the same transaction has other evidence.
func TestReorgChangesAttribution(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		one, two := w.create(amount(1_000_000)), w.create(amount(2_000_000))
		p := w.pay(one.Amount)
		w.mine(start+1, p)
		first := w.payment(p)
		w.seconds.Add(60)
		w.reorg(1)
		if got := w.payment(p); got.Status != invoice.Orphaned || got.InvoiceID != one.ID {
			t.Errorf("left by the reorg it is %s, of %q", got.Status, got.InvoiceID)
		}
		p.Amount = two.Amount
		w.mine(start+2, p)
		second := w.payment(p)
		if second.ID != first.ID || second.SeenID != first.SeenID || !second.ObservedAt.Equal(at(start)) {
			t.Errorf("it was %s (%s), and is %s (%s) now", first.ID, first.SeenID, second.ID, second.SeenID)
		}
		if second.InvoiceID != two.ID || second.Amount != two.Amount || second.Status != invoice.Pending {
			t.Errorf("it is %s %s, of %q", second.Amount, second.Status, second.InvoiceID)
		}
		w.final()
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created", "payment.received"}, w.eventTypes(one)), "events of the first")
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created", "payment.received", "invoice.paid"}, w.eventTypes(two)), "events of the second")
		if got := w.invoice(one.ID); got.Status != invoice.Open || !got.AmountPaid.IsZero() {
			t.Errorf("the first is %s, with %s", got.Status, got.AmountPaid)
		}
		// After finality, the same transfer in a later block has no effect.
		w.mine(start+3, p)
		if got := w.payment(p); got.Status != invoice.Confirmed || got.BlockNumber != second.BlockNumber {
			t.Errorf("observed once more, it is %s in block %d", got.Status, got.BlockNumber)
		}
	})
}

// TestMovedPaymentFreesItsInvoice moves a payment to another invoice. The next transfer in its block
// may be meant for the former one.
func TestMovedPaymentFreesItsInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		one, two := w.create(amount(1_000_000)), w.create(amount(2_000_000))
		p := w.pay(one.Amount)
		w.mine(start+1, p)
		w.reorg(1)
		moved, next, third := p, w.pay(one.Amount), w.pay(one.Amount)
		moved.Amount = two.Amount
		w.mine(start+2, moved, next, third)
		if got := w.payment(next); got.InvoiceID != one.ID {
			t.Errorf("the next payment of the amount went to %q, want %s", got.InvoiceID, one.ID)
		}
		if got := w.payment(third); got.Attributed() {
			t.Errorf("the third went to %s, which was covered", got.InvoiceID)
		}
	})
}

// TestRefundNamesItsPayment refunds a payer who paid two invoices of one amount.
func TestRefundNamesItsPayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		one, two := w.create(), w.create()
		tag := func(inv invoice.Invoice) invoice.Evidence { return invoice.Evidence{Calldata: inv.CommitmentID} }
		w.mine(start+1, tagged(w.pay(one.Amount), tag(one)), tagged(w.pay(two.Amount), tag(two)))
		w.final()
		w.mine(start+2, tagged(w.back(one.Amount), tag(one)))
		w.mine(start+3, w.back(invoice.NewAmount(70_000)), w.back(invoice.NewAmount(930_000)))
		stranger := w.back(one.Amount)
		stranger.To = invoice.Address{0xee}
		w.mine(start+4, stranger, w.back(invoice.NewAmount(1)))
		w.final()
		if got := w.invoice(one.ID); got.AmountRefunded != one.Amount {
			t.Errorf("the tagged refund of the first: %s", got.AmountRefunded)
		}
		if got := w.invoice(two.ID); got.AmountRefunded != two.Amount {
			t.Errorf("the refunds of the second, in two parts: %s", got.AmountRefunded)
		}
		for inv, want := range map[*invoice.Invoice]int{&one: 1, &two: 2} {
			refunds := 0
			for _, e := range dbtest.Events(t, w.db.sql, w.merchant) {
				if e.InvoiceID != inv.ID || e.Type != invoice.EventRefunded {
					continue
				}
				refunds++
				var body struct {
					Data struct {
						Refund  struct{ ID, PaymentID, InvoiceID, From, To, Amount string }
						Payment struct{ ID, InvoiceID, From, To, Status string }
					}
				}
				w.must(json.Unmarshal(e.Body, &body))
				r, p := body.Data.Refund, body.Data.Payment
				if r.PaymentID != p.ID || r.InvoiceID != inv.ID || p.InvoiceID != inv.ID || r.From != p.To || r.To != p.From || p.Status != "confirmed" || e.Subject != r.ID {
					t.Errorf("the event reads %s", e.Body)
				}
			}
			if refunds != want {
				t.Errorf("%d refunds are announced, want %d", refunds, want)
			}
		}
	})
}

// TestExpiryInBatches expires more invoices than one transaction handles.
func TestExpiryInBatches(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		const n = 501
		var all []invoice.Invoice
		for suffix := range uint64(n) {
			all = append(all, w.insertable(suffix+1))
		}
		w.insert(all)
		w.mine(start + 3600)
		w.final()
		w.mine(start + 3601)
		w.final()
		kinds := make(map[invoice.EventType]int)
		for _, e := range dbtest.Events(t, w.db.sql, w.merchant) {
			kinds[e.Type]++
		}
		if kinds[invoice.EventExpired] != n || len(kinds) != 1 {
			t.Errorf("events %v, want %d that invoices expired", kinds, n)
		}
	})
}

// TestFalseEvidenceIsReplaced stores a transfer with false evidence, as a dishonest node may report it. Read again
// without the evidence, the payment leaves the invoice that it named.
func TestFalseEvidenceIsReplaced(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, of := range map[string]func(invoice.Hash) invoice.Evidence{
			"registry":      func(id invoice.Hash) invoice.Evidence { return invoice.Evidence{Registry: id} },
			"authorization": func(id invoice.Hash) invoice.Evidence { return invoice.Evidence{Authorization: id} },
			"calldata":      func(id invoice.Hash) invoice.Evidence { return invoice.Evidence{Calldata: id} },
		} {
			w := d.world(t)
			meant, named := w.create(), w.create()
			p := w.pay(meant.TransferAmount)
			w.mine(start+1, tagged(p, of(named.CommitmentID)))
			if got := w.payment(p); got.InvoiceID != named.ID || got.Evidence != of(named.CommitmentID) {
				t.Errorf("%s: it is of %q by %+v", name, got.InvoiceID, got.Evidence)
			}
			w.reorg(1)
			w.mine(start+1, p)
			w.final()
			if got := w.payment(p); got.InvoiceID != meant.ID || got.Method != invoice.ByTransferAmount || got.Evidence != (invoice.Evidence{}) {
				t.Errorf("%s: read again it is of %q by %s, want %s by its amount", name, got.InvoiceID, got.Method, meant.ID)
			}
			for inv, want := range map[string]invoice.Status{meant.ID: invoice.Paid, named.ID: invoice.Open} {
				got, recounted := w.recounted(inv)
				if got.Status != want || got.Sums.InTime != recounted.Sums.InTime || got.Sums.Payments != recounted.Sums.Payments {
					t.Errorf("%s: %s is %s with %+v, want %s with %+v", name, inv, got.Status, got.Sums, want, recounted.Sums)
				}
			}
		}
	})
}
