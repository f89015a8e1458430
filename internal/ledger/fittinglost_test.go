package ledger

import "testing"

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
