package ledger_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestCandidatesDoNotDependOnConfirm pays the bare amount of many invoices. All but one of them are paid or expired.
// The attribution must not depend on whether the earlier payments were confirmed before.
func TestCandidatesDoNotDependOnConfirm(t *testing.T) {
	t.Parallel()
	plays := map[string]func(w *world, before, after ledger.Block){
		"confirmed between": func(w *world, before, after ledger.Block) {
			w.observe(before)
			w.final()
			w.observe(after)
		},
		"confirmed afterwards": func(w *world, before, after ledger.Block) {
			w.observe(before)
			w.observe(after)
		},
		"in one transaction": func(w *world, before, after ledger.Block) {
			w.must(w.Observe(t.Context(), w.chainKey, []ledger.Block{before, after}))
			w.blocks = append(w.blocks, before, after)
		},
	}
	onSQLite(t, func(t *testing.T, d *database) {
		for name, play := range plays {
			t.Run("paid, "+name, func(t *testing.T) {
				w := d.world(t)
				var all []invoice.Invoice
				var paid []invoice.Transfer
				for s := range uint64(300) {
					inv := w.insertable(s + 1)
					all = append(all, inv)
					if s != 150 {
						paid = append(paid, w.pay(inv.TransferAmount))
					}
				}
				w.insert(all)
				last := w.pay(all[150].Amount)
				playTwoBlocks(w, play, paid, last)
				w.checkAttributed(last, all[150], invoice.ByAmount)
			})
			t.Run("a remainder, "+name, func(t *testing.T) {
				w := d.world(t)
				var all []invoice.Invoice
				var parts, paid []invoice.Transfer
				for s := range uint64(120) {
					inv := w.insertable(s + 1)
					inv.Amount, inv.TransferAmount = invoice.NewAmount(1_000_000+10*s), invoice.Amount{}
					all = append(all, inv)
					parts = append(parts, tagged(w.pay(invoice.NewAmount(600_000+10*s)), invoice.Evidence{Calldata: inv.CommitmentID}))
					if s != 60 {
						paid = append(paid, tagged(w.pay(invoice.NewAmount(400_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
					}
				}
				w.insert(all)
				w.mine(start+1, parts...)
				last := w.pay(invoice.NewAmount(400_000))
				playTwoBlocks(w, play, paid, last)
				w.checkAttributed(last, all[60], invoice.ByAmount)
			})
			t.Run("within the tolerance, "+name, func(t *testing.T) {
				w := d.world(t)
				var all []invoice.Invoice
				var paid []invoice.Transfer
				for s := range uint64(600) {
					inv := w.insertable(s + 1)
					inv.Amount, inv.TransferAmount, inv.Tolerance = invoice.NewAmount(1_100_000+s), invoice.Amount{}, invoice.NewAmount(10_000)
					switch {
					case s == 300:
						inv.Amount = invoice.NewAmount(1_000_000)
					case s%2 == 0:
						inv.ExpiresAt = invoice.Unix(start + 60)
					default:
						paid = append(paid, tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID}))
					}
					all = append(all, inv)
				}
				w.insert(all)
				last := w.pay(invoice.NewAmount(999_000))
				playTwoBlocks(w, play, paid, last)
				w.checkAttributed(last, all[300], invoice.ByTolerance)
			})
		}
	})
}

// playTwoBlocks plays two blocks: one with the payments, and a later one with the last payment.
func playTwoBlocks(w *world, play func(w *world, before, after ledger.Block), paid []invoice.Transfer, last invoice.Transfer) {
	before := w.next(start+61, paid...)
	w.blocks = append(w.blocks, before)
	after := w.next(start+62, last)
	w.blocks = w.blocks[:len(w.blocks)-1]
	play(w, before, after)
	w.final()
}

// TestTooManyCandidates pays amounts that match more invoices than are considered: by a
// former remainder, and by a larger amount.
func TestTooManyCandidates(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for n, attributed := range map[uint64]bool{99: true, 100: false} {
			w := d.world(t)
			var all []invoice.Invoice
			var parts []invoice.Transfer
			for s := range n {
				inv := w.insertable(s + 1)
				inv.Amount, inv.TransferAmount = invoice.NewAmount(1_000_000+10*s), invoice.Amount{}
				all = append(all, inv)
				parts = append(parts, tagged(w.pay(invoice.NewAmount(600_000+10*s)), invoice.Evidence{Calldata: inv.CommitmentID}))
				if s > 0 {
					parts = append(parts, tagged(w.pay(invoice.NewAmount(100_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
				}
			}
			w.insert(all)
			w.mine(start+1, parts...)
			p := w.pay(invoice.NewAmount(400_000))
			w.mine(start+2, p)
			if got := w.payment(p); (got.InvoiceID == all[0].ID) != attributed || got.Attributed() != attributed {
				t.Errorf("with %d that had the remainder: attributed to %q, want %t", n, got.InvoiceID, attributed)
			}
		}
		for n, attributed := range map[uint64]bool{500: true, 501: false} {
			w := d.world(t)
			var all []invoice.Invoice
			for s := range n {
				inv := w.insertable(s + 1)
				inv.Amount, inv.TransferAmount, inv.Tolerance = invoice.NewAmount(1_010_000+s), invoice.Amount{}, invoice.NewAmount(5)
				all = append(all, inv)
			}
			all[0].Tolerance = invoice.NewAmount(20_000)
			w.insert(all)
			p := w.pay(invoice.NewAmount(1_000_000))
			w.mine(start+2, p)
			if got := w.payment(p); (got.InvoiceID == all[0].ID) != attributed || got.Attributed() != attributed {
				t.Errorf("with %d above the amount: attributed to %q, want %t", n, got.InvoiceID, attributed)
			}
		}
	})
}

// alone returns a SQLite database for a test that runs while no other does.
func alone(t *testing.T) *database {
	t.Helper()
	url := dbtest.Migrated(t)
	return &database{store: dbtest.Open(t, url), sql: dbtest.SQL(t, url)}
}

// allocated returns how many kilobytes fn allocates, as a measure of the rows it reads. No other test
// may run at the same time.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 10
}

// TestCostOfDustOfAPrice compares transfers of an amount that many invoices ask for, or slightly more, with other
// transfers. Both must cost about the same: each amount is looked up once, and line items are not read.
func TestCostOfDustOfAPrice(t *testing.T) {
	d := alone(t)
	cost := func(tolerance, amount, step uint64) uint64 {
		w := d.world(t)
		var all []invoice.Invoice
		for s := range uint64(99) {
			inv := w.insertable(s + 1)
			inv.Amount, inv.TransferAmount, inv.Tolerance = invoice.NewAmount(1_500), invoice.Amount{}, invoice.NewAmount(tolerance)
			for range 20 {
				inv.LineItems = append(inv.LineItems, invoice.LineItem{Label: strings.Repeat("x", 100), Amount: invoice.NewAmount(75)})
			}
			all = append(all, inv)
		}
		w.insert(all)
		var dust []invoice.Transfer
		for i := range uint64(500) {
			dust = append(dust, w.pay(invoice.NewAmount(amount+i*step)))
		}
		b := w.next(start+1, dust...)
		return allocated(func() { w.observe(b) })
	}
	other := cost(0, 10_000, 0)
	if got := cost(0, 1_500, 0); got > 2*other {
		t.Errorf("500 transfers of a price allocate %d kB, others %d kB", got, other)
	}
	other = cost(0, 10_000, 1)
	if got := cost(1, 900, 1); got > 3*other {
		t.Errorf("500 transfers of different amounts below a price allocate %d kB, others %d kB", got, other)
	}
}

// TestChainOfTolerances mines many transfers in one block. Each is the amount of an invoice that the transfer before it
// pays within the tolerance, so that the invoices that it may pay are known only after that one.
func TestChainOfTolerances(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.merchant = "lenient-" + w.merchant
		const transfers = 70 // more than the reads of one decision
		var invoices []invoice.Invoice
		var block []invoice.Transfer
		n := uint64(1_000_000)
		for range transfers {
			block = append(block, w.pay(invoice.NewAmount(n)))
			n += n / 25
			invoices = append(invoices, w.create(amount(n)))
		}
		w.mine(start+10, block...)
		w.final()
		for i, inv := range invoices {
			if p := w.payment(block[i]); p.InvoiceID != inv.ID || p.Method != invoice.ByTolerance {
				t.Errorf("transfer %d belongs to %q by %q, want %s by tolerance", i, p.InvoiceID, p.Method, inv.ID)
			}
			if got := w.invoice(inv.ID); got.Status != invoice.Paid {
				t.Errorf("invoice %d is %s", i, got.Status)
			}
		}
	})
}
