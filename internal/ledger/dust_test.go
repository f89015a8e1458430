package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestDustHidesNoException sends dust that names an invoice, before and after the invoice
// is paid. The dust is listed and emits no event.
func TestDustHidesNoException(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			paid uint64 // 0 for the transfer amount
			want invoice.Exception
		}{
			"the transfer amount": {0, ""},
			"the bare amount":     {34_000_000, ""},
			"50 for 34":           {50_000_000, invoice.Overpaid},
		} {
			w := d.world(t)
			inv := w.create(amount(34_000_000))
			named := invoice.Evidence{Calldata: inv.CommitmentID}
			p := tagged(w.pay(invoice.NewAmount(test.paid)), named)
			if test.paid == 0 {
				p = w.pay(inv.TransferAmount)
			}
			dust := func(n uint64) invoice.Transfer { return tagged(w.pay(invoice.NewAmount(n)), named) }
			w.mine(start+1, dust(1), dust(9_999))
			w.mine(start+2, p)
			w.mine(start+3, dust(1), dust(9_999))
			w.final()
			w.mine(inv.ExpiresAt.Unix()+1, dust(1))
			w.final()
			got := w.invoice(inv.ID)
			if got.Status != invoice.Paid || got.SettledTx != p.TxHash || got.Exception != test.want {
				t.Errorf("%s, with dust: %s by %s, %q; want %q", name, got.Status, got.SettledTx, got.Exception, test.want)
			}
			if want := p.Amount.Plus(invoice.NewAmount(20_001)); got.AmountPaid != want {
				t.Errorf("%s, with dust: amountPaid %s, want %s", name, got.AmountPaid, want)
			}
			listed, _, err := ledger.NewReader(d.store).Payments(t.Context(), ledger.PaymentFilter{MerchantID: w.merchant, Limit: 50})
			if err != nil || len(listed) != 6 {
				t.Errorf("%s: %d payments are listed, %v; want 6", name, len(listed), err)
			}
		}
	})
}

// TestCentForALargeInvoice sends a cent that names an invoice over 1,000. It does not mark the invoice
// or change the amount that a payer has to sign; a hundredth does.
func TestCentForALargeInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv := w.create(amount(1_000_000_000))
		cent := tagged(w.pay(invoice.NewAmount(10_000)), invoice.Evidence{Calldata: inv.CommitmentID})
		w.mine(start+1, cent)
		w.final()
		got := w.invoice(inv.ID)
		if got.Exception != "" || got.Due() != inv.Amount || got.Partial() || got.AmountPaid != cent.Amount {
			t.Errorf("after a cent it is %q, and asks for %s", got.Exception, got.Due())
		}
		_, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("the amount")))
		w.must(err)
		w.mine(start+2, tagged(w.pay(invoice.NewAmount(10_000_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
		w.final()
		if got := w.invoice(inv.ID); got.Exception != invoice.Underpaid || got.Due() != invoice.NewAmount(989_990_000) {
			t.Errorf("after a hundredth it is %q, and asks for %s", got.Exception, got.Due())
		}
	})
}
