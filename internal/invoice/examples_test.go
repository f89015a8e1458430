package invoice_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestLateForAVoidInvoice checks from which block on a payment of a void invoice is late: above the
// newest block that was read when the invoice became void.
func TestLateForAVoidInvoice(t *testing.T) {
	t.Parallel()
	inv := invoice.Invoice{Status: invoice.Void, ClosedBlock: 100, Terms: invoice.Terms{ExpiresAt: invoice.Unix(2000)}}
	for block, want := range map[uint64]bool{99: false, 100: false, 101: true} {
		if got := inv.IsLate(invoice.Position{BlockNumber: block, BlockTime: invoice.Unix(1000)}); got != want {
			t.Errorf("in block %d it is late: %t, want %t", block, got, want)
		}
	}
	inv.Status = invoice.Paid
	if inv.IsLate(invoice.Position{BlockNumber: 101, BlockTime: invoice.Unix(1000)}) {
		t.Error("a payment of a paid invoice is late above its block")
	}
}

// TestOverpaidByTheSum checks that the sum of the payments decides whether an invoice is overpaid, and
// not the last payment.
func TestOverpaidByTheSum(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	inv := invoice.Invoice{ID: "a", Status: invoice.Open, Terms: invoice.Terms{Amount: n(1_000_000), ExpiresAt: invoice.Unix(2000)}}
	for name, test := range map[string]struct {
		first, second uint64
		exception     invoice.Exception
		overpaid      uint64
	}{
		"a small payment exceeds it":        {999_999, 20_000, invoice.Overpaid, 19_999},
		"a payment below the amount does":   {500_000, 600_000, invoice.Overpaid, 100_000},
		"by the largest suffix":             {500_000, 500_999, "", 0},
		"by one more":                       {500_000, 501_000, invoice.Overpaid, 1_000},
		"a payment of nearly all completes": {1_000, 999_000, "", 0},
	} {
		payments := []invoice.Payment{paid(1, 1500, test.first), paid(2, 1600, test.second)}
		got := inv.Settle(payments)
		if got.Status != invoice.Paid || got.Exception != test.exception {
			t.Errorf("%s: it is %s, %q, want %q", name, got.Status, got.Exception, test.exception)
		}
		if p := got.Portion(payments[1], n(test.first)); p.Overpaid != n(test.overpaid) || (test.overpaid > 0) != p.Suffix.IsZero() && test.first+test.second > 1_000_000 {
			t.Errorf("%s: of the second %s is too much, and %s a suffix", name, p.Overpaid, p.Suffix)
		}
	}
}
