package db_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestRenamedChainOfHolder renames a chain in a merchant's stored addresses. The renamed configuration
// has the same addresses, so the merchant still counts as the same company.
func TestRenamedChainOfHolder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		address := invoice.Address{1}
		was := access.MerchantHolder{MerchantID: "shop", Allowed: []invoice.AllowedAddress{{ChainKey: "base", Address: address}, {ChainKey: "other", Address: address}}, Since: time.Unix(1, 0)}
		rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
			if err := access.PutMerchantHolder(t.Context(), tx, was); err != nil {
				return err
			}
			return tx.RenameChain(t.Context(), "base", "base-mainnet")
		}))
		is, err := access.FindMerchantHolder(t.Context(), s, "shop")
		rowtest.Must(t, err)
		if want := []invoice.AllowedAddress{{ChainKey: "base-mainnet", Address: address}, {ChainKey: "other", Address: address}}; !slices.Equal(is.Allowed, want) {
			t.Errorf("the merchant held %v, want %v", is.Allowed, want)
		}
	})
}
