package ledger_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// checkAttributed checks the invoice and the method of an attribution.
func (w *world) checkAttributed(t invoice.Transfer, want invoice.Invoice, by invoice.Method) {
	w.t.Helper()
	if got := w.payment(t); got.InvoiceID != want.ID || got.Method != by {
		w.t.Errorf("the payment of %s in block %d went to %q by %q, want %q by %q",
			got.Amount, got.BlockNumber, got.InvoiceID, got.Method, want.ID, by)
	}
}

// TestTransferAmountsAreNotRound lets an attacker create invoices just below a round price until all suffixes are
// taken. None has the price as its transfer amount, and a transfer of the price pays the shop's invoice.
func TestTransferAmountsAreNotRound(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		var all []invoice.Invoice
		for suffix := range uint64(invoice.MaxSuffix) {
			inv := w.insertable(suffix + 1)
			inv.Amount = invoice.NewAmount(999_500)
			inv.TransferAmount = inv.Amount.Plus(invoice.NewAmount(suffix + 1))
			if number(inv.TransferAmount) != 1_000_000 {
				all = append(all, inv)
			}
		}
		w.insert(all)
		if last := w.create(amount(999_500)); !last.TransferAmount.IsZero() {
			t.Errorf("the transfer amount is %s", last.TransferAmount)
		}
		shop := w.create(amount(1_000_000))
		p := w.pay(shop.Amount)
		w.mine(start+1, p)
		w.checkAttributed(p, shop, invoice.ByAmount)
	})
}

// TestObservedPaymentCannotBeTaken lets an attacker see an unattributed payment. Its block is then orphaned. Mined
// again, it pays no invoice that has its amount as amount, transfer amount or remainder.
func TestObservedPaymentCannotBeTaken(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, prey := range map[string]func(w *world, old invoice.Invoice) []invoice.Transfer{
			"his price": func(w *world, _ invoice.Invoice) []invoice.Transfer {
				w.create(amount(33_990_017))
				return nil
			},
			"his transfer amount": func(w *world, _ invoice.Invoice) []invoice.Transfer {
				inv := w.insertable(17)
				inv.Amount, inv.TransferAmount, inv.FromBlock = invoice.NewAmount(33_990_000), invoice.NewAmount(33_990_017), 102
				w.insert([]invoice.Invoice{inv})
				return nil
			},
			"his remainder": func(w *world, old invoice.Invoice) []invoice.Transfer {
				return []invoice.Transfer{tagged(w.pay(old.Amount.Minus(invoice.NewAmount(33_990_017))), invoice.Evidence{Calldata: old.CommitmentID})}
			},
		} {
			w := d.world(t)
			old := w.create(amount(34_000_000))
			stray := w.pay(invoice.NewAmount(33_990_017))
			w.mine(start + 1)
			w.mine(start+2, stray)
			w.mine(start + 3)
			parts := prey(w, old)
			w.reorg(3)
			w.mine(start+2, parts...)
			w.mine(start+3, stray)
			if got := w.payment(stray); got.Attributed() {
				t.Errorf("%s gets it by %q", name, got.Method)
			}
			w.reorg(1)
			for range 5 {
				w.mine(start + 4)
			}
			w.mine(start+5, stray)
			if got := w.payment(stray); got.Attributed() {
				t.Errorf("%s gets it by %q, mined a third time", name, got.Method)
			}
		}
	})
}

// TestTransferAmountAfterAPart checks that the first transfer amount, each remainder's transfer amount
// and the bare remainder stay valid through a reorg that drops the part.
func TestTransferAmountAfterAPart(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		part := func(w *world, inv invoice.Invoice, n uint64) invoice.Transfer {
			return tagged(w.pay(invoice.NewAmount(n)), invoice.Evidence{Calldata: inv.CommitmentID})
		}
		for name, test := range map[string]struct {
			amount func(first, second invoice.Invoice) invoice.Amount
			method invoice.Method
		}{
			"the first":            {func(a, _ invoice.Invoice) invoice.Amount { return a.TransferAmount }, invoice.ByTransferAmount},
			"the first remainder":  {func(a, _ invoice.Invoice) invoice.Amount { return a.RemainingTransfer }, invoice.ByTransferAmount},
			"the second remainder": {func(_, b invoice.Invoice) invoice.Amount { return b.RemainingTransfer }, invoice.ByTransferAmount},
			"the bare remainder":   {func(_, b invoice.Invoice) invoice.Amount { return b.Remaining }, invoice.ByAmount},
		} {
			w := d.world(t)
			inv := w.create()
			twin := w.create() // makes the bare amount ambiguous
			w.mine(start+1, part(w, inv, 150_000))
			first := w.invoice(inv.ID)
			w.mine(start+2, part(w, inv, 250_000), part(w, inv, 9_999)) // the last transfer is dust
			second := w.invoice(inv.ID)
			for rest, got := range map[uint64]invoice.Invoice{850_000: first, 600_000: second} {
				suffix := number(got.RemainingTransfer) - rest
				if number(got.Remaining) != rest || suffix < 1 || suffix > 999 {
					t.Errorf("%s: %s remains, with the transfer amount %s; want %d", name, got.Remaining, got.RemainingTransfer, rest)
				}
			}
			p := w.pay(test.amount(first, second))
			w.mine(start+3, p)
			w.checkAttributed(p, inv, test.method)
			if got := w.invoice(inv.ID); !got.Remaining.IsZero() || !got.RemainingTransfer.IsZero() {
				t.Errorf("%s: covered, %s remains, with the transfer amount %s", name, got.Remaining, got.RemainingTransfer)
			}
			if got := w.invoice(twin.ID); !got.Remaining.IsZero() {
				t.Errorf("%s: of the twin %s remains", name, got.Remaining)
			}
			w.reorg(1)
			if got := w.invoice(inv.ID); got.Remaining != second.Remaining || got.RemainingTransfer != second.RemainingTransfer {
				t.Errorf("%s: after the reorg %s remains, with the transfer amount %s; want %s and %s", name,
					got.Remaining, got.RemainingTransfer, second.Remaining, second.RemainingTransfer)
			}
			w.mine(start+4, p)
			w.final()
			if got := w.invoice(inv.ID); got.Status != invoice.Paid {
				t.Errorf("%s: the invoice is %s", name, got.Status)
			}
		}
	})
}

// TestRemainderTransferAmountsAreReleased checks that the transfer amount of a remainder
// is free only when its invoice is closed.
func TestRemainderTransferAmountsAreReleased(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.mine(start+1, tagged(w.pay(invoice.NewAmount(400_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
		told := w.invoice(inv.ID).RemainingTransfer
		k := ledger.AmountKey{ChainKey: w.chainKey, Merchant: w.address, Token: usdc, Amount: told}
		taken := func() ledger.AmountUse {
			uses, err := ledger.AmountUses(t.Context(), w.db.store, []ledger.AmountKey{k}, func() time.Time { return invoice.Unix(start) })
			w.must(err)
			return uses[k]
		}
		if got := taken(); !got.Taken {
			t.Errorf("while the invoice is open: %+v", got)
		}
		w.mine(start+2, w.pay(told))
		w.final()
		if got := taken(); got.Taken || !got.Until.Equal(inv.ExpiresAt) {
			t.Errorf("after it was paid: %+v, want until %s", got, inv.ExpiresAt)
		}
	})
}

// TestAttributionIgnoresClocks sets the service's clock hours wrong. Plain transfers must count.
func TestAttributionIgnoresClocks(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, skew := range []int64{16, 8 * 3600, -8 * 3600} {
			w := d.world(t)
			w.seconds.Add(skew)
			one := w.create(func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 12*3600) })
			two := w.create(amount(2_000_000), func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 12*3600) })
			told, bare := w.pay(one.TransferAmount), w.pay(two.Amount)
			w.mine(start+1, told, bare)
			w.checkAttributed(told, one, invoice.ByTransferAmount)
			w.checkAttributed(bare, two, invoice.ByAmount)
			w.final()
			for _, inv := range []invoice.Invoice{one, two} {
				if got := w.invoice(inv.ID).Status; got != invoice.Paid {
					t.Errorf("with a clock wrong by %d s the invoice is %s", skew, got)
				}
			}
		}
	})
}

// TestPaymentIsDeferredForUnreadBlocks starts a chain at its head. Payments with an attribution that
// depends on earlier blocks are attributed when those are read, and no invoice expires before.
func TestPaymentIsDeferredForUnreadBlocks(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.chainKey += "-late"
		w.Service = w.service()
		one, two := w.create(), w.create()
		tolled := w.create(amount(5_000_000))
		older := w.next(start+1, w.pay(one.TransferAmount))
		w.blocks = append(w.blocks, older)
		w.must(w.Start(t.Context(), w.chainKey, w.head(), 101))
		bare, told := w.pay(two.Amount), w.pay(tolled.TransferAmount)
		young := w.create(amount(7_000_000))
		paysYoung := w.pay(young.Amount)
		w.mine(start+2, bare, told, paysYoung)
		w.checkAttributed(bare, invoice.Invoice{}, "") // ambiguous
		w.checkAttributed(told, tolled, invoice.ByTransferAmount)
		w.mine(one.ExpiresAt.Unix() + 1)
		w.final()
		if got := w.invoice(two.ID).Status; got != invoice.Open {
			t.Errorf("before the older blocks are read the invoice is %s", got)
		}
		w.fill(101, older.Header, older)
		w.checkAttributed(bare, two, invoice.ByAmount)
		w.checkAttributed(paysYoung, young, invoice.ByAmount)
		for _, inv := range []invoice.Invoice{one, two, tolled, young} {
			if got := w.invoice(inv.ID).Status; got != invoice.Paid {
				t.Errorf("the invoice over %s is %s", inv.Amount, got)
			}
		}
		if got := len(w.eventTypes(two)); got != 3 {
			t.Errorf("%d events of the payment that waited", got)
		}
	})
}

// TestLongestFreeSuffixIsUsedFirst creates invoices of a price after all its suffixes were used. Each gets the suffix
// with the last invoice that expired longest ago, and no suffix is reused within an hour of an expiry.
func TestLongestFreeSuffixIsUsedFirst(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		var all []invoice.Invoice
		for suffix := range uint64(invoice.MaxSuffix) {
			inv := w.insertable(suffix + 1)
			inv.Status, inv.ExpiresAt = invoice.Expired, invoice.Unix(start+1+int64(suffix))
			all = append(all, inv)
		}
		w.insert(all)
		create := func(at int64, want uint64) {
			t.Helper()
			if w.head().Time.Unix() < at {
				w.advance(at)
			}
			if inv := w.create(); inv.TransferAmount != invoice.NewAmount(want) {
				t.Errorf("at %d, the transfer amount is %s, want %d", at, inv.TransferAmount, want)
			}
		}
		const free = start + minQuarantine + 1 // no suffix is free before
		create(free, 0)
		for i := range uint64(20) {
			create(free+20, 1_000_001+i)
		}
		create(free+20, 0)
		create(free+30, 1_000_021)
	})
}
