package ledger_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestInvoiceQuota uses up a merchant's quota of invoices. Other merchants can still make invoices,
// and so can this one after the operator raised the quota. The operator's invoices are not refused.
func TestInvoiceQuota(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		quota := func(n int64) {
			t.Helper()
			expect.OK(t, w.db.store.Update(t.Context(), func(tx *db.Tx) error { return access.SetQuotas(t.Context(), tx, w.merchant, 0, n) }))
		}
		count := func() {
			t.Helper()
			expect.OK(t, w.CountInvoices(t.Context()))
		}
		create := func(byMerchant bool, key string) error {
			_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Key: key, Scope: w.merchant}, Draft: w.draft(), ByMerchant: byMerchant})
			return err
		}
		const most = 3
		quota(most)
		count()
		for range most {
			if err := create(true, "first"); err != nil { // the second and third repeat it
				t.Fatal(err)
			}
		}
		for n := range most {
			count()
			if err := create(true, ""); err != nil && n < most-1 {
				t.Fatalf("invoice %d of %d: %v", n+2, most, err)
			}
		}
		count()
		exceeded := (*limits.ExceededError)(nil)
		if err := create(true, ""); !errors.As(err, &exceeded) || exceeded.Limit != access.InvoiceQuotaName {
			t.Errorf("beyond the quota: %v", err)
		}
		if err := create(true, "first"); err != nil {
			t.Errorf("a repeated request: %v", err)
		}
		if err := create(false, ""); err != nil {
			t.Errorf("the operator's: %v", err)
		}
		quota(most + 2)
		count()
		if err := create(true, ""); err != nil {
			t.Errorf("after the quota was raised: %v", err)
		}
	})
}
