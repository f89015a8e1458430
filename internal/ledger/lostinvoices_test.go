package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestLostInvoices reads a chain after a restored backup that lacks an invoice with a deposit address. A payment
// arrived there before the commitment was announced, and was swept. The service reads the blocks again, and records the
// payment but not the sweep. An invoice that was closed before it expired becomes void.
func TestLostInvoices(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		open := w.create(amount(1000))
		closed := w.create(amount(2000))
		lost := w.hash("lost")
		deposit := chain.Chain{Key: w.chainKey, ID: 1337, Registry: registry, DepositFactory: factory}.DepositAddress(w.address, lost)
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		begun := w.head().Number + 1
		at := func() int64 { return w.head().Time.Unix() + 1 }
		pay := w.pay(invoice.NewAmount(7))
		pay.To = deposit
		sweep := tagged(w.pay(invoice.NewAmount(7)), invoice.Evidence{Registry: invoice.SweptElsewhere})
		sweep.From = deposit
		w.mine(at(), pay)
		w.mine(at(), sweep)
		b := w.next(at())
		b.Registry = []ledger.RegistryEvent{
			{Registry: registry, Kind: ledger.RegistryOpened, CommitmentID: lost}, {Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: closed.CommitmentID},
		}
		w.observe(b)
		w.mine(at() + 1_000_000) // both invoices are past their end
		w.final()
		if w.isPaymentOrRefund(pay) {
			t.Error("the payment is recorded before its address is watched")
		}
		if n, err := w.WatchLost(t.Context(), w.chainKey); err != nil || n != 1 {
			t.Fatalf("%d addresses are watched, %v", n, err)
		}
		found, err := ledger.LostInvoices(t.Context(), w.db.store, w.chainKey)
		w.must(err)
		if len(found) != 2 || found[0].CommitmentID == found[1].CommitmentID {
			t.Errorf("found %+v", found)
		}
		for _, l := range found {
			if want := map[invoice.Hash]string{lost: "", closed.CommitmentID: closed.ID}[l.CommitmentID]; l.InvoiceID != want || (l.ClosedBlock > 0) != (want != "") {
				t.Errorf("found %+v", l)
			}
		}
		watched, err := w.Watched(t.Context(), w.chainKey, []invoice.Address{deposit, {0x98}})
		if err != nil || !watched[deposit] || len(watched) != 1 {
			t.Errorf("watched are %v, %v", watched, err)
		}
		w.must(w.ReadAgain(t.Context(), w.chainKey, begun))
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-4:]...)
		p := w.payment(pay)
		if p.Attributed() || p.Status != invoice.Confirmed || number(p.Amount) != 7 {
			t.Errorf("the payment of the lost invoice is %+v", p)
		}
		named := p.Payment
		named.ID, named.To, named.Evidence.Calldata = "named", w.address, lost
		none := named
		none.ID, none.Evidence.Calldata = "none", closed.CommitmentID // which an invoice has
		if ids, err := ledger.NewReader(w.db.store).LostPayments(t.Context(), []invoice.Payment{p.Payment, named, none}); err != nil || len(ids) != 2 || ids[p.ID] != lost || ids["named"] != lost {
			t.Errorf("the payments are for %v, %v", ids, err)
		}
		if p := w.payment(sweep); p.Attributed() {
			t.Errorf("the sweep pays %s", p.InvoiceID)
		}
		if listed, err := ledger.UnattributedSince(t.Context(), w.db.store, w.chainKey, begun, 10); err != nil || len(listed) != 1 || listed[0].ID != p.ID {
			t.Errorf("payments without an invoice are %+v, %v, want %s and not its sweep", listed, err, p.ID)
		}
		for _, inv := range []invoice.Invoice{open, closed} {
			if got := w.invoice(inv.ID).Status; got != invoice.Open {
				t.Errorf("an invoice is %s during the recovery", got)
			}
		}
		w.Service = w.service()
		w.mine(at())
		w.final()
		if got := w.invoice(open.ID).Status; got != invoice.Expired {
			t.Errorf("an invoice of which nothing was found is %s", got)
		}
		if got := w.invoice(closed.ID); got.Status != invoice.Void || got.ClosedBlock != begun+2 {
			t.Errorf("an invoice that was closed on chain is %+v", got)
		}
	})
}
