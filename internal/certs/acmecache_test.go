package certs_test

import (
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
