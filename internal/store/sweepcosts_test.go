package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// queueDeposits has a deposit of each of the merchants in the queue, and returns its ids.
func queueDeposits(t *testing.T, s *store.Store, merchants ...string) (ids []string) {
	t.Helper()
	for i, merchant := range merchants {
		inv := sample(fmt.Sprint("inv_deposit", i), merchant)
		inv.Collection, inv.DepositFactory, inv.DepositAddress = invoice.Deposit, invoice.Address{0xfa}, invoice.Address{0xda, byte(i)}
		insert(t, s, inv)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.AddToDeposits(ctx, []invoice.Payment{depositPayment(inv).Payment}, nil)
		})
		queued, err := s.QueuedSweeps(t.Context(), "base", "", 100)
		must(t, err)
		ids = ids[:0]
		for _, q := range queued {
			ids = append(ids, q.ID)
		}
	}
	return ids
}

// TestSweepTxs reads what transactions cost that were sent to sweep, in pages.
func TestSweepTxs(t *testing.T) {
	eachWriter(t, 0, func(t *testing.T, s *store.Store, _ *sql.DB) {
		ids := queueDeposits(t, s, "b", "a", "b", "b")
		for i, tx := range []struct {
			kind  store.TxKind
			items []string
			spent *store.TxCost
		}{
			{store.TxSweep, ids, &store.TxCost{Gwei: 10, At: atMS(50)}},
			{store.TxSweep, nil, &store.TxCost{Gwei: 7, At: atMS(50)}}, // as one of an earlier release
			{store.TxOpen, nil, &store.TxCost{Gwei: 100, At: atMS(60)}},
			{store.TxSweep, nil, nil}, // in flight
			{store.TxSweep, nil, &store.TxCost{Gwei: 5, At: atMS(1000)}},
		} {
			row := chainTx(fmt.Sprint("ctx_", i), uint64(i))
			row.Kind = tx.kind
			must(t, s.SaveChainTx(t.Context(), writerLease, row, tx.items))
			must(t, s.SetTxStatus(t.Context(), writerLease, row.ID, store.TxMined, tx.spent))
		}
		first := store.SweepTx{
			ID: "ctx_0", ChainKey: "base", Cost: store.TxCost{Gwei: 10, At: atMS(50)},
			Merchants: []store.SweepMerchant{{MerchantID: "a", Deposits: 1}, {MerchantID: "b", Deposits: 3}},
		}
		second := store.SweepTx{ID: "ctx_1", ChainKey: "base", Cost: store.TxCost{Gwei: 7, At: atMS(50)}}
		for name, c := range map[string]struct {
			filter store.ReportFilter
			want   []store.SweepTx
		}{
			"all":                  {store.ReportFilter{Limit: 9}, []store.SweepTx{first, second}},
			"a page":               {store.ReportFilter{Limit: 1}, []store.SweepTx{first}},
			"the next page":        {store.ReportFilter{Limit: 9, After: atMS(50), AfterID: "ctx_0"}, []store.SweepTx{second}},
			"of a merchant":        {store.ReportFilter{Limit: 9, MerchantID: "b"}, []store.SweepTx{first}},
			"of a merchant, after": {store.ReportFilter{Limit: 9, MerchantID: "b", After: atMS(50), AfterID: "ctx_0"}, nil},
			"of another merchant":  {store.ReportFilter{Limit: 9, MerchantID: "c"}, nil},
		} {
			c.filter.From, c.filter.To = at(0), at(1)
			got, err := s.SweepTxs(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		of, err := s.SweepMerchants(t.Context(), "ctx_0")
		if diff := cmp.Diff(first.Merchants, of); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		must(t, s.SetTxStatus(t.Context(), writerLease, "ctx_0", store.TxSent, nil)) // a reorg
		if got, err := s.SweepTxs(t.Context(), store.ReportFilter{From: at(0), To: at(1), Limit: 9}); err != nil || len(got) != 1 {
			t.Errorf("after a reorg: %+v, %v", got, err)
		}
	})
}

// TestSharesOfSweeps divides costs: the parts add up, and deposits cost the same.
func TestSharesOfSweeps(t *testing.T) {
	t.Parallel()
	for cost, want := range map[int64][]int64{0: {0, 0, 0}, 1: {0, 0, 1}, 10: {1, 5, 4}, 12: {2, 6, 4}, math.MaxInt64: {
		1_537_228_672_809_129_301, 4_611_686_018_427_387_903, 3_074_457_345_618_258_603,
	}} {
		tx := store.SweepTx{Cost: store.TxCost{Gwei: cost}, Merchants: []store.SweepMerchant{{MerchantID: "a", Deposits: 1}, {MerchantID: "b", Deposits: 3}, {MerchantID: "c", Deposits: 2}}}
		var got []int64
		sum := int64(0)
		for i, share := range tx.Shares() {
			got, sum = append(got, share.Gwei), sum+share.Gwei
			if share.MerchantID != tx.Merchants[i].MerchantID || share.Deposits != tx.Merchants[i].Deposits {
				t.Errorf("%d: share %d is %+v", cost, i, share)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || sum != cost {
			t.Errorf("%d (-want +got):\n%s", cost, diff)
		}
	}
	if got := (store.SweepTx{Cost: store.TxCost{Gwei: 5}}).Shares(); len(got) != 0 {
		t.Errorf("of nobody: %+v", got)
	}
}
