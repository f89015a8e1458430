package ledger_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// wantPaidAndRefunded wants an invoice to be paid once, with a refund that changes only the refunded amount.
func (w *world) wantPaidAndRefunded(what, id string, refunded uint64) {
	w.t.Helper()
	inv := w.invoice(id)
	if inv.Status != invoice.Paid || inv.Exception != "" || number(inv.AmountRefunded) != refunded || w.paidEvents(inv) != 1 {
		w.t.Errorf("%s: the invoice is %s with the exception %q, %s refunded and %d events", what, inv.Status, inv.Exception, inv.AmountRefunded, w.paidEvents(inv))
	}
	w.wantDue(id, invoice.Paid, 0)
}

// TestPaidInLostPast reads, in a recovery, payments that were final before they were refunded. Their invoices were paid
// then, and remain so. A payment that was refunded before it was final does not pay its invoice.
func TestPaidInLostPast(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		whole, part, early := w.create(amount(700_000)), w.create(), w.create(amount(500_000))
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		at := func() int64 { return w.head().Time.Unix() + 1 }
		first, second, third := w.payFor(whole, 700_000), w.payFor(part, 1_000_000), w.payFor(early, 500_000)
		w.mine(at(), first, second)
		w.mine(at())
		w.mine(at(), w.back(first.Amount), w.back(invoice.NewAmount(250_000)))
		w.mine(at(), third)
		through := w.head()
		w.mine(at(), w.back(third.Amount))
		w.must(w.Confirm(w.t.Context(), w.chainKey, through))
		w.wantDue(early.ID, invoice.Open, 500_000)
		w.final()
		w.wantPaidAndRefunded("in full", whole.ID, 700_000)
		w.wantPaidAndRefunded("in part", part.ID, 250_000)
		w.wantDue(early.ID, invoice.Open, 500_000)
	})
}

// TestCatchUpInRecovery reads many final blocks at once in a recovery, and confirms all of them. The number of the
// chain's newest blocks that are not final determines which payment was sent back before it was final.
func TestCatchUpInRecovery(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		early, paid := w.create(amount(500_000)), w.create(amount(700_000))
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		at := func() int64 { return w.head().Time.Unix() + 1 }
		first, second := w.payFor(early, 500_000), w.payFor(paid, 700_000)
		w.mine(at(), first, second)
		w.mine(at())
		w.mine(at(), w.back(first.Amount))
		w.mine(at(), w.back(second.Amount))
		_, revision, err := w.Pending(t.Context(), w.chainKey, w.head().Number)
		w.must(err)
		expect.Success(t)(w.Service.Confirm(t.Context(), w.chainKey, w.head(), revision, 2))
		if n := w.paidEvents(w.invoice(early.ID)); n != 0 {
			t.Errorf("there are %d events that the invoice is paid whose payment was sent back before it was final", n)
		}
		w.wantDue(early.ID, invoice.Open, 500_000)
		w.wantPaidAndRefunded("after it was final", paid.ID, 700_000)
	})
}

// TestImportOfRefundedInvoice creates a lost invoice again. Its payment was refunded after it was final.
func TestImportOfRefundedInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create(amount(2_000_000))
		lost := w.lostInvoice(nil)
		w.lose(lost)
		begun := w.head().Number + 1
		paid := w.pay(lost.TransferAmount)
		for _, transfer := range []invoice.Transfer{paid, w.back(lost.TransferAmount)} {
			w.mine(w.head().Time.Unix()+1, transfer)
		}
		w.final()
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-2:]...)
		w.mine(w.head().Time.Unix() + 1)
		w.final()
		w.wantPaidAndRefunded("imported", lost.ID, number(lost.TransferAmount))
	})
}

// TestImportOfRefundedDeposit creates a lost invoice again that was paid at its deposit address. The refund of its
// payment names it and goes to another account. Its address is known as one of the merchant only with the invoice.
func TestImportOfRefundedDeposit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create(amount(2_000_000))
		lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Collection = invoice.Deposit })
		w.lose(lost)
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error {
			return ledger.InsertLostAddresses(t.Context(), tx, w.chainKey, map[invoice.Address]invoice.Hash{lost.DepositAddress: lost.CommitmentID})
		}))
		begun := w.head().Number + 1
		paid := w.deposit(lost, 1_000_000)
		for _, transfer := range []invoice.Transfer{paid, w.refundOf(paid, 400_000)} {
			w.mine(w.head().Time.Unix()+1, transfer)
		}
		w.final()
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-2:]...)
		w.mine(w.head().Time.Unix() + 1)
		w.final()
		w.wantPaidAndRefunded("imported", lost.ID, 400_000)
	})
}

// TestImportOfPaymentBetweenMerchants creates a lost invoice again, whose account the recovery did not know. A merchant
// had received money from that account, and paid the invoice with as much. The recovery read that as a refund.
func TestImportOfPaymentBetweenMerchants(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, recovered := range []bool{false, true} { // the refund was final in the recovery
			w := d.world(t)
			theirs := w.create(amount(2_000_000))
			lost := w.lostInvoice(func(inv *invoice.Invoice) {
				inv.Merchant = invoice.Address{0: 0xcd, 18: w.address[18], 19: w.address[19]}
			})
			w.lose(lost)
			w.holds(lost.Merchant)
			begun := w.head().Number + 1
			received, paid := w.payFor(theirs, number(lost.TransferAmount)), w.pay(lost.TransferAmount)
			received.From, paid.From, paid.To = lost.Merchant, w.address, lost.Merchant
			w.finalized(received)
			w.mine(w.head().Time.Unix()+1, paid)
			if recovered {
				w.final()
			}
			w.wantDue(theirs.ID, invoice.Open, 2_000_000)
			expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			w.final()
			w.fill(begun, w.head(), w.blocks[len(w.blocks)-2:]...)
			if got := w.storedAs(paid); got != "payment by transfer_amount" {
				t.Errorf("final in the recovery %v: the transfer is a %s", recovered, got)
			}
			w.wantDue(theirs.ID, invoice.Open, 2_000_000-number(received.Amount))
			if got := w.invoice(theirs.ID).AmountRefunded; !got.IsZero() {
				t.Errorf("final in the recovery %v: %s was refunded", recovered, got)
			}
			w.wantPaidAndRefunded("imported", lost.ID, 0)
		}
	})
}

// refundOf returns a prepared refund of a payment to another account, which names it.
func (w *world) refundOf(paid invoice.Transfer, n uint64) invoice.Transfer {
	w.t.Helper()
	back := w.back(invoice.NewAmount(n))
	back.To = invoice.Address{0xee}
	id := invoice.NewIDs(func() time.Time { return w.head().Time }, w.random).New(invoice.PrefixRefund)
	tag, err := invoice.RefundTag(invoice.TransferID(invoice.PrefixPayment, w.chainKey, paid.TxHash, paid.Ordinal), id)
	w.must(err)
	back.Evidence.Calldata = tag
	return back
}

// TestImportAfterTheRecovery creates a lost invoice again. A payment that fits it came after the recovery, or in the
// lost past, and the merchant sent it back after the recovery. It did not count in the lost past, so it stays refunded.
func TestImportAfterTheRecovery(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for inThePast := range 2 { // of the two transfers
			w := d.world(t)
			w.create(amount(2_000_000))
			lost := w.lostInvoice(nil)
			w.lose(lost)
			begun := w.head().Number + 1
			w.mine(w.head().Time.Unix() + 1)
			transfers := []invoice.Transfer{w.pay(lost.TransferAmount), w.back(lost.TransferAmount)}
			for n, transfer := range transfers {
				if n == inThePast {
					w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
				}
				w.mine(w.head().Time.Unix()+1, transfer)
			}
			w.final()
			expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			w.fill(begun, w.head(), w.blocks[len(w.blocks)-3:]...)
			if got := w.invoice(lost.ID); got.Status != invoice.Open || !got.AmountPaid.IsZero() || !got.AmountRefunded.IsZero() {
				t.Errorf("%d transfers in the lost past: the invoice is %s with %s paid and %s refunded", inThePast, got.Status, got.AmountPaid, got.AmountRefunded)
			}
		}
	})
}

// TestLostPreparedRefund reads a refund that was prepared for its payment, and so was sent after the
// payment was final. It does not matter how many blocks are not final.
func TestLostPreparedRefund(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		inv := w.create()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		pay := w.payFor(inv, 1_000_000)
		back := w.refundOf(pay, 400_000)
		w.mine(w.head().Time.Unix()+1, pay)
		paidIn := w.head()
		w.mine(w.head().Time.Unix()+1, back)
		w.must(w.Confirm(w.t.Context(), w.chainKey, paidIn))
		w.final()
		w.wantPaidAndRefunded("prepared", inv.ID, 400_000)
	})
}
