package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

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
		if got, want := uses[k], (ledger.AmountUse{Until: invoice.Unix(start + 300)}); got != want {
			t.Errorf("the amount's use is %+v, want %+v", got, want)
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
