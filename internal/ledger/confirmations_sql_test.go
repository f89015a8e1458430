package ledger

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
