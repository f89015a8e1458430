package invoice_test

import (
	"math"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// TestUnix expects seconds from any peer to become a time that can be compared and written in RFC 3339.
func TestUnix(t *testing.T) {
	t.Parallel()
	const last = 253_402_300_799 // of the year 9999
	for seconds, want := range map[int64]int64{
		0: 0, 1: 1, 1_700_000_000: 1_700_000_000, last: last, last + 1: last, math.MaxInt64: last, -1: 0, math.MinInt64: 0,
	} {
		got := invoice.Unix(seconds)
		if got.Unix() != want || invoice.UnixSeconds(got) != want || got != time.Unix(want, 0).UTC() || got.IsZero() {
			t.Errorf("Unix(%d) = %s, want %d s", seconds, got, want)
		}
		if _, err := got.MarshalText(); err != nil {
			t.Errorf("%d: %v", seconds, err)
		}
	}
	if got := invoice.UnixSeconds(time.Time{}); got != 0 {
		t.Errorf("the zero time is %d s", got)
	}
}
