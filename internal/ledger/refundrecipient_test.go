package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestPreparedRefundIsNoPayment sends prepared refunds to addresses at which invoices ask for their
// amounts, or to deposit addresses. Each transfer is that refund, before any rule for payments.
func TestPreparedRefundIsNoPayment(t *testing.T) {
	t.Parallel()
	elsewhere := invoice.Address{0xee, 7}
	asks := func(n uint64) func(w *world) invoice.Invoice {
		return func(w *world) invoice.Invoice {
			return w.create(amount(n), func(d *invoice.Draft) { d.Merchant = elsewhere })
		}
	}
	onSQLite(t, func(t *testing.T, d *database) {
		for name, trap := range map[string]func(w *world) invoice.Invoice{
			"amount": asks(500_000), "transfer amount": asks(499_999),
			"deposit address": func(w *world) invoice.Invoice { return w.create(amount(500_000), deposited) },
		} {
			for _, tagged := range []bool{true, false} {
				w := d.world(t)
				inv := trap(w)
				receiver, n := elsewhere, uint64(500_000)
				if !inv.DepositAddress.IsZero() {
					receiver = inv.DepositAddress
				}
				if name == "transfer amount" {
					n = number(inv.TransferAmount)
				}
				p := w.paid(2 * n)
				// The previous release prepared refunds to such an address, or they were prepared before it received
				// payments.
				r := w.mustPrepare(p, n)
				w.must(w.db.sql.ExecContext(t.Context(), "UPDATE refund_records SET recipient = $1 WHERE id = $2", receiver.String(), r.ID))
				back := toward(w.send(r), receiver)
				what := fmt.Sprintf("%s, tagged: %t", name, tagged)
				if !tagged {
					back.Evidence = invoice.Evidence{}
				}
				for _, when := range []string{"in a block", "in another", "final", "read again"} {
					switch when {
					case "in a block", "in another":
						if when == "in another" {
							w.reorg(1)
						}
						w.mine(w.head().Time.Unix()+1, back)
					case "final":
						w.final()
					case "read again":
						w.rescan()
						w.fill(101, w.head(), w.blocks[1:]...)
					}
					if got := w.invoice(inv.ID); got.Status != invoice.Open || w.payment(back).Attributed() {
						t.Errorf("%s, %s: the refund goes to the invoice %q, which is %s", what, when, w.payment(back).InvoiceID, got.Status)
					}
					if got := w.refund(r.ID); got.Transfer.TxHash != back.TxHash || !got.Sent() || got.CanBeSent(at(start)) {
						t.Errorf("%s, %s: the refund is %s, with the transfer %+v", what, when, got.Status, got.Transfer)
					}
				}
				_, err := w.prepare(p, n+1)
				expect.Error(t, ledger.ErrRefundExceeds, "%s: more than is left", what)(err)
				expect.Error(t, ledger.ErrIsRefund, "%s: attributed by hand", what)(w.attribute(w.payment(back), inv))
			}
		}
	})
}

// TestNamedTransferIsNoPayment sends transfers that name a prepared refund but do not match it. They must
// not become payments either.
func TestNamedTransferIsNoPayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		elsewhere, other := invoice.Address{0xee, 8}, invoice.Address{0xee, 9}
		p := w.paid(1_000_000)
		r := w.mustPrepare(p, 500_000, to(elsewhere))
		for _, c := range []struct {
			to     invoice.Address
			amount uint64
		}{{elsewhere, 1_500_000}, {other, 500_000}} {
			inv := w.create(amount(c.amount), func(d *invoice.Draft) { d.Merchant = c.to })
			sent := toward(withAmount(w.send(r), c.amount), c.to)
			w.mine(w.head().Time.Unix()+1, sent)
			if got := w.payment(sent); got.Attributed() {
				t.Errorf("%d to %s went to an invoice by %q", c.amount, c.to, got.Method)
			}
			_, err := w.attribute(w.payment(sent), inv) // a person can still attribute it
			w.must(err)
		}
		w.wantRefund("others' names", r.ID, invoice.RefundPending, 0)
	})
}

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

// TestRefundToAPayerWhoIsPaid prepares a refund for the account that paid, where an invoice asks for
// that amount. The transfer is a refund and not a payment.
func TestRefundToAPayerWhoIsPaid(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		customer := newAccount(t)
		w.create()                                   // has the address watched
		for _, tagged := range []bool{false, true} { // at first, control of the address is not proved
			p := w.unattributedPaymentOf(customer, w.head().Time.Unix()+1, 900_000)
			w.final()
			theirs := w.create(amount(900_000), func(d *invoice.Draft) { d.Merchant = customer.address })
			own := w.mustPrepare(p, 0)
			back := w.send(own)
			if !tagged { // as a Safe sends it
				back.Evidence = invoice.Evidence{}
			}
			w.mine(w.head().Time.Unix()+1, back)
			w.wantRefund("in a block", own.ID, invoice.RefundPending, 900_000)
			w.final()
			w.wantRefund("final", own.ID, invoice.RefundConfirmed, 900_000)
			w.wantRefunded("final", p, 900_000)
			if got := w.invoice(theirs.ID); got.Status != invoice.Open || w.payment(back).Attributed() {
				t.Errorf("tagged: %t: the refund pays the payer's invoice, which is %s", tagged, got.Status)
			}
			expect.Error(t, ledger.ErrRefundExceeds, "a second refund")(w.prepare(p, 1))
		}
	})
}
