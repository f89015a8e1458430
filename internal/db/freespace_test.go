package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestSeenPaymentsChangeNoIndex requires that PostgreSQL does not write to the indexes of invoices when a payment of
// one is seen, because none of their columns changes: pages have room for such rows (HOT updates).
func TestSeenPaymentsChangeNoIndex(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	rowtest.StartChain(t, s, "base")
	var all, seen []invoice.Invoice
	for i := range 200 {
		inv := rowtest.Sample(fmt.Sprintf("inv_%05d", i), "m")
		all = append(all, inv)
		if i%10 == 0 {
			p := rowtest.SamplePayment(i)
			p.Amount = inv.Amount
			seen = append(seen, inv.WithPayment(p.Payment))
		}
	}
	rowtest.Insert(t, s, all...)
	rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error { return ledger.UpdateInvoices(t.Context(), tx, seen) }))
	rowtest.Must(t, s.Close()) // PostgreSQL counts a connection's work when the connection ends
	conn := dbtest.SQL(t, url)
	var updated, inPlace int
	for end := time.Now().Add(time.Minute); updated == 0 && time.Now().Before(end); clock.Sleep(t.Context(), 10*time.Millisecond, nil) {
		rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'invoices'").Scan(&updated, &inPlace))
	}
	if updated != len(seen) || inPlace != updated {
		t.Errorf("%d invoices were updated, %d of them without their indexes; want %d", updated, inPlace, len(seen))
	}
}
