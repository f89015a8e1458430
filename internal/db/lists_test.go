package db_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

func TestExpiringInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var made []invoice.Invoice
		for i, expires := range []int64{1300, 1100, 1200} {
			inv := rowtest.Sample(fmt.Sprint("inv_", i), "m")
			inv.ExpiresAt, inv.FromBlock = invoice.Unix(expires), 7
			made = append(made, inv)
		}
		closed, other := rowtest.Sample("inv_closed", "m"), rowtest.Sample("inv_other", "m")
		closed.ExpiresAt, closed.Status = invoice.Unix(1050), invoice.Expired
		other.ExpiresAt, other.ChainKey = invoice.Unix(1050), "other"
		rowtest.Insert(t, s, append(made, closed, other)...)
		for before, want := range map[int64]int{1100: 0, 1101: 1, 1200: 1, 1201: 2, 9999: 3} {
			if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 7, invoice.Unix(before), 10); err != nil || len(got) != want {
				t.Errorf("expiring before %d: %d, %v, want %d", before, len(got), err, want)
			}
		}
		if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 0, invoice.Unix(9999), 2); err != nil || len(got) != 2 || got[0].ID != "inv_1" || got[1].ID != "inv_2" {
			t.Errorf("the first two that expire: %+v, %v", got, err)
		}
		if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 8, invoice.Unix(9999), 10); err != nil || len(got) != 0 {
			t.Errorf("%d expire that the block can pay, %v", len(got), err)
		}
	})
}
