package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestNamedRefundAboveUnreadBlocks reads the transfer of a prepared refund above blocks that were
// never read. It is the refund as soon as it is read, so that it is not sent again.
func TestNamedRefundAboveUnreadBlocks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		elsewhere := invoice.Address{0xee, 10}
		r := w.mustPrepare(w.paid(1_000_000), 500_000, to(elsewhere))
		inv := w.create(amount(500_000), func(d *invoice.Draft) { d.Merchant = elsewhere })
		w.must(w.db.sql.ExecContext(t.Context(), "UPDATE chains SET unread_last = 100 WHERE chain_key = $1", w.chainKey))
		back := w.send(r)
		w.mine(w.head().Time.Unix()+1, back)
		w.wantRefund("above unread blocks", r.ID, invoice.RefundPending, 500_000)
		if w.refund(r.ID).CanBeSent(at(start)) || w.payment(back).Attributed() {
			t.Error("the refund can be sent again, or pays an invoice")
		}
		w.final()
		if got := w.invoice(inv.ID); got.Status != invoice.Open {
			t.Errorf("the invoice is %s", got.Status)
		}
	})
}

// TestRefundWhileOneWaits sends a payment back above blocks that were never read, to its payer and to another
// recipient. Until it is decided that this is a refund, no other one is offered, and a prepared one keeps its amount and
// cannot be sent.
func TestRefundWhileOneWaits(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		for _, recipient := range []invoice.Address{payer, {0xee, 14}} {
			old, p := w.paid(1_000), w.paid(1_000)
			r, less := w.mustPrepare(p, 400, to(recipient)), w.mustPrepare(w.paid(300), 0, to(recipient))
			elsewhere := w.mustPrepare(old, 0, to(invoice.Address{0xee, 15}))
			w.must(w.db.sql.ExecContext(t.Context(), "UPDATE chains SET unread_last = 100 WHERE chain_key = $1", w.chainKey))
			back := w.back(invoice.NewAmount(400))
			back.To = recipient
			w.mine(w.head().Time.Unix()+1, back)
			expect.Error(t, ledger.ErrUndecided, "a refund while one waits")(w.prepare(p, 1, to(recipient)))
			w.wantUnsendable("while one waits", r.ID, invoice.WarnMayBeRefunded)
			expect.Error(t, ledger.ErrUndecided, "a cancellation while one waits")(w.CancelRefund(t.Context(), r.ID, w.merchant))
			now := at(w.seconds.Load())
			if !w.refund(less.ID).CanBeSent(now) || w.refund(elsewhere.ID).CanBeSent(now) != (recipient != payer) {
				t.Error("a refund of a smaller payment, or to another recipient, waits as well")
			}
			w.seconds.Add(lifetime + 1)
			w.must(w.ExpireRefunds(t.Context()))
			expect.Equal(t, w.refund(r.ID).Status, invoice.RefundPending, "after its time, while one waits, it is")
			expect.Equal(t, w.refund(less.ID).Status, invoice.RefundExpired, "after its time, another is")
			w.seconds.Add(-lifetime - 1)
			w.must(w.db.sql.ExecContext(t.Context(), "DELETE FROM undecided_refunds"))
			w.must(w.db.sql.ExecContext(t.Context(), "UPDATE chains SET unread_last = NULL WHERE chain_key = $1", w.chainKey))
			w.must(w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{}))
		}
	})
}

// TestRefundToAReceiver refuses addresses that receive payments, however they are named.
func TestRefundToAReceiver(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		relay := invoice.Address{0x62}
		w.Service = w.service(func(cfg *ledger.Config) { cfg.Chains[0].AuthorizationRelay = relay })
		held := invoice.Address{0xee, 11}
		w.create(func(d *invoice.Draft) { d.Merchant = held })
		deposit := w.create(deposited).DepositAddress
		customer := newAccount(t)
		p := w.unattributedPaymentOf(customer, w.head().Time.Unix()+1, 900_000)
		w.final()
		name := func(r invoice.RefundRecord, to invoice.Address, signature string) error {
			_, err := w.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: r.ClaimToken, To: to, Account: invoice.AccountWithKey, Signature: signature})
			return err
		}
		for what, address := range map[string]invoice.Address{
			"settlement": held, "deposit": deposit, "registry": registry, "factory": factory, "relay": relay, "token": usdc, "another token": eurc, "itself": w.address,
		} {
			if _, err := w.prepare(p, 1, to(address)); !isFieldError(err, "to") {
				t.Errorf("prepared for the %s: %v", what, err)
			}
			r := w.mustPrepare(p, 1, askPayer)
			for _, signature := range []string{"", customer.signRefund(t, r, address)} {
				if err := name(r, address, signature); !isFieldError(err, "to") {
					t.Errorf("the %s, named with the signature %q: %v", what, signature, err)
				}
			}
			// In the previous release a payer could name it.
			w.must(name(r, invoice.Address{0xee, 13}, ""))
			w.must(w.db.sql.ExecContext(t.Context(), "UPDATE refund_records SET recipient = $1 WHERE id = $2", address.String(), r.ID))
			if _, err := w.ApproveRefund(open(t), r.ID, "", address); !isFieldError(err, "to") {
				t.Errorf("approved for the %s: %v", what, err)
			}
		}
		// The merchant cannot approve an address that has received payments since it was named.
		later := invoice.Address{0xee, 12}
		r := w.mustPrepare(p, 1, askPayer)
		w.must(name(r, later, ""))
		w.create(func(d *invoice.Draft) { d.Merchant = later })
		if _, err := w.ApproveRefund(open(t), r.ID, "", later); !isFieldError(err, "to") {
			t.Errorf("approved: %v", err)
		}
	})
}

// TestRefundAtADepositAddressIsSwept sends a refund to an address that became a deposit address since it was prepared. The
// transfer pays no invoice, and the money is swept.
func TestRefundAtADepositAddressIsSwept(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1_000_000), 500_000)
		inv := w.create(deposited)
		w.must(w.db.sql.ExecContext(t.Context(), "UPDATE refund_records SET recipient = $1 WHERE id = $2", inv.DepositAddress.String(), r.ID))
		w.finalized(toward(w.send(r), inv.DepositAddress))
		w.wantRefund("final", r.ID, invoice.RefundConfirmed, 500_000)
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Open, "the invoice is")
		expect.Equal(t, w.unswept(usdc)[inv.ID], 500_000, "to be swept:")
	})
}
