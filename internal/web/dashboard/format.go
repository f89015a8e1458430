package dashboard

import (
	"html/template"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// short returns a hash, an address or an id with its middle left out.
func short(text string) string {
	const head, tail = 8, 6
	if len(text) <= head+tail+3 {
		return text
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

// money returns an element with an amount of minor units in units of its token; see major.
func (d *Dashboard) money(minor, currency, chainKey string) template.HTML {
	token, ok := d.chains[chainKey].TokenNamed(currency)
	if !ok {
		return major(minor, nil, currency)
	}
	return major(minor, &token.Decimals, currency)
}

// major returns an element with an amount or a sum of minor units in units of its currency,
// such as 12.50 USDC, which the script writes as the reader's language does. Without the
// decimals it shows the minor units.
func major(minor string, decimals *int, currency string) template.HTML {
	if decimals == nil || *decimals < 0 || integer(minor).String() != minor {
		return template.HTML(template.HTMLEscapeString(minor + " " + currency)) //nolint:gosec // escaped
	}
	amount := invoice.MajorSum(minor, *decimals)
	return template.HTML(`<span class="money"><data value="` + amount + `">` + amount + `</data> ` + template.HTMLEscapeString(currency) + `</span>`) //nolint:gosec // digits, and escaped
}
