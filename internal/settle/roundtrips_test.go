package settle_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestRoundTripsOfACreate bounds what a create waits for a database that is far away.
func TestRoundTripsOfACreate(t *testing.T) {
	t.Parallel()
	proxy, through, err := storetest.StartProxy(t.Context(), storetest.Postgres(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	db := &database{store: storetest.Open(t, through)}
	t.Cleanup(func() {
		if err := errors.Join(db.store.Close(), proxy.Close()); err != nil {
			t.Error(err)
		}
	})
	w := db.world(t)
	for _, key := range []string{"", "order-0"} { // they prepare the statements, and claim the address
		if _, err := w.Create(t.Context(), settle.CreateRequest{Draft: w.draft(), Scope: w.merchant, IdempotencyKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		key  string
		most int64
	}{"without a key": {"", 3}, "with a key": {"order-1", 5}} {
		before := proxy.Turns()
		if _, err := w.Create(t.Context(), settle.CreateRequest{Draft: w.draft(), Scope: w.merchant, IdempotencyKey: test.key}); err != nil {
			t.Fatal(err)
		}
		if n := proxy.Turns() - before; n > test.most {
			t.Errorf("a create %s took %d round trips, want at most %d", name, n, test.most)
		}
	}
}
