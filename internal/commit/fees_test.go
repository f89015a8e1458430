package commit

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func wei() *rapid.Generator[*big.Int] {
	return rapid.Custom(func(t *rapid.T) *big.Int { return big.NewInt(rapid.Int64Min(0).Draw(t, "wei")) })
}

func TestMarketFeesKeepWithinTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, tip, most := wei().Draw(t, "base"), wei().Draw(t, "tip"), wei().Draw(t, "most")
		f, err := marketFees(base, tip, most)
		if base.Cmp(most) > 0 {
			if err == nil {
				t.Fatal("a base fee above the cap was accepted")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.cap.Cmp(most) > 0 || f.tip.Cmp(f.cap) > 0 || f.cap.Cmp(base) < 0 {
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
		old := fees{cap: wei().Draw(t, "cap"), tip: wei().Draw(t, "tip")}
		old.tip = least(old.tip, old.cap)
		market := fees{cap: wei().Draw(t, "market cap"), tip: wei().Draw(t, "market tip")}
		most := wei().Draw(t, "most")
		f, ok := raised(old, market, most)
		if !ok {
			if f != old || replacing(old.cap).Cmp(most) <= 0 {
				t.Fatalf("fees were not raised from %v within %s", old, most)
			}
			return
		}
		if f.cap.Cmp(most) > 0 || f.tip.Cmp(f.cap) > 0 {
			t.Fatalf("fees are %s and %s, want the cap at most %s", f.cap, f.tip, most)
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
		if got := replacing(big.NewInt(old)); got.Int64() != want {
			t.Errorf("replacing(%d) is %s, want %d", old, got, want)
		}
	}
}
