package settle_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestRoundTripsOfACreate bounds what a create waits for a database that is far away.
func TestRoundTripsOfACreate(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	for _, key := range []string{"", "order-0"} { // they prepare the statements, and claim the address
		if _, err := w.Create(t.Context(), settle.CreateRequest{Draft: w.draft(), Scope: w.merchant, IdempotencyKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		key  string
		most int64
	}{"without a key": {"", 2}, "with a key": {"order-1", 2}} {
		before := proxy.Turns()
		_, committed := proxy.Statements()
		if _, err := w.Create(t.Context(), settle.CreateRequest{Draft: w.draft(), Scope: w.merchant, IdempotencyKey: test.key}); err != nil {
			t.Fatal(err)
		}
		if _, commits := proxy.Statements(); commits != committed+1 {
			t.Errorf("a create %s took %d commits, want 1", name, commits-committed)
		}
		if n := proxy.Turns() - before; n > test.most {
			t.Errorf("a create %s took %d round trips, want at most %d", name, n, test.most)
		}
	}
}

// TestRoundTripsOfABlock checks that a block of many payments takes as many round trips as one
// of few, when it is read and when it is final.
func TestRoundTripsOfABlock(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	turns := func(payments int) (observed, confirmed int64) {
		var transfers []invoice.Transfer
		for range payments {
			transfers = append(transfers, w.pay(w.create().TransferAmount))
		}
		before := proxy.Turns()
		w.mine(w.head().Time.Unix()+1, transfers...)
		between := proxy.Turns()
		w.final()
		return between - before, proxy.Turns() - between
	}
	for range 2 {
		turns(5) // they prepare the statements
		turns(300)
	}
	observed, confirmed := turns(5)
	manyObserved, manyConfirmed := turns(300)
	t.Logf("5 payments: %d and %d round trips, 300: %d and %d", observed, confirmed, manyObserved, manyConfirmed)
	if manyObserved > observed || manyConfirmed > confirmed {
		t.Errorf("300 payments take %d and %d round trips, 5 take %d and %d", manyObserved, manyConfirmed, observed, confirmed)
	}
}

// TestRoundTripsOfExpiry checks that a transaction expires many invoices in as many round trips as few.
func TestRoundTripsOfExpiry(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	turns := func(invoices int) int64 {
		for range invoices {
			w.create()
		}
		w.mine(w.draft().ExpiresAt.Unix() + 1)
		before := proxy.Turns()
		w.final()
		return proxy.Turns() - before
	}
	for range 2 {
		turns(5) // they prepare the statements
		turns(80)
	}
	if few, many := turns(5), turns(80); many > few {
		t.Errorf("80 invoices expire in %d round trips, 5 in %d", many, few)
	}
}

// proxied returns a world on PostgreSQL, and the proxy that counts its round trips.
func proxied(t *testing.T) (*world, *storetest.Proxy) {
	t.Helper()
	proxy, through, err := storetest.StartProxy(t.Context(), storetest.MigratedPostgres(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	db := &database{store: storetest.Open(t, through)}
	t.Cleanup(func() {
		if err := errors.Join(db.store.Close(), proxy.Close()); err != nil {
			t.Error(err)
		}
	})
	return db.world(t), proxy
}
