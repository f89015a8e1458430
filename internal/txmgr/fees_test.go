package txmgr

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

func anyWei() *rapid.Generator[*big.Int] {
	return rapid.Custom(func(t *rapid.T) *big.Int { return big.NewInt(rapid.Int64Min(0).Draw(t, "wei")) })
}

func TestMarketFeesKeepWithinTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, paid, most := anyWei().Draw(t, "base"), anyWei().Draw(t, "paid"), anyWei().Draw(t, "most")
		floor, ceiling := anyWei().Draw(t, "floor"), anyWei().Draw(t, "ceiling")
		f, err := marketFees(base, paid, chain.SpendLimits{MaxFeeWei: most.Uint64(), MinTipWei: floor.Uint64(), MaxTipWei: ceiling.Uint64()})
		if base.Cmp(most) > 0 {
			if err == nil {
				t.Fatal("a base fee above the cap was accepted")
			}
			return
		}
		expect.OK(t, err)
		tip := least(greatest(greatest(paid, floor), wei(poolTipWei)), ceiling)
		if f.cap.Cmp(most) > 0 || f.tip.Cmp(ceiling) > 0 || f.tip.Cmp(f.cap) > 0 || f.cap.Cmp(base) < 0 {
			t.Fatalf("fees are %s and %s", f.cap, f.tip)
		}
		ideal := new(big.Int).Add(new(big.Int).Lsh(base, 1), tip)
		if ideal.Cmp(most) <= 0 && (f.cap.Cmp(ideal) != 0 || f.tip.Cmp(tip) != 0) {
			t.Fatalf("fees are %s and %s, want %s and %s", f.cap, f.tip, ideal, tip)
		}
	})
}

func TestRaisedFeesReplaceEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A transaction's tip is never above its cap.
		old := fees{cap: anyWei().Draw(t, "cap"), tip: anyWei().Draw(t, "tip")}
		old.tip = least(old.tip, old.cap)
		market := fees{cap: anyWei().Draw(t, "market cap"), tip: anyWei().Draw(t, "market tip")}
		limit := fees{cap: anyWei().Draw(t, "most"), tip: anyWei().Draw(t, "most tip")}
		f, ok := bump(old, market, limit)
		if !ok {
			if f != old || minReplacement(old.cap).Cmp(limit.cap) <= 0 && minReplacement(old.tip).Cmp(limit.tip) <= 0 {
				t.Fatalf("fees were not raised from %v within %v", old, limit)
			}
			return
		}
		if f.cap.Cmp(limit.cap) > 0 || f.tip.Cmp(limit.tip) > 0 || f.tip.Cmp(f.cap) > 0 {
			t.Fatalf("fees are %s and %s, want at most %v", f.cap, f.tip, limit)
		}
		for _, pair := range [][2]*big.Int{{old.cap, f.cap}, {old.tip, f.tip}} {
			was, is := pair[0], pair[1]
			eighths := new(big.Int).Mul(was, big.NewInt(9))
			if is.Cmp(was) <= 0 || new(big.Int).Lsh(is, 3).Cmp(eighths) < 0 {
				t.Fatalf("a fee rose from %s to %s, want strictly and by an eighth", was, is)
			}
		}
	})
}

func TestReplacing(t *testing.T) {
	for old, want := range map[int64]int64{0: 1, 1: 2, 8: 9, 9: 11, 16: 18, 1_000_000_000: 1_125_000_000} {
		if got := minReplacement(big.NewInt(old)); got.Int64() != want {
			t.Errorf("replacing(%d) is %s, want %d", old, got, want)
		}
	}
}
