package access_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// claim claims an address for a merchant, and reports whether the merchant then holds it.
func claim(t *testing.T, s *db.DB, h access.Holding) (holds bool) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		refused, err := access.ClaimAddresses(ctx, tx, []access.Holding{h}, rowtest.At(1))
		holds = len(refused) == 0
		return err
	})
	return holds
}

// grant grants addresses, and returns the new grants and the holdings that end.
func grant(t *testing.T, s *db.DB, all ...access.Holding) (granted, lost []access.Holding) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) (err error) {
		granted, lost, err = access.GrantAddresses(ctx, tx, all, rowtest.At(1))
		return err
	})
	return granted, lost
}

func TestAddressHolders(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		home, bank := invoice.Address{1}, invoice.Address{2}
		m, n := access.Holding{Address: home, MerchantID: "m"}, access.Holding{Address: home, MerchantID: "n"}
		for range 2 {
			if !claim(t, s, m) || claim(t, s, n) {
				t.Fatal("the first to claim the address does not hold it alone")
			}
		}
		if granted, lost := grant(t, s, n, n, access.Holding{Address: bank, MerchantID: "n"}); len(granted) != 2 || !cmp.Equal(lost, []access.Holding{m}) {
			t.Errorf("granted %v, lost %v", granted, lost)
		}
		if claim(t, s, m) || !claim(t, s, n) {
			t.Error("the claim did not end with the grant")
		}
		if granted, lost := grant(t, s, m, n); !cmp.Equal(granted, []access.Holding{m}) || len(lost) > 0 {
			t.Errorf("shared: granted %v, lost %v", granted, lost)
		}
		if !claim(t, s, m) || !claim(t, s, n) {
			t.Error("the operator cannot share an address")
		}
	})
}

// TestGrantOfAnOwnClaim checks that a grant to the merchant that claimed the address ends no holding.
func TestGrantOfAnOwnClaim(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		m := access.Holding{Address: invoice.Address{1}, MerchantID: "m"}
		if granted, lost := grant(t, s); !claim(t, s, m) || len(granted)+len(lost) > 0 {
			t.Error("nothing was granted")
		}
		if granted, lost := grant(t, s, m); len(granted) != 1 || len(lost) > 0 || !claim(t, s, m) {
			t.Errorf("granted %v, lost %v", granted, lost)
		}
	})
}

// release releases an address, and reports whether it was held.
func release(t *testing.T, s *db.DB, h access.Holding) bool {
	t.Helper()
	err := s.Update(t.Context(), func(tx *db.Tx) error { return access.ReleaseAddress(t.Context(), tx, h) })
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// TestReleasedAddress releases an address of a merchant that claimed it, and of one of two merchants
// to which it was granted.
func TestReleasedAddress(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		m, n := access.Holding{Address: invoice.Address{1}, MerchantID: "m"}, access.Holding{Address: invoice.Address{1}, MerchantID: "n"}
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
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		for round := range byte(8) {
			ids := []string{"a", "b", "c", "d"}
			holds := make([]bool, len(ids))
			var wg sync.WaitGroup
			for i, id := range ids {
				wg.Go(func() {
					err := s.Update(t.Context(), func(tx *db.Tx) error {
						refused, err := access.ClaimAddresses(t.Context(), tx, []access.Holding{{Address: invoice.Address{9, round}, MerchantID: id}}, rowtest.At(1))
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
// unattributed payments, even if they are stored again.
func TestLostAddressIsNotSeen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		inv, p := rowtest.Sample("inv_1", "m"), rowtest.SamplePayment(1)
		m := access.Holding{Address: p.To, MerchantID: "m"}
		p.InvoiceID, p.MerchantID, p.Method = "", "", ""
		claim(t, s, m)
		inv.Merchant = p.To
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			settled := []access.SettlementAddress{{ChainKey: "base", Address: p.To, MerchantID: "m"}, {ChainKey: "base", Address: p.To, MerchantID: "n"}}
			if err := access.InsertSettlementAddresses(ctx, tx, settled, rowtest.At(1)); err != nil {
				return err
			}
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		sees := func(id string) bool {
			has, err := ledger.NewReader(s).HasUnattributed(t.Context(), id, p.SeenID)
			rowtest.Must(t, err)
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
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		if !sees("m") {
			t.Fatal("the payment was stored again, and the merchant does not see it")
		}
		release(t, s, m)
		grant(t, s, access.Holding{Address: p.To, MerchantID: "n"})
		if sees("m") {
			t.Error("the merchant sees a payment to an address that it lost")
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		if sees("m") || !sees("n") {
			t.Errorf("stored again: m sees the payment: %t, n: %t", sees("m"), sees("n"))
		}
	})
}
