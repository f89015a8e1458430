package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestHotWalletIsNoSettlementAddress: a merchant names an exchange's account as settlement address, to
// which another merchant has sent money. Payments that the exchange then makes for its customers must
// not become refunds of that money.
func TestHotWalletIsNoSettlementAddress(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, c := range map[string]struct {
			proved bool
			names  bool // the transfer names the invoice that it refunds
			refund bool
		}{
			"a hot wallet": {}, "an address whose holder proved control": {proved: true, refund: true}, "named": {names: true, refund: true},
		} {
			w := d.world(t)
			exchange := invoice.Address{0: 0xec, 18: w.address[18], 19: w.address[19]}
			theirs := w.create(amount(1_000_000), func(d *invoice.Draft) { d.Merchant = exchange })
			inv := w.create(amount(1_000_000))
			out := toward(w.pay(invoice.NewAmount(1_000_000)), exchange)
			out.From, out.Evidence.Calldata = w.address, theirs.CommitmentID
			w.mine(start+1, out)
			w.final()
			if c.proved { // by the transaction of a prepared refund
				r := w.mustPrepare(w.payment(out), 1, to(invoice.Address{0xee}))
				proof := w.send(r)
				proof.From = exchange
				w.mine(start+2, proof)
				inv = w.create(amount(999_999))
			}
			paid := w.pay(inv.Amount)
			paid.From = exchange
			if c.names {
				paid.Evidence.Calldata = theirs.CommitmentID
			}
			w.mine(start+3, paid)
			w.final()
			want := "payment by amount"
			if c.refund {
				want = "refund of " + inv.Amount.String()
			}
			if got := w.storedAs(paid); got != want {
				t.Errorf("%s: the transfer is a %s, want a %s", name, got, want)
			}
			if got := w.invoice(inv.ID).Status; (got == invoice.Paid) == c.refund {
				t.Errorf("%s: the invoice is %s", name, got)
			}
		}
	})
}

// storedAs returns the role of a transfer between two settlement addresses.
func (w *world) storedAs(t invoice.Transfer) string {
	w.t.Helper()
	p := w.payment(t)
	refunds, err := ledger.RefundsByID(w.t.Context(), w.db.store, []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	back := len(refunds) > 0 && refunds[0].Status == invoice.Confirmed
	switch {
	case back && p.Attributed():
		return "both"
	case back:
		return fmt.Sprintf("refund of %s", refunds[0].Amount)
	case p.Attributed():
		return fmt.Sprintf("payment by %s", p.Method)
	}
	return "nothing"
}
