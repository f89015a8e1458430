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
