package ledger

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// Statements that only this package and its tests run.
var (
	FindUnreadTransaction = findUnreadTransaction
	InsertLostInvoices    = insertLostInvoices
	InsertPreparedRefund  = insertPreparedRefund
	LockInvoicesToErase   = lockInvoicesToErase
	PaymentUses           = paymentUses
	ProveAddress          = proveAddress
	RefreshUses           = refreshUses
	ReservingRefunds      = reservingRefunds
)

// TestDecidedBy compares a decision with an item, and with items of which one part differs.
func TestDecidedBy(t *testing.T) {
	t.Parallel()
	d := invoice.Decision{ObjectID: "pay_1", Kind: invoice.ItemClaimed, Version: "2"}
	for name, want := range map[string]bool{"same": true, "object": false, "kind": false, "version": false} {
		item := InboxItem{Kind: d.Kind, Version: d.Version}
		item.Payment.ID = d.ObjectID
		switch name {
		case "object":
			item.Payment.ID = "pay_2"
		case "kind":
			item.Kind = invoice.ItemUnattributed
		case "version":
			item.Version = "3"
		}
		expect.Equal(t, item.decidedBy(d), want, "%s: it is decided:", name)
	}
}

// TestFittingLost watches the addresses of the largest number of lost invoices within the limit.
func TestFittingLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lost, settlements, want int }{
		{0, 0, 0}, {5, 0, 5}, {5, 3, 5}, {1000, 1000, 1000}, {1001, 1000, 1000}, {1000, 1001, 999}, {maxLostAddresses, 1, maxLostAddresses},
		{maxLostAddresses + 1, 1, maxLostAddresses}, {7, maxLostAddresses, 1}, {7, maxLostAddresses + 1, 0},
	} {
		if got := fittingLost(c.lost, c.settlements); got != c.want {
			t.Errorf("of %d lost invoices and %d settlement addresses, %d are watched; want %d", c.lost, c.settlements, got, c.want)
		}
	}
}

// TestKeptConfirmations expects each of the first confirmations to be stored, a bounded number of
// them, and no confirmation that a later block could not add.
func TestKeptConfirmations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Uint64Range(0, 1<<20).Draw(t, "last")
		numbers := keptConfirmations(last)
		for i, n := range numbers {
			if n > last || i > 0 && n <= numbers[i-1] || i < allConfirmations && n != uint64(i+1) {
				t.Fatalf("of %d: %v", last, numbers)
			}
		}
		if want := min(last, allConfirmations); uint64(len(numbers)) < want || len(numbers) > 22 {
			t.Fatalf("of %d: %v", last, numbers)
		}
		if next := keptConfirmations(last + 1); !slices.Equal(numbers, next[:len(numbers)]) {
			t.Fatalf("%v becomes %v by one more block", numbers, next)
		}
	})
}
