package clock_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

func TestEarlierAndLater(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, pair := range [][2]time.Time{{early, late}, {late, early}} {
		if got := clock.Earlier(pair[0], pair[1]); got != early {
			t.Errorf("the earlier of %v is %v", pair, got)
		}
		if got := clock.Later(pair[0], pair[1]); got != late {
			t.Errorf("the later of %v is %v", pair, got)
		}
	}
}

func TestZeroTimeIsNoText(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	for at, want := range map[time.Time]string{
		{}:                     "",
		time.Time{}.In(zone):   "",
		time.Time{}.Local():    "",
		clock.Unix(0):          "",
		clock.Unix(1):          "1970-01-01T01:00:01+01:00",
		time.Unix(0, 0):        "1970-01-01T01:00:00+01:00",
		clock.Unix(-1):         "1970-01-01T00:59:59+01:00",
		clock.Unix(1764313200): "2025-11-28T08:00:00+01:00",
	} {
		if got := clock.Format(at, zone, time.RFC3339); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}
