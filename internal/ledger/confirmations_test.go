package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// checkConfirmations checks which blocks confirm the payments of an invoice.
func (w *world) checkConfirmations(inv invoice.Invoice, want ...[]ledger.Confirmation) {
	w.t.Helper()
	h, err := ledger.NewReader(w.db.store).InvoiceHistory(w.t.Context(), inv.ID)
	w.must(err)
	var got [][]ledger.Confirmation
	for _, p := range h.Payments {
		got = append(got, p.Confirmations)
	}
	expect.NoDiff(w.t, cmp.Diff(want, got), "confirmations")
}

// TestConfirmations follows the blocks that confirm a payment: while it is pending, in a reorg,
// when it is final, and after the headers of its blocks are gone.
func TestConfirmations(t *testing.T) {
	eachWorldOnBoth(t, func(_ *testing.T, w *world) {
		inv := w.create()
		payment := w.pay(inv.TransferAmount)
		start := w.head().Time.Unix()
		w.mine(start+1, payment)
		w.mine(start + 3)
		first, second := ledger.Confirmation{Number: 1, Time: at(start + 1)}, ledger.Confirmation{Number: 2, Time: at(start + 3)}
		w.checkConfirmations(inv, []ledger.Confirmation{first, second})
		w.reorg(1)
		w.checkConfirmations(inv, []ledger.Confirmation{first})
		w.mine(start + 4)
		second.Time = at(start + 4)
		w.checkConfirmations(inv, []ledger.Confirmation{first, second})
		w.reorg(2)
		w.checkConfirmations(inv, nil)

		w.mine(start + 2)
		w.mine(start+5, payment)
		want := []ledger.Confirmation{{Number: 1, Time: at(start + 5)}}
		w.checkConfirmations(inv, want)
		for n := uint64(2); n <= 20; n++ {
			w.mine(start + 10*int64(n))
			if n <= 12 || n == 16 {
				want = append(want, ledger.Confirmation{Number: n, Time: at(start + 10*int64(n))})
			}
		}
		w.checkConfirmations(inv, want)
		w.final()
		w.checkConfirmations(inv, want)
		for range 300 {
			w.mine(w.head().Time.Unix() + 1)
		}
		w.final()
		w.checkConfirmations(inv, want)
	})
}
