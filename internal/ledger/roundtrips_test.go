package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// slack is how many more round trips are allowed: on a busy machine the pool checks or opens a connection in between.
const slack = 2

// TestRoundTripsOfACreate bounds the round trips of a create, which matter if the database is far away.
func TestRoundTripsOfACreate(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	create := func(key string, byMerchant bool) (turns int64) {
		before := proxy.Turns()
		_, committed := proxy.Statements()
		_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Key: key, Scope: w.merchant}, Draft: w.draft(), ByMerchant: byMerchant})
		expect.OK(t, err)
		if _, commits := proxy.Statements(); commits > committed+1 {
			t.Errorf("a create took %d commits, want 1", commits-committed)
		}
		return proxy.Turns() - before
	}
	for n, key := range []string{"", "first"} { // they prepare the statements, and claim the address
		create(key, false)
		w.seconds.Add(2)
		create(key+fmt.Sprint(n), true)
		w.seconds.Add(2)
		create(key+fmt.Sprint(n+2), true)
	}
	const most = 2
	for _, byMerchant := range []bool{false, true} {
		for _, later := range []int64{0, 60} { // seconds; the holding of the address is looked up again
			for _, keyed := range []bool{false, true} {
				turns := func(try int) int64 {
					w.seconds.Add(later)
					key := ""
					if keyed {
						key = fmt.Sprint("order-", byMerchant, later, try)
					}
					return create(key, byMerchant)
				}
				if n := min(turns(1), turns(2), turns(3)); n > most { // one may open a connection
					t.Errorf("a create by the merchant: %v, with a key: %v, %d s after the last one took %d round trips, want at most %d", byMerchant, keyed, later, n, most)
				}
			}
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
		turns(100)
	}
	observed, confirmed := turns(5)
	manyObserved, manyConfirmed := turns(100)
	for range 2 { // a further connection that a slow machine opens prepares the statements as well
		if manyObserved <= observed && manyConfirmed <= confirmed {
			break
		}
		again, andAgain := turns(100)
		manyObserved, manyConfirmed = min(manyObserved, again), min(manyConfirmed, andAgain)
	}
	t.Logf("5 payments: %d and %d round trips, 100: %d and %d", observed, confirmed, manyObserved, manyConfirmed)
	if manyObserved > observed+slack || manyConfirmed > confirmed+slack {
		t.Errorf("100 payments take %d and %d round trips, 5 take %d and %d", manyObserved, manyConfirmed, observed, confirmed)
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
		turns(40)
	}
	few, many := turns(5), turns(40)
	for try := 0; try < 2 && many > few; try++ { // a further connection prepares the statements, too
		many = min(many, turns(40))
	}
	if many > few+slack {
		t.Errorf("40 invoices expire in %d round trips, 5 in %d", many, few)
	}
}

// TestRoundTripsOfImport checks that an import looks up its own commitment, not all that are lost.
func TestRoundTripsOfImport(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	w.create()
	turns := func(lost int) int64 {
		var all []invoice.Invoice
		for i := range lost {
			all = append(all, w.lostInvoice(func(inv *invoice.Invoice) { inv.Amount = invoice.NewAmount(uint64(2_000_000 + 100*w.txs + i)) }))
		}
		w.lose(all...)
		before := proxy.Turns()
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, all[0], 0, ""), nil))
		return proxy.Turns() - before
	}
	for range 2 {
		turns(1) // they prepare the statements
	}
	if few, many := turns(1), turns(30); many > few+slack {
		t.Errorf("with 30 lost invoices an import takes %d round trips, with fewer %d", many, few)
	}
}

// proxied returns a world on PostgreSQL, and the proxy that counts its round trips.
func proxied(t *testing.T) (*world, *dbtest.Proxy) {
	t.Helper()
	direct := dbtest.MigratedPostgres(t)
	proxy, through, err := dbtest.StartProxy(t.Context(), direct, 0)
	expect.OK(t, err)
	d := &database{store: dbtest.Open(t, through), sql: dbtest.SQL(t, direct)}
	t.Cleanup(func() { expect.NoError(t, errors.Join(d.store.Close(), proxy.Close())) })
	return d.world(t), proxy
}
