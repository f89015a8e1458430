package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestRenamedChainOfHolder renames a chain that a merchant's remembered addresses name. The renamed configuration has
// the same ones, so the merchant is the same company.
func TestRenamedChainOfHolder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		address := invoice.Address{1}
		was := store.MerchantHolder{MerchantID: "shop", Allowed: []invoice.AllowedAddress{{ChainKey: "base", Address: address}, {ChainKey: "other", Address: address}}, Since: time.Unix(1, 0)}
		must(t, s.Update(t.Context(), func(tx *store.Tx) error {
			if err := tx.PutMerchantHolder(t.Context(), was); err != nil {
				return err
			}
			return tx.RenameChain(t.Context(), "base", "base-mainnet")
		}))
		is, err := s.MerchantHolder(t.Context(), "shop")
		must(t, err)
		if want := []invoice.AllowedAddress{{ChainKey: "base-mainnet", Address: address}, {ChainKey: "other", Address: address}}; !slices.Equal(is.Allowed, want) {
			t.Errorf("the merchant held %v, want %v", is.Allowed, want)
		}
	})
}
