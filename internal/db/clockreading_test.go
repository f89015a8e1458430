package db_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestClockReading checks that a reading is stored with all its fields, also a reading that is behind
// or centuries ahead.
func TestClockReading(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		base := time.UnixMilli(1_700_000_000_123).UTC()
		last := db.ClockReading{}
		for _, next := range []db.ClockReading{
			{Now: base, Since: base},
			{Now: base.Add(time.Hour), Since: base.Add(time.Minute), Before: -time.Hour, Offset: 290 * 365 * 24 * time.Hour},
			{Now: base.Add(2 * time.Hour), Since: base.Add(time.Hour), Before: 5 * time.Millisecond, Offset: -290 * 365 * 24 * time.Hour},
		} {
			got, err := s.ReadClock(t.Context(), base, func(stored db.ClockReading, _ time.Time) db.ClockReading {
				stored.Source = time.Time{} // on PostgreSQL it is its own clock
				expect.NoDiff(t, gocmp.Diff(last, stored), "stored")
				return next
			})
			rowtest.Must(t, err)
			expect.NoDiff(t, gocmp.Diff(next, got), "returned")
			last = next
		}
	})
}
