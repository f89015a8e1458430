package config

import (
	"cmp"
	"math/big"
	"regexp"

	"github.com/quittance/quittance/internal/chain"
)

// writerFile are the spending limits of a chain's transaction manager.
type writerFile struct {
	MaxFee scalar `yaml:"maxFeeGwei"`
	MinTip scalar `yaml:"minTipGwei"`
	MaxTip scalar `yaml:"maxTipGwei"`
	PerTx  scalar `yaml:"perTransaction"`
	PerDay scalar `yaml:"perDay"`
}

// Limits of these settings.
const (
	// gweiDecimals are the decimals of a gwei, in wei, and of a coin, in gwei.
	gweiDecimals = 9
	// maxFeeWei bounds the fee per unit of gas: 1,000,000 gwei.
	maxFeeWei = 1_000_000_000_000_000
	// maxPerDayGwei bounds the daily budget: a million coins.
	maxPerDayGwei = 1_000_000_000_000_000
)

// spendLimits returns p with the limits in the file.
func (r *resolver) spendLimits(path string, f *writerFile, p chain.SpendLimits) chain.SpendLimits {
	p = p.OrDefault()
	for _, setting := range []struct {
		name string
		text *scalar
		most uint64
		to   *uint64
	}{
		{"maxFeeGwei", &f.MaxFee, maxFeeWei, &p.MaxFeeWei},
		{"minTipGwei", &f.MinTip, maxFeeWei, &p.MinTipWei},
		{"maxTipGwei", &f.MaxTip, maxFeeWei, &p.MaxTipWei},
		{"perTransaction", &f.PerTx, chain.MaxPerTxGwei, &p.PerTxGwei},
		{"perDay", &f.PerDay, maxPerDayGwei, &p.PerDayGwei},
	} {
		if *setting.text = cmp.Or(*setting.text, inBillions(*setting.to)); *setting.text != "" {
			*setting.to = r.billionths(path+"."+setting.name, *setting.text, setting.most)
		}
	}
	if p.MinTipWei > p.MaxTipWei || p.MaxTipWei > p.MaxFeeWei {
		r.fail(path, "has minTipGwei, maxTipGwei and maxFeeGwei out of order; want each at most the next, the built-in ones included")
	}
	if p.PerTxGwei > p.PerDayGwei {
		r.fail(path, "allows one transaction more than a day; want perTransaction at most perDay")
	}
	return p
}

// decimal is a number with at most nine decimals and at least one digit before
// the point.
var decimal = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// billionths parses a decimal number above 0 and at most `most`, and returns it in
// billionths. It returns 0 on error.
func (r *resolver) billionths(path string, text scalar, most uint64) uint64 {
	limit := new(big.Rat).SetFrac(new(big.Int).SetUint64(most), big.NewInt(1_000_000_000))
	n, ok := new(big.Rat).SetString(string(text))
	if !decimal.MatchString(string(text)) || !ok || n.Sign() == 0 || n.Cmp(limit) > 0 {
		r.fail(path, "is %q; want a number above 0 with at most %d decimals, up to %s", text, gweiDecimals, limit.FloatString(1))
		return 0
	}
	return new(big.Int).Quo(new(big.Int).Mul(n.Num(), big.NewInt(1_000_000_000)), n.Denom()).Uint64()
}
