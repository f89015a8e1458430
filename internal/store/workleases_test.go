package store_test

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

func TestLease(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		one, two := store.WorkLease{Name: "work", Holder: "one"}, store.WorkLease{Name: "work", Holder: "two"}
		for i, step := range []struct {
			lease      store.WorkLease
			now, until int64
			want       bool
		}{
			{one, 100, 200, true},
			{two, 199, 299, false},
			{store.WorkLease{Name: "other work", Holder: "two"}, 199, 299, true},
			{one, 150, 250, true}, // extended
			{two, 249, 349, false},
			{two, 250, 350, true}, // at its end
			{one, 260, 360, false},
			{two, 500, 600, true}, // after its end, and no other has taken it
		} {
			got, err := s.AcquireWorkLease(t.Context(), step.lease, atMS(step.now), atMS(step.until))
			must(t, err)
			if got != step.want {
				t.Errorf("step %d: acquired is %t, want %t", i, got, step.want)
			}
		}
		must(t, s.ReleaseWorkLease(t.Context(), one)) // the lease of another holder, so nothing happens
		if got, err := s.AcquireWorkLease(t.Context(), one, atMS(510), atMS(610)); err != nil || got {
			t.Errorf("a lease was released by another than its holder: %t, %v", got, err)
		}
		must(t, s.ReleaseWorkLease(t.Context(), two))
		if got, err := s.AcquireWorkLease(t.Context(), one, atMS(510), atMS(610)); err != nil || !got {
			t.Errorf("a lease that was given back is not free: %t, %v", got, err)
		}
	})
}

func TestLeaseGoesToOneOfMany(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const askers = 16
		got := make([]bool, askers)
		var group errgroup.Group
		for i := range askers {
			group.Go(func() (err error) {
				got[i], err = s.AcquireWorkLease(t.Context(), store.WorkLease{Name: "work", Holder: string(rune('a' + i))}, atMS(1), atMS(2))
				return err
			})
		}
		must(t, group.Wait())
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

// atMS returns a time some milliseconds after the Unix epoch.
func atMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
