package settle_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// fillSuffixes inserts open invoices that have all suffixes but the ones left.
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

// TestSuffixIsNotGivenAgainAtOnce closes an invoice and creates others: none
// is given its transfer amount while its payer may still pay, late or twice.
func TestSuffixIsNotGivenAgainAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		// Two suffixes are left: one that was used, and one that was not.
		w.fillSuffixes(7, 8)
		used := w.insertable(7)
		w.insert([]invoice.Invoice{used})
		w.mine(start+1, w.pay(used.TransferAmount))
		w.final()
		if inv := w.create(); number(inv.TransferAmount) != 1_000_008 {
			t.Errorf("the transfer amount is %s; 1000008 was free and never used", inv.TransferAmount)
		}
		// Now the used one is the only one left, and better than none.
		if inv := w.create(); inv.TransferAmount != used.TransferAmount {
			t.Errorf("the transfer amount is %s; %s was left", inv.TransferAmount, used.TransferAmount)
		}
	})
}

// TestSuffixAfterQuarantine gives a suffix again like any other a day after
// the expiry of the invoice that had it.
func TestSuffixAfterQuarantine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		used := w.create()
		w.mine(used.ExpiresAt + 1)
		w.final()
		if got := w.invoice(used.ID).Status; got != invoice.Expired {
			t.Fatalf("the invoice is %s", got)
		}
		for name, test := range map[string]struct {
			since int64
			want  int64
		}{
			"within": {used.ExpiresAt, used.ExpiresAt}, "behind": {used.ExpiresAt + 1, 0},
		} {
			k := store.AmountKey{ChainKey: w.chainKey, Merchant: w.address, Token: usdc, Amount: used.TransferAmount}
			uses, err := db.store.AmountUses(t.Context(), []store.AmountKey{k}, test.since)
			w.must(err)
			if got := uses[k]; got != (store.AmountUse{Until: test.want}) {
				t.Errorf("%s the quarantine: %+v, want until %d", name, got, test.want)
			}
		}
		if settle.Quarantine < 3600 {
			t.Error("a payer who is an hour late pays somebody else's invoice")
		}
	})
}

// TestSuffixIsNoOtherAmount gives no invoice a transfer amount that is what
// another one asks for.
func TestSuffixIsNoOtherAmount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
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

// TestCrowd pays a bare amount that very many invoices have or had.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const many = store.CandidateLimit + 20
	crowd := func(w *world, expiresAt int64) {
		var all []invoice.Invoice
		for i := range uint64(many) {
			inv := w.insertable(i + 1)
			inv.ExpiresAt = expiresAt
			all = append(all, inv)
		}
		w.insert(all)
	}
	each(t, func(t *testing.T, db *database) {
		t.Run("stale", func(t *testing.T) {
			w := db.world(t)
			crowd(w, start+10) // open still, since no final block is younger
			inv := w.create()
			p := w.pay(inv.Amount)
			w.mine(start+20, p)
			if got := w.payment(p); got.InvoiceID != inv.ID {
				t.Errorf("attributed to %q; one invoice alone was payable", got.InvoiceID)
			}
		})
		t.Run("payable", func(t *testing.T) {
			w := db.world(t)
			crowd(w, start+3600)
			p := w.pay(invoice.NewAmount(1_000_000))
			w.mine(start+20, p)
			if got := w.payment(p); got.InvoiceID != "" {
				t.Errorf("attributed to %q; %d invoices fit", got.InvoiceID, many)
			}
		})
		t.Run("covered but for one that was looked at", func(t *testing.T) {
			w := db.world(t)
			crowd(w, start+3600)
			var paid []invoice.Transfer
			for i := range uint64(many) - 2 {
				paid = append(paid, w.pay(invoice.NewAmount(1_000_001+i)))
			}
			w.mine(start+10, paid...)
			p := w.pay(invoice.NewAmount(1_000_000))
			w.mine(start+20, p)
			if got := w.payment(p); got.InvoiceID != "" {
				t.Errorf("attributed to %q; two invoices were not covered", got.InvoiceID)
			}
		})
	})
}

// TestRemainderIsNotTold fills the suffixes of a price of which one would make
// what remains of another invoice: that one is told to nobody.
func TestRemainderIsNotTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		partly := w.create(amount(2_000_000))
		w.mine(start+1, tagged(w.pay(invoice.NewAmount(999_500)), invoice.Evidence{Calldata: partly.CommitmentID}))
		remains := w.invoice(partly.ID).Remaining
		if remains != invoice.NewAmount(1_000_500) {
			t.Fatalf("%s remains", remains)
		}
		w.fillSuffixes(500, 501)
		if inv := w.create(); inv.TransferAmount != invoice.NewAmount(1_000_501) {
			t.Errorf("the only amount that means nothing is 1000501; %s was told", inv.TransferAmount)
		}
	})
}
