package dashboard

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestDaysOfZones checks in every zone that the days of filters follow each other without a gap, and
// that each day contains its begin.
func TestDaysOfZones(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo", "America/Santiago"}
	rapid.Check(t, func(t *rapid.T) {
		zone, ok := invoice.ParseTimezone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if !ok {
			t.Fatal("a zone is not known")
		}
		date := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "at"), 0).UTC()
		day, next := date.Format(time.DateOnly), date.AddDate(0, 0, 1).Format(time.DateOnly)
		if diff := cmp.Diff(dayText(next, false, zone), dayText(day, true, zone)); diff != "" {
			t.Fatalf("%s ends where %s does not begin (-begin +end):\n%s", day, next, diff)
		}
		at, err := strconv.ParseInt(dayText(day, false, zone), 10, 64)
		expect.OK(t, err)
		if first := time.Unix(at, 0).In(zone).Format(time.DateOnly); first < day || time.Unix(at-1, 0).In(zone).Format(time.DateOnly) >= day {
			t.Fatalf("%s begins on %s", day, first)
		}
	})
	if got := dayText("tomorrow", true, time.UTC); got != "tomorrow" {
		t.Errorf("a text that is no day becomes %q", got)
	}
}
