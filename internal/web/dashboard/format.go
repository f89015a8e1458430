package dashboard

import (
	"html/template"
	"math"
	"math/big"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// short returns a hash or an address with its middle left out. Of an id it returns the beginning, because ids of objects
// that were made at the same time begin alike. The search finds both.
func short(text string) string {
	const head, tail, idHead = 8, 6, 16
	if len(text) <= head+tail+3 {
		return text
	}
	if strings.Contains(text, "_") {
		return text[:idHead] + "…"
	}
	return text[:head] + "…" + text[len(text)-tail:]
}

// durationUnits are the units of durations, the largest first, with the ids of their texts.
var durationUnits = []struct {
	seconds int64
	text    string
}{{24 * 60 * 60, "unit.day"}, {60 * 60, "unit.hour"}, {60, "unit.minute"}, {1, "unit.second"}}

// duration returns a number of seconds in the largest whole unit, such as 3 h.
func duration(text *locale.Text, seconds int64) string {
	return durationParts(text, seconds)[0]
}

// exactDuration returns a number of seconds in all units that it has, such as 1 h, 30 min.
func exactDuration(text *locale.Text, seconds int64) string {
	return strings.Join(durationParts(text, seconds), ", ")
}

// durationParts returns a number of seconds in each unit that it has.
func durationParts(text *locale.Text, seconds int64) []string {
	var parts []string
	for _, unit := range durationUnits {
		if n := seconds / unit.seconds; n > 0 || unit.seconds == 1 && len(parts) == 0 {
			parts = append(parts, text.T(unit.text, locale.Values{"N": n}))
		}
		seconds %= unit.seconds
	}
	return parts
}

// Network returns the name of a chain that people read. It is for templates, too.
func (v *visit) Network(chainKey string) string { return chain.NameIn(v.chains, chainKey) }

// major returns an amount of minor units of a token in its units, as the person's language writes it.
func (v *visit) major(minor string) string {
	return v.text.Number(invoice.MajorSum(minor, chain.TokenDecimals))
}

// money returns an element with an amount of minor units in units of its currency, such as 12.50 USDC, as
// the person's language writes it.
func (v *visit) money(minor, currency string) template.HTML {
	return v.rounded(minor, chain.TokenDecimals, math.MaxInt, currency)
}

// total is money for a sum, which it rounds to cents; the exact amount is its title.
func (v *visit) total(minor, currency string) template.HTML {
	const cents = 2
	return v.rounded(minor, chain.TokenDecimals, cents, currency)
}

// coins is money for an amount of a network's coin in minor units, which are wei with 18 decimals. An amount
// below a thousandth of the coin is in gwei.
func (v *visit) coins(minor string, decimals int, chainKey string) template.HTML {
	const gwei, gweiDigits, coinDigits = 9, 2, 6
	if n := integer(minor); n.Sign() != 0 && n.CmpAbs(power(decimals-3)) < 0 {
		return v.rounded(minor, decimals-gwei, gweiDigits, "gwei")
	}
	return v.rounded(minor, decimals, coinDigits, v.chains[chainKey].Coin().Symbol)
}

// CoinsOfGwei is coins for an amount of gwei. It is for templates.
func (v *visit) CoinsOfGwei(gwei, chainKey string) template.HTML {
	return v.coins(gwei, gweiDecimals, chainKey)
}

// Explorer returns the address of a transaction in the block explorer of its chain, or "". It is for templates.
func (v *visit) Explorer(chainKey, tx string) string {
	hash, err := invoice.ParseHash(tx)
	if err != nil {
		return ""
	}
	return v.chains[chainKey].TransactionURL(hash)
}

// rounded is money with at most so many digits after the point. If they hide a part of the amount, the
// exact one is its title. They never hide all of it.
func (v *visit) rounded(minor string, decimals, digits int, unit string) template.HTML {
	if integer(minor).String() != minor {
		return template.HTML(template.HTMLEscapeString(minor + " " + unit)) //nolint:gosec // escaped
	}
	plain, title := invoice.MajorSum(minor, decimals), ""
	shown := v.text.Number(plain)
	if n, hidden := cut(integer(minor), decimals-digits); hidden {
		shown, title = v.text.Number(invoice.MajorSum(n.String(), digits)), ` title="`+shown+`"`
	}
	return template.HTML(`<span class="money"><data value="` + plain + `"` + title + `>` + shown + `</data> ` + template.HTMLEscapeString(unit) + `</span>`) //nolint:gosec // digits, and escaped
}

// cut returns a number without its last digits, rounded half away from zero, and whether that hides a part
// of it. A number of which nothing would be left is returned unchanged, with false.
func cut(n *big.Int, digits int) (rounded *big.Int, hidden bool) {
	if digits <= 0 {
		return n, false
	}
	unit := power(digits)
	half := new(big.Int).Rsh(unit, 1)
	if n.Sign() < 0 {
		half.Neg(half)
	}
	rounded = half.Quo(half.Add(half, n), unit)
	if rounded.Sign() == 0 || new(big.Int).Rem(n, unit).Sign() == 0 {
		return n, false
	}
	return rounded, true
}

// power returns 10 to the power of n.
func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
