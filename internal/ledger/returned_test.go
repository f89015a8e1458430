package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// payFor returns a transfer to the world's merchant with calldata that names the invoice.
func (w *world) payFor(inv invoice.Invoice, n uint64) invoice.Transfer {
	return tagged(w.pay(invoice.NewAmount(n)), invoice.Evidence{Calldata: inv.CommitmentID})
}

// finalized mines a transfer in a block that becomes final.
func (w *world) finalized(t invoice.Transfer) {
	w.t.Helper()
	w.seconds.Add(1)
	w.mine(w.seconds.Load(), t)
	w.final()
}

// confirmed mines a transfer in a block that becomes final, and returns its payment.
func (w *world) confirmed(t invoice.Transfer) ledger.PaymentRow {
	w.t.Helper()
	w.finalized(t)
	return w.payment(t)
}

// wantDue demands the state of an invoice and the amount it asks for. It also demands that the stored
// sums match the payments.
func (w *world) wantDue(id string, status invoice.Status, due uint64) invoice.Invoice {
	w.t.Helper()
	inv := w.invoice(id)
	if inv.Status != status || inv.Due() != invoice.NewAmount(due) {
		w.t.Errorf("the invoice is %s and asks for %s, want %s and %d; its sums are %+v", inv.Status, inv.Due(), status, due, inv.Sums)
	}
	rows, err := ledger.NewReader(w.db.store).PaymentsOfInvoices(w.t.Context(), []string{id})
	w.must(err)
	payments := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		payments[i] = row.Payment
	}
	again := inv.Recount(payments)
	again.Sums.Newest = inv.Sums.Newest
	if again.Sums != inv.Sums || again.Exception != inv.Exception || again.AmountPaid != inv.AmountPaid {
		w.t.Errorf("the sums are %+v, and of all payments %+v", inv.Sums, again.Sums)
	}
	return inv
}

// paidEvents returns the number of invoice.paid events of the invoice.
func (w *world) paidEvents(inv invoice.Invoice) (n int) {
	w.t.Helper()
	for _, typ := range w.eventTypes(inv) {
		if typ == string(invoice.EventPaid) {
			n++
		}
	}
	return n
}

// TestRefundedMoneyCoversNothing refunds a part of an open invoice. Only the rest counts.
func TestRefundedMoneyCoversNothing(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv := w.create()
		p := w.confirmed(w.payFor(inv, 985_000))
		w.wantDue(inv.ID, invoice.Open, 15_000)
		r := w.mustPrepare(p, 0)
		got := w.wantDue(inv.ID, invoice.Open, 1_000_000)
		if !got.Remaining.IsZero() || !got.RemainingTransfer.IsZero() || got.Partial() {
			t.Errorf("while a refund is prepared, %s is left", got.Remaining)
		}
		_, err := w.Authorize(t.Context(), inv.ID, func() invoice.Authorization {
			a := w.authorization(inv, w.hash("rest"))
			a.Value = invoice.NewAmount(15_000)
			return a
		}())
		wantRefused(t, err, invoice.RefusedValue)

		w.finalized(w.send(r))
		w.wantDue(inv.ID, invoice.Open, 1_000_000)
		w.confirmed(w.payFor(inv, 15_000))
		got = w.wantDue(inv.ID, invoice.Open, 985_000)
		if got.Exception != invoice.Underpaid || w.paidEvents(inv) != 0 {
			t.Errorf("after the rest it is %q, with %d events", got.Exception, w.paidEvents(inv))
		}
		w.confirmed(w.payFor(inv, 985_000))
		got = w.wantDue(inv.ID, invoice.Paid, 0)
		if got.Exception != "" || got.Surplus() != (invoice.Amount{}) || got.AmountPaid != invoice.NewAmount(1_985_000) || got.AmountRefunded != invoice.NewAmount(985_000) {
			t.Errorf("paid, it is %q with a surplus of %s, %s paid and %s refunded", got.Exception, got.Surplus(), got.AmountPaid, got.AmountRefunded)
		}
		if kind, _ := invoice.ItemOf(got); kind != "" {
			t.Errorf("it is in the inbox as %s", kind)
		}
	})
}

// TestTwoRefundsInTheGap reads final blocks in one transaction. The first refund makes the invoice's payments count
// again. They pay it below the block of the second refund, which takes so much that afterwards they would not.
func TestTwoRefundsInTheGap(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.chainKey += "-late"
		w.Service, w.blocks = w.service(), w.blocks[:1]
		inv := w.create()
		for _, transfers := range [][]invoice.Transfer{
			{w.payFor(inv, 400_000), w.payFor(inv, 300_000), w.back(invoice.NewAmount(300_000))},
			{w.payFor(inv, 600_000)},
			{w.back(invoice.NewAmount(600_000))},
			nil,
		} {
			w.blocks = append(w.blocks, w.next(w.head().Time.Unix()+1, transfers...))
		}
		w.must(w.Start(t.Context(), w.chainKey, w.head(), 101))
		w.fill(101, w.head(), w.blocks[1:]...)
		if got := w.wantDue(inv.ID, invoice.Paid, 0); got.AmountRefunded != invoice.NewAmount(900_000) {
			t.Errorf("%s were refunded", got.AmountRefunded)
		}
	})
}

// TestRefundPreparedBeforePaid pays an invoice while a refund is prepared. The refund gets a warning, and its amount is
// a surplus once it is canceled.
func TestRefundPreparedBeforePaid(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.confirmed(w.payFor(inv, 400_000))
		r := w.mustPrepare(p, 0)
		w.confirmed(w.payFor(inv, 1_000_000))
		w.wantDue(inv.ID, invoice.Paid, 0)
		after := w.mustPrepare(w.confirmed(w.payFor(inv, 5_000)), 0)
		for id, want := range map[string]bool{r.ID: true, after.ID: false} {
			got, err := ledger.NewReader(w.db.store).RefundRecord(t.Context(), id)
			w.must(err)
			warned := false
			for _, warning := range got.Warnings(at(w.seconds.Load())) {
				warned = warned || warning == invoice.WarnInvoicePaid
			}
			if warned != want {
				t.Errorf("the refund prepared in %s has the warnings %v", got.CreatedAt, got.Warnings(at(w.seconds.Load())))
			}
		}
		w.must(w.CancelRefund(t.Context(), r.ID, ""))
		if got := w.invoice(inv.ID); got.Status != invoice.Paid || got.Surplus() != invoice.NewAmount(405_000) {
			t.Errorf("after the cancellation it is %s with a surplus of %s", got.Status, got.Surplus())
		}
	})
}

// TestReleasedRefundPays wants an invoice to be paid once the refund of the covering payment is
// canceled, has expired, or was dropped by a reorg for longer than it is awaited.
func TestReleasedRefundPays(t *testing.T) {
	for name, release := range map[string]func(w *world, p ledger.PaymentRow, r invoice.RefundRecord){
		"canceled": func(w *world, _ ledger.PaymentRow, r invoice.RefundRecord) {
			w.must(w.CancelRefund(w.t.Context(), r.ID, ""))
		},
		"expired": func(w *world, _ ledger.PaymentRow, _ invoice.RefundRecord) {
			w.seconds.Add(int64(invoice.RefundLifetime.Seconds()))
			w.must(w.ExpireRefunds(w.t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				inv := w.create(func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 30*86_400) })
				first := w.confirmed(w.payFor(inv, 400_000))
				r := w.mustPrepare(first, 0)
				w.confirmed(w.payFor(inv, 600_000))
				w.wantDue(inv.ID, invoice.Open, 400_000)
				release(w, first, r)
				w.wantDue(inv.ID, invoice.Paid, 0)
				expect.Equal(t, w.paidEvents(inv), 1, "events:")
			})
		})
	}
}

// TestRefundReadAfterTheEnd reads a payment and its refund, or only its refund, when their invoice has ended. The refund
// was mined before that, so it does not count as one of an ended invoice. A paid invoice stays paid.
func TestRefundReadAfterTheEnd(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, c := range []struct {
			status invoice.Status
			known  bool // the payment, before its refund
		}{{invoice.Paid, false}, {invoice.Paid, true}, {invoice.Expired, false}, {invoice.Expired, true}, {invoice.Void, true}} {
			w := d.world(t)
			inv := w.create()
			paid, back := w.payFor(inv, 600_000), w.back(invoice.NewAmount(600_000))
			b := w.next(w.head().Time.Unix()+1, paid, back)
			seen := b
			seen.Transfers = nil
			if c.known {
				seen.Transfers = b.Transfers[:1]
			}
			w.observe(seen)
			w.blocks[len(w.blocks)-1] = b
			switch c.status {
			case invoice.Paid:
				w.finalized(w.payFor(inv, 1_000_000))
			case invoice.Expired:
				w.advance(inv.ExpiresAt.Unix() + 1)
			case invoice.Void:
				w.final()
				w.void(inv)
			case invoice.Drafted, invoice.Open:
				t.Fatalf("an invoice does not end %s", c.status)
			}
			ended := w.head()
			w.must(w.Rescan(t.Context(), w.chainKey, b.Number))
			w.fill(b.Number, ended, w.blocks[1:]...)
			if got := w.payment(paid); got.Returned != paid.Amount {
				t.Errorf("%s, payment known %t: of the payment %s does not count", c.status, c.known, got.Returned)
			}
			if got := w.wantDue(inv.ID, c.status, 0); got.Exception != "" {
				t.Errorf("%s, payment known %t: it is %q", c.status, c.known, got.Exception)
			}
		}
	})
}
