package report_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
)

// anyMerchant ignores the order of shares, which has no meaning within a transaction.
var anyMerchant = cmpopts.SortSlices(func(a, b txmgr.TxShare) bool { return a.TxID+a.MerchantID < b.TxID+b.MerchantID })

// addItem stores an item that transactions of a kind carry, and returns its id. n is a number that no other item has.
func addItem(t *testing.T, s *db.DB, kind txmgr.TxKind, n int, merchant string) (id string) {
	t.Helper()
	inv := rowtest.Sample(fmt.Sprint("inv_item", n), merchant)
	number := invoice.Address{0xda, byte(n), byte(n >> 8)}
	if kind == txmgr.TxSweep {
		inv.Collection, inv.DepositFactory, inv.DepositAddress = invoice.Deposit, invoice.Address{0xfa}, number
	}
	rowtest.Insert(t, s, inv)
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		switch kind {
		case txmgr.TxSweep:
			id = strings.Join([]string{inv.ChainKey, number.String(), inv.Token.String()}, "/")
			return ledger.AddToDeposits(ctx, tx, []invoice.Payment{rowtest.DepositPayment(inv).Payment}, nil)
		case txmgr.TxAuthorization:
			a := rowtest.SampleAuthorization(1, inv.ID)
			id, a.MerchantID, a.From = fmt.Sprint("aut_", n), merchant, number
			a.ID = id
			return ledger.InsertAuthorization(ctx, tx, a)
		case txmgr.TxOpen, txmgr.TxClose:
		}
		in := rowtest.Intent(n, inv)
		id, in.Kind = in.ID, invoice.IntentKind(kind)
		return ledger.InsertIntents(ctx, tx, []ledger.Intent{in})
	})
	return id
}

// sendFor saves the transaction with nonce n for an item of each of the merchants, and returns
// the items, which have the numbers from n on.
func sendFor(t *testing.T, s *db.DB, kind txmgr.TxKind, n int, merchants ...string) (items []string) {
	t.Helper()
	for i, merchant := range merchants {
		items = append(items, addItem(t, s, kind, n+i, merchant))
	}
	saveTx(t, s, kind, n, items)
	return items
}

// saveTx saves the transaction with nonce n.
func saveTx(t *testing.T, s *db.DB, kind txmgr.TxKind, n int, items []string) {
	t.Helper()
	row := rowtest.ChainTx(fmt.Sprintf("ctx_%05d", n), uint64(n))
	row.Kind = kind
	rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, row, items))
}

// TestTxShares reads merchants' parts of costs, in pages.
func TestTxShares(t *testing.T) {
	rowtest.EachWriter(t, 0, func(t *testing.T, s *db.DB, _ *sql.DB) {
		for n, tx := range []struct {
			kind      txmgr.TxKind
			merchants []string
			spent     *ledger.TxCost
		}{
			{txmgr.TxSweep, []string{"b", "a", "b", "b"}, &ledger.TxCost{Gwei: 10, At: rowtest.AtMS(50)}},
			{txmgr.TxSweep, nil, &ledger.TxCost{Gwei: 7, At: rowtest.AtMS(50)}}, // as one of an earlier release
			{txmgr.TxAuthorization, []string{"b"}, &ledger.TxCost{Gwei: 100, At: rowtest.AtMS(60)}},
			{txmgr.TxOpen, []string{"b"}, nil}, // in flight
			{txmgr.TxClose, []string{"a"}, &ledger.TxCost{Gwei: 5, At: rowtest.AtMS(1000)}},
		} {
			sendFor(t, s, tx.kind, 10*n, tx.merchants...)
			rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, fmt.Sprintf("ctx_%05d", 10*n), txmgr.TxMined, tx.spent))
		}
		share := func(n int, kind txmgr.TxKind, merchant string, items, gwei, ms int64) txmgr.TxShare {
			return txmgr.TxShare{TxID: fmt.Sprintf("ctx_%05d", n), ChainKey: "base", Kind: kind, MerchantID: merchant, Items: items, Cost: ledger.TxCost{Gwei: gwei, At: rowtest.AtMS(ms)}}
		}
		firstA, firstB := share(0, txmgr.TxSweep, "a", 1, 2, 50), share(0, txmgr.TxSweep, "b", 3, 8, 50)
		second, third := share(10, txmgr.TxSweep, "", 0, 7, 50), share(20, txmgr.TxAuthorization, "b", 1, 100, 60)
		for name, c := range map[string]struct {
			filter report.ReportFilter
			want   []txmgr.TxShare
		}{
			"all":                  {report.ReportFilter{Limit: 9}, []txmgr.TxShare{firstA, firstB, second, third}},
			"a page":               {report.ReportFilter{Limit: 2}, []txmgr.TxShare{firstA, firstB, second}},
			"the next page":        {report.ReportFilter{Limit: 9, After: rowtest.AtMS(50), AfterID: "ctx_00000"}, []txmgr.TxShare{second, third}},
			"of a merchant":        {report.ReportFilter{Limit: 9, MerchantID: "b"}, []txmgr.TxShare{firstB, third}},
			"a page of a merchant": {report.ReportFilter{Limit: 1, MerchantID: "b"}, []txmgr.TxShare{firstB}},
			"of a merchant, after": {report.ReportFilter{Limit: 9, MerchantID: "b", After: rowtest.AtMS(50), AfterID: "ctx_00000"}, []txmgr.TxShare{third}},
			"of another merchant":  {report.ReportFilter{Limit: 9, MerchantID: "c"}, nil},
		} {
			c.filter.From, c.filter.To = rowtest.At(0), rowtest.At(1)
			got, err := report.NewReader(s).TxShares(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, got, anyMerchant); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
			}
		}
		of, err := txmgr.TxMerchants(t.Context(), s, "ctx_00000")
		if diff := cmp.Diff([]txmgr.TxMerchant{{MerchantID: "a", Items: 1, Total: 4}, {MerchantID: "b", Items: 3, Before: 1, Total: 4}}, of); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// TestTxSharesAddUp sends transactions of all kinds; some are replaced, reverted or dropped by a reorg. Each with a
// known cost counts once, by parts that add up to its cost, and merchants have the same parts as the whole report.
func TestTxSharesAddUp(t *testing.T) {
	rowtest.EachWriter(t, 0, func(t *testing.T, s *db.DB, _ *sql.DB) {
		n, round := 0, int64(0)
		rapid.Check(t, func(r *rapid.T) {
			round++
			costs := make(map[string]int64)
			var again []string // items of a failed transaction
			var kind txmgr.TxKind
			for range rapid.IntRange(1, 5).Draw(r, "transactions") {
				n += 10
				id := fmt.Sprintf("ctx_%05d", n)
				if len(again) > 0 {
					saveTx(t, s, kind, n, again)
				} else {
					kind = rapid.SampledFrom([]txmgr.TxKind{txmgr.TxOpen, txmgr.TxClose, txmgr.TxAuthorization, txmgr.TxSweep}).Draw(r, "kind")
					again = sendFor(t, s, kind, n, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 6).Draw(r, "merchants")...)
				}
				if rapid.Bool().Draw(r, "replaced") {
					rowtest.Must(t, txmgr.AddAttempt(t.Context(), s, rowtest.WriterLease, id, 2, rowtest.Attempt(id, 2), 9))
				}
				cost := ledger.TxCost{Gwei: rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, math.MaxInt64)).Draw(r, "cost"), At: rowtest.AtMS(100*round + rapid.Int64Range(0, 2).Draw(r, "at"))}
				status := rapid.SampledFrom([]txmgr.TxStatus{txmgr.TxMined, txmgr.TxFailed, txmgr.TxSent}).Draw(r, "status")
				rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, id, statusBefore(status), &cost))
				if costs[id] = cost.Gwei; status == txmgr.TxSent { // a reorg: the cost stays
					rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, id, status, nil))
				}
				if status != txmgr.TxFailed {
					again = nil
				} else if rapid.Bool().Draw(r, "dropped by a reorg") {
					rowtest.Must(t, txmgr.SetTxStatus(t.Context(), s, rowtest.WriterLease, id, status, nil))
					delete(costs, id)
				}
			}
			wantShares(t, s, report.ReportFilter{From: rowtest.AtMS(100 * round), To: rowtest.AtMS(100*round + 3), Limit: rapid.IntRange(1, 4).Draw(r, "limit")}, costs)
		})
	})
}

// statusBefore returns the status that a transaction has before it reaches another.
func statusBefore(reached txmgr.TxStatus) txmgr.TxStatus {
	if reached == txmgr.TxSent {
		return txmgr.TxMined
	}
	return reached
}

// wantShares fails the test unless the shares of the filter add up to the costs, by transaction.
func wantShares(t *testing.T, s *db.DB, f report.ReportFilter, costs map[string]int64) {
	t.Helper()
	all := allShares(t, s, f)
	sums := make(map[string]int64)
	for _, share := range all {
		sums[share.TxID] += share.Cost.Gwei
		if share.MerchantID == "" || share.Items == 0 || share.Cost.Gwei < 0 {
			t.Errorf("a share is %+v", share)
		}
	}
	expect.NoDiff(t, cmp.Diff(costs, sums), "shares add up to")
	for _, merchant := range []string{"a", "b", "c"} {
		f.MerchantID = merchant
		want := slices.DeleteFunc(slices.Clone(all), func(s txmgr.TxShare) bool { return s.MerchantID != merchant })
		if diff := cmp.Diff(want, allShares(t, s, f), cmpopts.EquateEmpty(), anyMerchant); diff != "" {
			t.Errorf("of %s (-all +own):\n%s", merchant, diff)
		}
	}
}

// allShares reads all pages of shares.
func allShares(t *testing.T, s *db.DB, f report.ReportFilter) (all []txmgr.TxShare) {
	t.Helper()
	for {
		page, err := report.NewReader(s).TxShares(t.Context(), f)
		rowtest.Must(t, err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		last := page[len(page)-1]
		f.After, f.AfterID = last.Cost.At, last.TxID
	}
}

// TestShare divides costs: the parts add up, and differ from the exact ones by less than 1.
func TestShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		cost := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64)).Draw(r, "cost")
		items := rapid.SliceOfN(rapid.Int64Range(1, 200), 1, 20).Draw(r, "items")
		var before, total, sum int64
		for _, n := range items {
			total += n
		}
		for _, n := range items {
			part := txmgr.TxMerchant{Items: n, Before: before, Total: total}.Share(cost)
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(cost), big.NewInt(n)), big.NewInt(total))
			if off := exact.Sub(exact, new(big.Rat).SetInt64(part)); off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
				r.Errorf("%d of %d items bear %d of %d", n, total, part, cost)
			}
			before, sum = before+n, sum+part
		}
		if sum != cost {
			r.Errorf("the parts of %d add up to %d", cost, sum)
		}
	})
	if got := (txmgr.TxMerchant{}).Share(5); got != 5 {
		t.Errorf("without recorded items: %d", got)
	}
}
