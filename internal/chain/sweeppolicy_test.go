package chain

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
)

func TestLeastSweep(t *testing.T) {
	usdc, coarse := Token{Decimals: 6}, Token{Decimals: 0}
	for name, test := range map[string]struct {
		policy SweepPolicy
		token  Token
		cost   int64 // in wei
		want   string
	}{
		"no bound":               {SweepPolicy{When: SweepAtOnce}, usdc, 1 << 40, "0"},
		"an amount":              {SweepPolicy{When: SweepAbove, Amount: 12_500_000_000}, usdc, 1 << 40, "12500000"},
		"a part of a minor unit": {SweepPolicy{When: SweepAbove, Amount: 1_500_000_000}, coarse, 0, "2"},
		// 90,000 gas at 1 gwei and 2,500 units are 0.225 units, a percent of 22.5.
		"a percent":               {SweepPolicy{MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 90_000 * gwei, "22500000"},
		"free gas":                {SweepPolicy{MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 0, "0"},
		"the larger of both":      {SweepPolicy{When: SweepAbove, Amount: 50 * billion, MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 90_000 * gwei, "50000000"},
		"the larger of both, too": {SweepPolicy{When: SweepAbove, Amount: billion, MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 90_000 * gwei, "22500000"},
		"rounded up":              {SweepPolicy{MaxCost: SweepCost{Percent: 100 * billion, CoinPrice: billion}}, usdc, 1, "1"},
	} {
		least, ok := test.policy.Least(test.token, big.NewInt(test.cost))
		if !ok || least.String() != test.want {
			t.Errorf("%s: %s, %t; want %s", name, least, ok, test.want)
		}
	}
	costly := SweepPolicy{MaxCost: SweepCost{Percent: 1, CoinPrice: math.MaxUint64}}
	if least, ok := costly.Least(Token{Decimals: 36}, new(big.Int).Lsh(big.NewInt(1), 200)); ok {
		t.Errorf("an amount of %s would suffice", least)
	}
}

func TestBoundaryOfADay(t *testing.T) {
	p := SweepPolicy{When: SweepDaily, At: 3 * time.Hour}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		expect.OK(t, err)
		return parsed
	}
	for now, want := range map[string]string{
		"2026-11-22T03:00:00Z":      "2026-11-22T03:00:00Z",
		"2026-11-22T02:59:59Z":      "2026-11-21T03:00:00Z",
		"2026-11-22T23:59:59Z":      "2026-11-22T03:00:00Z",
		"2026-11-22T01:30:00-03:00": "2026-11-22T03:00:00Z",
	} {
		if got := p.Boundary(at(now)); !got.Equal(at(want)) {
			t.Errorf("at %s the day began at %s, want %s", now, got, want)
		}
	}
}
