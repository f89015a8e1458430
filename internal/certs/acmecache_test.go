package certs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/certs"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestACMECache(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx := t.Context()
		expect.Error(t, db.ErrNotFound, "before it is stored")(certs.FindACMEEntry(ctx, s, "a.example"))
		for i, e := range []certs.ACMEEntry{{Sealed: []byte{0, 1, 2}, KeyID: "k1"}, {Sealed: []byte("other"), KeyID: "k2"}} {
			expect.OK(t, certs.PutACMEEntry(ctx, s, "a.example", e, time.Unix(int64(i), 0)))
			if got, err := certs.FindACMEEntry(ctx, s, "a.example"); err != nil || !cmp.Equal(got, e) {
				t.Errorf("%+v, %v; want %+v", got, err, e)
			}
		}
		for range 2 {
			expect.NoError(t, certs.DeleteACMEEntry(ctx, s, "a.example"))
		}
		expect.Error(t, db.ErrNotFound, "after it was deleted")(certs.FindACMEEntry(ctx, s, "a.example"))
	})
}

// TestACMEOrders checks that one owner at a time orders a certificate.
func TestACMEOrders(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		claim := func(what, name, owner string, at int64, want bool) {
			t.Helper()
			got, err := certs.ClaimACMEOrder(t.Context(), s, name, owner, time.Unix(at, 0), time.Unix(at-120, 0))
			if err != nil || got != want {
				t.Errorf("%s: %t, %v; want %t", what, got, err, want)
			}
		}
		claim("the first", "a.example", "one", 1000, true)
		claim("another", "a.example", "two", 1000, false)
		claim("another name", "b.example", "two", 1000, true)
		claim("the first again", "a.example", "one", 1100, true)
		claim("another before the claim is old", "a.example", "two", 1219, false)
		claim("another when it is", "a.example", "two", 1220, true)
		claim("the first after that", "a.example", "one", 1221, false)
		expect.NoError(t, certs.ReleaseACMEOrder(t.Context(), s, "a.example"))
		claim("after a release", "a.example", "one", 1222, true)
		if _, err := certs.FindACMEEntry(t.Context(), s, "a.example"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a claim is taken for a certificate: %v", err)
		}
	})
}
