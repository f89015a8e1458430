package db_test

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

func TestLease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		one, two := db.WorkLease{Name: "work", Holder: "one"}, db.WorkLease{Name: "work", Holder: "two"}
		for i, step := range []struct {
			lease      db.WorkLease
			now, until int64
			want       bool
		}{
			{one, 100, 200, true},
			{two, 199, 299, false},
			{db.WorkLease{Name: "other work", Holder: "two"}, 199, 299, true},
			{one, 150, 250, true}, // extended
			{two, 249, 349, false},
			{two, 250, 350, true}, // at its end
			{one, 260, 360, false},
			{two, 500, 600, true}, // after its end, and no other has taken it
		} {
			got, err := s.AcquireWorkLease(t.Context(), step.lease, rowtest.AtMS(step.now), rowtest.AtMS(step.until))
			rowtest.Must(t, err)
			if got != step.want {
				t.Errorf("step %d: acquired is %t, want %t", i, got, step.want)
			}
		}
		rowtest.Must(t, s.ReleaseWorkLease(t.Context(), one)) // the lease of another holder, so it has no effect
		if got, err := s.AcquireWorkLease(t.Context(), one, rowtest.AtMS(510), rowtest.AtMS(610)); err != nil || got {
			t.Errorf("a lease was released by another than its holder: %t, %v", got, err)
		}
		rowtest.Must(t, s.ReleaseWorkLease(t.Context(), two))
		if got, err := s.AcquireWorkLease(t.Context(), one, rowtest.AtMS(510), rowtest.AtMS(610)); err != nil || !got {
			t.Errorf("a lease that was given back is not free: %t, %v", got, err)
		}
	})
}

func TestLeaseGoesToOneOfMany(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const askers = 16
		got := make([]bool, askers)
		var group errgroup.Group
		for i := range askers {
			group.Go(func() (err error) {
				got[i], err = s.AcquireWorkLease(t.Context(), db.WorkLease{Name: "work", Holder: string(rune('a' + i))}, rowtest.AtMS(1), rowtest.AtMS(2))
				return err
			})
		}
		rowtest.Must(t, group.Wait())
		holders := 0
		for _, held := range got {
			if held {
				holders++
			}
		}
		if holders != 1 {
			t.Errorf("%d of %d got the lease, want one", holders, askers)
		}
	})
}
