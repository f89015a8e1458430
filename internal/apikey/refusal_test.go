package apikey_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apikey"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestHolds asks for keys before and after their first use.
func TestHolds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		_, key := w.create("acme", access.Read)
		a, _ := w.replica()
		if a.Holds(key) || a.Holds("") || a.Holds("sesame") {
			t.Error("it holds a key before its first use")
		}
		if _, err := a.Authenticate(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		unknown := newKey(t, access.Live).Reveal()
		if _, err := a.Authenticate(t.Context(), unknown); !apikey.IsRefusal(err) {
			t.Errorf("an unknown key: %v", err)
		}
		if !a.Holds(key) || a.Holds(unknown) {
			t.Error("want it to hold the key that it accepted, and no other")
		}
		w.create("beta", access.Read)
		w.pass(time.Second)
		if _, err := a.Authenticate(t.Context(), unknown); !apikey.IsRefusal(err) {
			t.Errorf("an unknown key: %v", err)
		}
		if !a.Holds(key) || a.Holds(unknown) {
			t.Error("after a change of another key it no longer holds the key")
		}
	})
	for _, err := range []error{nil, apikey.ErrMissing, errors.New("no database")} {
		if apikey.IsRefusal(err) {
			t.Errorf("%v says that the key is wrong", err)
		}
	}
}
