package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/ledger"
)

// TestAwaited checks Awaited before an invoice, with an open invoice, with its payment, and once the payment is final.
func TestAwaited(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		expect := func(when string, want ledger.Awaited) {
			t.Helper()
			got, err := w.Awaited(t.Context(), w.chainKey)
			w.must(err)
			if got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		expect("without an invoice", ledger.Awaited{})
		inv := w.create()
		expect("with an open invoice", ledger.Awaited{Any: true})
		other, err := w.Awaited(t.Context(), "other")
		w.must(err)
		if other.Any {
			t.Error("something is awaited on another chain")
		}
		w.mine(w.head().Time.Unix()+1, w.pay(inv.TransferAmount))
		expect("with its payment", ledger.Awaited{Any: true, Unconfirmed: true})
		w.final()
		if w.invoice(inv.ID).Status != "paid" {
			t.Fatal("the invoice is not paid")
		}
		expect("afterwards", ledger.Awaited{})
	})
}
