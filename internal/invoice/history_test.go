package invoice_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// TestHistory adds payments to a history and removes some, in any order. The result must equal a history of the
// remaining payments, and the sum of the payments before each position.
func TestHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		inv := openInvoice("a")
		inv.Amount, inv.Tolerance = invoice.NewAmount(1000), invoice.NewAmount(rapid.Uint64Range(0, 50).Draw(r, "tolerance"))
		h := invoice.NewHistory(inv, nil)
		var there []invoice.Payment
		for n := range rapid.IntRange(0, 12).Draw(r, "payments") {
			p := drawPayment(r, n)
			h.Add(p)
			there = append(there, p)
			if rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
				i := rapid.IntRange(0, len(there)-1).Draw(r, "which")
				h.Remove(there[i])
				there = slices.Delete(there, i, i+1)
			}
		}
		at := invoice.Position{BlockNumber: rapid.Uint64Range(0, 9).Draw(r, "block"), LogIndex: rapid.IntRange(0, 12).Draw(r, "log")}
		fresh := invoice.NewHistory(inv, there)
		covered, remainder := h.DueAt(at)
		if c, rest := fresh.DueAt(at); c != covered || rest != remainder || h.Remainder() != fresh.Remainder() || !slices.Equal(h.Remainders(), fresh.Remainders()) {
			r.Errorf("changed one by one: covered %t, %s remains, %s in the end; made at once: %t, %s, %s",
				covered, remainder, h.Remainder(), c, rest, fresh.Remainder())
		}
		if rest := h.Remainder(); !rest.IsZero() && !slices.Contains(h.Remainders(), rest) {
			r.Errorf("%s remains, but the remainders were %s", rest, h.Remainders())
		}
		var before []invoice.Payment
		for _, p := range there {
			if p.Before(at) {
				before = append(before, p)
			}
		}
		if want := inv.Recount(before).Covered(); covered != want {
			r.Errorf("covered %t, want %t", covered, want)
		}
	})
}

// drawPayment draws a payment of the invoice "a" or of another one.
func drawPayment(r *rapid.T, n int) invoice.Payment {
	p := invoice.Payment{Transfer: transfer(rapid.SampledFrom([]uint64{3, 9, 100, 400, 600, 990, 1000}).Draw(r, "amount")), InvoiceID: "a"}
	p.BlockNumber, p.LogIndex = rapid.Uint64Range(1, 8).Draw(r, "block"), n
	p.BlockTime = invoice.Unix(rapid.SampledFrom([]int64{1500, 2000, 2001}).Draw(r, "time"))
	p.Status = rapid.SampledFrom([]invoice.PaymentStatus{invoice.Pending, invoice.Confirmed, invoice.Orphaned}).Draw(r, "status")
	if rapid.IntRange(0, 5).Draw(r, "of") == 0 {
		p.InvoiceID = "b"
	}
	return p
}
