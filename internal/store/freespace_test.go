package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
	"github.com/quittance/quittance/internal/wait"
)

// TestSeenPaymentsChangeNoIndex requires that PostgreSQL writes nothing to the indexes of invoices when a payment of one is seen,
// which changes none of their columns: pages have room for such rows (HOT updates).
func TestSeenPaymentsChangeNoIndex(t *testing.T) {
	t.Parallel()
	url := storetest.MigratedPostgres(t)
	s := storetest.Open(t, url)
	startChain(t, s, "base")
	var all, seen []invoice.Invoice
	for i := range 200 {
		inv := sample(fmt.Sprintf("inv_%05d", i), "m")
		all = append(all, inv)
		if i%10 == 0 {
			p := samplePayment(i)
			p.Amount = inv.Amount
			seen = append(seen, inv.WithPayment(p.Payment))
		}
	}
	insert(t, s, all...)
	must(t, s.Update(t.Context(), func(tx *store.Tx) error { return tx.UpdateInvoices(t.Context(), seen) }))
	must(t, s.Close()) // PostgreSQL counts what a connection did when that ends
	db := storetest.SQL(t, url)
	var updated, inPlace int
	for end := time.Now().Add(time.Minute); updated == 0 && time.Now().Before(end); wait.Sleep(t.Context(), 10*time.Millisecond, nil) {
		must(t, db.QueryRowContext(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'invoices'").Scan(&updated, &inPlace))
	}
	if updated != len(seen) || inPlace != updated {
		t.Errorf("%d invoices were updated, %d of them without their indexes; want %d", updated, inPlace, len(seen))
	}
}
