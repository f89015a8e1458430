package ledger

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
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

// TestConfirmationsRoundTrip writes and reads the largest number of confirmations.
func TestConfirmationsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want []Confirmation
		for _, n := range keptConfirmations(rapid.Uint64Range(1, 1<<20).Draw(t, "last")) {
			want = append(want, Confirmation{n, invoice.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "time"))})
		}
		text := formatConfirmations(want)
		got, err := parseConfirmations(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" || len(text) > 1000 {
			t.Fatalf("%v, %d bytes (-written +read):\n%s", err, len(text), diff)
		}
	})
	if _, err := parseConfirmations("1-2"); err == nil {
		t.Error("a malformed text was read")
	}
}
