package store_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestAdoptionDue completes what older programs wrote at the edge of the period in which they may run.
func TestAdoptionDue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		begin := at(1)
		want := func(want bool) {
			t.Helper()
			due, err := s.AdoptionDue(t.Context())
			must(t, err)
			if due != want {
				t.Errorf("due is %t, want %t", due, want)
			}
		}
		want(true)
		for _, after := range []time.Duration{0, store.AdoptionPeriod - time.Second} {
			must(t, s.Adopted(t.Context(), begin.Add(after)))
			want(true)
		}
		must(t, s.Adopted(t.Context(), begin.Add(store.AdoptionPeriod)))
		want(false)
		must(t, s.Adopted(t.Context(), begin)) // by a replica that took long
		want(false)
	})
}
