package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

func TestACMECache(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		if _, err := s.ACMEEntry(ctx, "a.example"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("before it is stored: %v", err)
		}
		for i, e := range []store.ACMEEntry{{Sealed: []byte{0, 1, 2}, KeyID: "k1"}, {Sealed: []byte("other"), KeyID: "k2"}} {
			if err := s.PutACMEEntry(ctx, "a.example", e, time.Unix(int64(i), 0)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.ACMEEntry(ctx, "a.example"); err != nil || !cmp.Equal(got, e) {
				t.Errorf("%+v, %v; want %+v", got, err, e)
			}
		}
		for range 2 {
			if err := s.DeleteACMEEntry(ctx, "a.example"); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.ACMEEntry(ctx, "a.example"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after it was deleted: %v", err)
		}
	})
}
