package ledger

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// TestFreeFittingRefunds compares the first free record of a list with the one that a search of the whole list finds.
// Transfers pay records, and in some blocks name them. The cursor asks about each record few times.
func TestFreeFittingRefunds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "records")
		l := &fittingRefunds{records: make([]invoice.RefundRecord, n)}
		paid, asked, blocks := make([]bool, n), 0, 0
		isPaid := func(i int) bool { return paid[i] }
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			blocks++
			named := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "named")
			isNamed := func(i int) bool {
				asked++
				return named[i]
			}
			for range rapid.IntRange(0, 30).Draw(t, "transfers") {
				want := 0
				for want < n && (paid[want] || named[want]) {
					want++
				}
				got, ok := l.free(uint64(blocks), isPaid, isNamed)
				if got != want || ok != (want < n) {
					t.Fatalf("record %d is free (%t), want %d", got, ok, want)
				}
				switch rapid.IntRange(0, 3).Draw(t, "the transfer") {
				case 0: // it pays no record, because less is left of the payment
				case 1: // it pays the record that it names
					if i := rapid.IntRange(0, n).Draw(t, "record"); i < n && named[i] {
						paid[i] = true
					}
				default:
					if ok {
						paid[got] = true
					}
				}
			}
		}
		if asked > n*blocks+blocks {
			t.Fatalf("asked %d times about %d records in %d blocks", asked, n, blocks)
		}
	})
}
