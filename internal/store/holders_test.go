package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// claim claims an address for a merchant, and reports whether the merchant then holds it.
func claim(t *testing.T, s *store.Store, h store.Holding) (holds bool) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		refused, err := tx.ClaimAddresses(ctx, []store.Holding{h}, at(1))
		holds = len(refused) == 0
		return err
	})
	return holds
}

// grant grants addresses, and returns the grants that are new, and the holdings that end.
func grant(t *testing.T, s *store.Store, all ...store.Holding) (granted, lost []store.Holding) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		granted, lost, err = tx.GrantAddresses(ctx, all, at(1))
		return err
	})
	return granted, lost
}

func TestAddressHolders(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		home, bank := invoice.Address{1}, invoice.Address{2}
		m, n := store.Holding{Address: home, MerchantID: "m"}, store.Holding{Address: home, MerchantID: "n"}
		for range 2 {
			if !claim(t, s, m) || claim(t, s, n) {
				t.Fatal("the first to claim the address does not hold it alone")
			}
		}
		if granted, lost := grant(t, s, n, n, store.Holding{Address: bank, MerchantID: "n"}); len(granted) != 2 || !cmp.Equal(lost, []store.Holding{m}) {
			t.Errorf("granted %v, lost %v", granted, lost)
		}
		if claim(t, s, m) || !claim(t, s, n) {
			t.Error("the claim did not end with the grant")
		}
		if granted, lost := grant(t, s, m, n); !cmp.Equal(granted, []store.Holding{m}) || len(lost) > 0 {
			t.Errorf("shared: granted %v, lost %v", granted, lost)
		}
		if !claim(t, s, m) || !claim(t, s, n) {
			t.Error("the operator cannot share an address")
		}
	})
}

// TestGrantOfAnOwnClaim checks that a grant to the merchant that claimed the address ends
// no holding.
func TestGrantOfAnOwnClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		m := store.Holding{Address: invoice.Address{1}, MerchantID: "m"}
		if granted, lost := grant(t, s); !claim(t, s, m) || len(granted)+len(lost) > 0 {
			t.Error("nothing was granted")
		}
		if granted, lost := grant(t, s, m); len(granted) != 1 || len(lost) > 0 || !claim(t, s, m) {
			t.Errorf("granted %v, lost %v", granted, lost)
		}
	})
}

// release releases an address, and reports whether it was held.
func release(t *testing.T, s *store.Store, h store.Holding) bool {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.ReleaseAddress(t.Context(), h) })
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// TestReleasedAddress takes an address back from a merchant that claimed it, and from one of
// two to which it was granted.
func TestReleasedAddress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		m, n := store.Holding{Address: invoice.Address{1}, MerchantID: "m"}, store.Holding{Address: invoice.Address{1}, MerchantID: "n"}
		if release(t, s, m) {
			t.Error("an address that nobody ever held was released")
		}
		if !claim(t, s, m) || release(t, s, n) || !release(t, s, m) || release(t, s, m) {
			t.Error("a claim did not end, or not once")
		}
		if claim(t, s, m) || claim(t, s, n) {
			t.Error("the address was claimed after it was taken back")
		}
		if granted, _ := grant(t, s, m, n); len(granted) != 2 || !release(t, s, m) {
			t.Errorf("granted %v", granted)
		}
		if claim(t, s, m) || !claim(t, s, n) {
			t.Error("the other merchant lost the address, or the first kept it")
		}
	})
}

// TestClaimsRace lets merchants claim one address at once.
func TestClaimsRace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for round := range byte(8) {
			ids := []string{"a", "b", "c", "d"}
			holds := make([]bool, len(ids))
			var wg sync.WaitGroup
			for i, id := range ids {
				wg.Go(func() {
					err := s.Update(t.Context(), func(tx *store.Tx) error {
						refused, err := tx.ClaimAddresses(t.Context(), []store.Holding{{Address: invoice.Address{9, round}, MerchantID: id}}, at(1))
						holds[i] = err == nil && len(refused) == 0
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			holders := 0
			for _, h := range holds {
				if h {
					holders++
				}
			}
			if holders != 1 {
				t.Errorf("round %d: %d merchants hold the address", round, holders)
			}
		}
	})
}

// TestLostAddressIsNotSeen checks that a merchant that loses an address no longer sees its
// unattributed payments, also not those that are stored again.
func TestLostAddressIsNotSeen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		startChain(t, s, "base")
		inv, p := sample("inv_1", "m"), samplePayment(1)
		m := store.Holding{Address: p.To, MerchantID: "m"}
		p.InvoiceID, p.MerchantID, p.Method = "", "", ""
		claim(t, s, m)
		inv.Merchant = p.To
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			settled := []store.SettlementAddress{{ChainKey: "base", Address: p.To, MerchantID: "m"}, {ChainKey: "base", Address: p.To, MerchantID: "n"}}
			if err := tx.InsertSettlementAddresses(ctx, settled, at(1)); err != nil {
				return err
			}
			return tx.SavePayments(ctx, []store.PaymentRow{p})
		})
		sees := func(id string) bool {
			has, err := s.HasUnattributed(t.Context(), id, p.SeenID)
			must(t, err)
			return has
		}
		if !sees("m") || sees("n") {
			t.Fatalf("m sees the payment: %t, n: %t", sees("m"), sees("n"))
		}
		release(t, s, m)
		if sees("m") {
			t.Error("the merchant sees a payment to an address that was released")
		}
		grant(t, s, m)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SavePayments(ctx, []store.PaymentRow{p}) })
		if !sees("m") {
			t.Fatal("the payment was stored again, and the merchant does not see it")
		}
		release(t, s, m)
		grant(t, s, store.Holding{Address: p.To, MerchantID: "n"})
		if sees("m") {
			t.Error("the merchant sees a payment to an address that it lost")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SavePayments(ctx, []store.PaymentRow{p}) })
		if sees("m") || !sees("n") {
			t.Errorf("stored again: m sees the payment: %t, n: %t", sees("m"), sees("n"))
		}
	})
}
