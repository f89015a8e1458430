package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// takeSuffixes inserts open invoices of a price with the suffixes up to last, which expire at expiresAt.
func (w *world) takeSuffixes(price, last uint64, expiresAt int64) {
	w.t.Helper()
	var all []invoice.Invoice
	for suffix := range last {
		inv := w.insertable(suffix + 1)
		inv.ID = fmt.Sprintf("inv_%s_%d_%05d", w.merchant, price, suffix)
		inv.CommitmentID = w.hash("price", price, suffix)
		inv.Amount, inv.ExpiresAt = invoice.NewAmount(price), invoice.Unix(expiresAt)
		inv.TransferAmount = invoice.NewAmount(price + suffix + 1)
		all = append(all, inv)
	}
	w.insert(all)
}

// checkRemainder checks the invoice's remainder and its transfer amount: that its suffix is in a
// range, and that it pays the invoice.
func (w *world) checkRemainder(inv invoice.Invoice, remaining, least, most uint64) {
	w.t.Helper()
	got := w.invoice(inv.ID)
	suffix := number(got.RemainingTransfer) - remaining
	if number(got.Remaining) != remaining || suffix < least || suffix > most {
		w.t.Fatalf("%s remains, with the transfer amount %s; want %d and a suffix of %d to %d", got.Remaining, got.RemainingTransfer, remaining, least, most)
	}
	p := w.pay(got.RemainingTransfer)
	w.mine(w.head().Time.Unix()+1, p)
	w.checkAttributed(p, inv, invoice.ByTransferAmount)
	if got := w.invoice(inv.ID); !got.Covered() {
		w.t.Errorf("%s is missing still", got.Missing())
	}
}

// TestManySmallPartsKeepTheRemainderPayable pays many parts above the dust limit, in one
// block and in many. The rest can still be paid, also by the first transfer amount.
func TestManySmallPartsKeepTheRemainderPayable(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, first := range []bool{false, true} {
			w := d.world(t)
			inv := w.create(amount(34_000_000))
			for i := range int64(20) {
				w.mine(start+i, w.payFor(inv, 340_000))
			}
			var parts []invoice.Transfer
			for range 70 {
				parts = append(parts, w.payFor(inv, 340_000))
			}
			w.mine(start+200, parts...)
			if first {
				p := w.pay(inv.TransferAmount)
				w.mine(start+201, p)
				w.checkAttributed(p, inv, invoice.ByTransferAmount)
				continue
			}
			w.checkRemainder(inv, 34_000_000-90*340_000, 1, invoice.MaxSuffix)
		}
	})
}

// TestRemainderWithLargerSuffix creates a remainder for a price of which all suffixes are taken.
func TestRemainderWithLargerSuffix(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		inv := w.create(amount(34_000_000))
		w.takeSuffixes(33_660_000, invoice.MaxSuffix, start+3600)
		w.mine(start+1, w.payFor(inv, 340_000))
		w.checkRemainder(inv, 33_660_000, invoice.MaxSuffix+1, invoice.RoundUnit-1)
	})
}

// withoutFreeSuffix returns a world with an invoice that has a remainder without a transfer amount,
// because no amount was free. Some are free when it returns.
func (d *database) withoutFreeSuffix(t *testing.T) (w *world, inv invoice.Invoice) {
	w = d.world(t)
	w.random = narrow{rand.New(rand.NewPCG(1, 0)), 0, 4} // generates only the first four of the larger suffixes
	w.Service = w.service()
	inv = w.create(amount(34_000_000), func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 3*minQuarantine) })
	w.takeSuffixes(33_660_000, invoice.MaxSuffix+4, start+60)
	w.mine(start+1, w.payFor(inv, 340_000))
	if got := w.invoice(inv.ID); got.Remaining != invoice.NewAmount(33_660_000) || !got.RemainingTransfer.IsZero() {
		t.Fatalf("%s remains, with the transfer amount %s", got.Remaining, got.RemainingTransfer)
	}
	w.seconds.Add(10)
	w.must(w.AssignTransferAmounts(t.Context())) // no amount is free
	if got := w.invoice(inv.ID); !got.RemainingTransfer.IsZero() {
		t.Fatalf("the transfer amount is %s", got.RemainingTransfer)
	}
	w.mine(start + 61)
	w.final()
	w.advance(start + 60 + minQuarantine + 1)
	return w, inv
}

// TestAssignWhenASuffixIsFree checks that a remainder gets a transfer amount once one is
// free: in the background, and when the invoice changes.
func TestAssignWhenASuffixIsFree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w, inv := d.withoutFreeSuffix(t)
		w.must(w.AssignTransferAmounts(t.Context()))
		w.checkRemainder(inv, 33_660_000, 1, invoice.MaxSuffix)
		w, inv = d.withoutFreeSuffix(t)
		w.mine(w.head().Time.Unix()+1, w.payFor(inv, 5)) // dust
		w.checkRemainder(inv, 33_660_000, 1, invoice.MaxSuffix)
	})
}

// TestAssignMoreContinues makes more invoices without a transfer amount than one run examines. The
// next run continues where the last one ended.
func TestAssignMoreContinues(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		const all, run = 450, 200
		for range all / 50 {
			var parts []invoice.Transfer
			for range 50 {
				parts = append(parts, w.payFor(w.create(), 400_000))
			}
			w.mine(w.head().Time.Unix()+1, parts...)
		}
		for _, s := range []string{"DELETE FROM transfer_amounts WHERE remainder = 1", "UPDATE invoices SET remaining_transfer = NULL"} {
			_, err := w.db.sql.ExecContext(t.Context(), s)
			w.must(err)
		}
		last := make(map[string]string)
		for n, want := range []int{all - run, all - 2*run, 0} {
			w.must(w.AssignMoreTransferAmounts(t.Context(), last))
			left, err := ledger.InvoicesLackingTransferAmounts(t.Context(), w.db.store, w.chainKey, "", all)
			w.must(err)
			if len(left) != want {
				t.Errorf("after %d runs %d are left, want %d", n+1, len(left), want)
			}
			if ended := last[w.chainKey] == ""; ended != (want == 0) {
				t.Errorf("after %d runs it ended: %t", n+1, ended)
			}
		}
	})
}
