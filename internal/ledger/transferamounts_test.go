package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
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
				expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "with a clock wrong by %d s the invoice is", skew)
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
		expect.Equal(t, w.invoice(two.ID).Status, invoice.Open, "before the older blocks are read the invoice is")
		w.fill(101, older.Header, older)
		w.checkAttributed(bare, two, invoice.ByAmount)
		w.checkAttributed(paysYoung, young, invoice.ByAmount)
		for _, inv := range []invoice.Invoice{one, two, tolled, young} {
			expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "the invoice over %s is", inv.Amount)
		}
		expect.Equal(t, len(w.eventTypes(two)), 3, "events of the payment that waited:")
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

// fillSuffixes inserts open invoices with all suffixes except the given ones.
func (w *world) fillSuffixes(left ...uint64) {
	w.t.Helper()
	var all []invoice.Invoice
	for suffix := range uint64(invoice.MaxSuffix) {
		inv := w.insertable(suffix + 1)
		all = append(all, inv)
		for _, l := range left {
			if l == suffix+1 {
				all = all[:len(all)-1]
			}
		}
	}
	w.insert(all)
}

// TestTransferAmountQuarantine closes an invoice with the only free suffix of its price, or one of two, and creates
// another invoice just before and at the end of both quarantines.
func TestTransferAmountQuarantine(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			left  []uint64 // suffixes without an open invoice; the first is the closed invoice's
			paid  bool
			after int64  // seconds after its expiresAt
			want  uint64 // suffix of the new invoice; 0 without one
		}{
			"paid, at once":                   {[]uint64{7}, true, -3600, 0},
			"expired, at once":                {[]uint64{7}, false, 1, 0},
			"paid, for an hour":               {[]uint64{7}, true, minQuarantine, 0},
			"expired, for an hour":            {[]uint64{7}, false, minQuarantine, 0},
			"paid, then better than none":     {[]uint64{7}, true, minQuarantine + 1, 7},
			"expired, then better than none":  {[]uint64{7}, false, minQuarantine + 1, 7},
			"while another is free":           {[]uint64{7, 8}, true, minQuarantine + 1, 8},
			"while another is free for a day": {[]uint64{7, 8}, false, quarantine, 8},
		} {
			w := d.world(t)
			w.seconds.Store(start + 2*quarantine) // the other invoices stay open
			w.fillSuffixes(test.left...)
			w.seconds.Store(start)
			used := w.insertable(test.left[0])
			w.insert([]invoice.Invoice{used})
			if test.paid {
				w.mine(start+1, w.pay(used.TransferAmount))
			} else {
				w.mine(used.ExpiresAt.Unix() + 1)
			}
			w.final()
			w.advance(used.ExpiresAt.Unix() + test.after)
			want := invoice.Amount{}
			if test.want > 0 {
				want = used.Amount.Plus(invoice.NewAmount(test.want))
			}
			if inv := w.create(); inv.TransferAmount != want {
				t.Errorf("%s: the transfer amount is %s, want %s", name, inv.TransferAmount, want)
			}
		}
	})
}

// TestLateOrSecondPaymentPaysNoOtherInvoice lets a stranger hold all other suffixes of a price, and
// create an invoice when the last one is closed. A payment of the closed invoice within the hour must
// not pay the stranger's, whatever the service's clock shows, and also if the chain is read late.
func TestLateOrSecondPaymentPaysNoOtherInvoice(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for n := range 4 {
			paid, readLate := n%2 == 1, n/2 == 1
			w := d.world(t)
			w.seconds.Store(start + 2*quarantine) // the other invoices stay open
			w.fillSuffixes(7)
			w.seconds.Store(start)
			mine := w.create(func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 60) })
			if paid {
				w.mine(start+10, w.pay(mine.TransferAmount))
			}
			w.mine(start + 61)
			w.final()
			if readLate {
				w.seconds.Store(start + 60 + 2*minQuarantine)
			} else {
				w.advance(start + 60 + minQuarantine)
			}
			w.create()
			p := w.pay(mine.TransferAmount)
			w.mine(start+60+minQuarantine, p)
			w.checkAttributed(p, mine, invoice.ByTransferAmount)
		}
	})
}

// TestQuarantineUntilTheLastExpiry makes several closed invoices with one transfer amount. The newest
// expired first, which former versions allowed.
func TestQuarantineUntilTheLastExpiry(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		var all []invoice.Invoice
		for i := range int64(3) {
			inv := w.insertable(7)
			inv.ID, inv.CommitmentID = fmt.Sprint(inv.ID, "_", i), w.hash("closed", i)
			inv.Status, inv.FromBlock, inv.ExpiresAt = invoice.Expired, 100+uint64(i), invoice.Unix(start+300-100*i)
			all = append(all, inv)
		}
		w.insert(all)
		k := ledger.AmountKey{ChainKey: w.chainKey, Merchant: w.address, Token: usdc, Amount: all[0].TransferAmount}
		uses, err := ledger.AmountUses(t.Context(), w.db.store, []ledger.AmountKey{k}, func() time.Time { return invoice.Unix(start) })
		w.must(err)
		expect.Equal(t, uses[k], (ledger.AmountUse{Until: invoice.Unix(start + 300)}), "the amount's use is")
	})
}

// TestSuffixAfterQuarantine checks that a suffix is assigned like any other a day after its last invoice expired.
func TestSuffixAfterQuarantine(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		used := w.create()
		w.mine(used.ExpiresAt.Unix() + 1)
		w.final()
		if got := w.invoice(used.ID).Status; got != invoice.Expired {
			t.Fatalf("the invoice is %s", got)
		}
		for name, test := range map[string]struct {
			since, want time.Time
		}{
			"within": {used.ExpiresAt, used.ExpiresAt}, "behind": {used.ExpiresAt.Add(time.Second), time.Time{}},
		} {
			k := ledger.AmountKey{ChainKey: w.chainKey, Merchant: w.address, Token: usdc, Amount: used.TransferAmount}
			uses, err := ledger.AmountUses(t.Context(), w.db.store, []ledger.AmountKey{k}, func() time.Time { return test.since })
			w.must(err)
			if got := uses[k]; got != (ledger.AmountUse{Until: test.want}) {
				t.Errorf("%s the quarantine: %+v, want until %s", name, got, test.want)
			}
		}
		if minQuarantine < 60*60 || quarantine <= minQuarantine {
			t.Error("a payer who is an hour late pays somebody else's invoice")
		}
	})
}

// TestSuffixAvoidsOpenAmounts checks that no transfer amount equals the amount of another open invoice.
func TestSuffixAvoidsOpenAmounts(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.fillSuffixes(7, 8)
		other := w.insertable(7)
		other.ID, other.CommitmentID = other.ID+"_bare", w.hash("bare")
		other.Amount, other.TransferAmount = other.TransferAmount, invoice.Amount{}
		w.insert([]invoice.Invoice{other})
		if inv := w.create(); number(inv.TransferAmount) != 1_000_008 {
			t.Errorf("the transfer amount is %s; %s is the amount of another invoice", inv.TransferAmount, other.Amount)
		}
		if inv := w.create(); !inv.TransferAmount.IsZero() {
			t.Errorf("the transfer amount is %s; none was free", inv.TransferAmount)
		}
		p := w.pay(other.Amount)
		w.mine(start+1, p)
		if got := w.payment(p); got.InvoiceID != other.ID {
			t.Errorf("the payment of the other invoice went to %q", got.InvoiceID)
		}
	})
}

// TestTransferAmountAvoidsRemainders uses up the suffixes of a price, except for one that
// equals the remainder of another invoice. That one is not assigned.
func TestTransferAmountAvoidsRemainders(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		partly := w.create(amount(2_000_000))
		w.mine(start+1, tagged(w.pay(invoice.NewAmount(999_500)), invoice.Evidence{Calldata: partly.CommitmentID}))
		remains := w.invoice(partly.ID).Remaining
		if remains != invoice.NewAmount(1_000_500) {
			t.Fatalf("%s remains", remains)
		}
		w.fillSuffixes(500, 501)
		if inv := w.create(); inv.TransferAmount != invoice.NewAmount(1_000_501) {
			t.Errorf("the only unused amount is 1000501; the transfer amount is %s", inv.TransferAmount)
		}
	})
}

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
			w.must(w.db.sql.ExecContext(t.Context(), s))
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
