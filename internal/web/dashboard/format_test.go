package dashboard

import (
	"html/template"
	"testing"

	"github.com/quittance/quittance/internal/chain"
)

// TestAmounts writes amounts in the person's language. Sums are rounded to cents, and fees to a unit of their size, and
// have their exact amount as title.
func TestAmounts(t *testing.T) {
	t.Parallel()
	const decimals = 6
	in := func(language string) *visit {
		return &visit{text: texts().Named(language), chains: map[string]chain.Chain{"base": {Key: "base"}}}
	}
	element := func(value, title, shown string) template.HTML {
		if title != "" {
			title = ` title="` + title + `"`
		}
		return template.HTML(`<span class="money"><data value="` + value + `"` + title + `>` + shown + `</span>`)
	}
	places := decimals
	for what, c := range map[string]struct{ got, want template.HTML }{
		"exact":              {in("en").exact("11900519", &places, "USDC"), element("11.900519", "", "11.900519</data> USDC")},
		"exact, German":      {in("de").exact("11900519", &places, "USDC"), element("11.900519", "", "11,900519</data> USDC")},
		"total":              {in("de").total("1234567890519", &places, "USDC"), element("1234567.890519", "1.234.567,890519", "1.234.567,89</data> USDC")},
		"total, rounded up":  {in("en").total("11995000", &places, "USDC"), element("11.995", "11.995", "12.00</data> USDC")},
		"total, negative":    {in("en").total("-11995000", &places, "USDC"), element("-11.995", "-11.995", "-12.00</data> USDC")},
		"total of cents":     {in("en").total("11900000", &places, "USDC"), element("11.90", "", "11.90</data> USDC")},
		"total, very little": {in("en").total("519", &places, "USDC"), element("0.000519", "", "0.000519</data> USDC")},
		"total, nothing":     {in("en").total("0", &places, "USDC"), element("0.00", "", "0.00</data> USDC")},
		"unknown decimals":   {in("en").exact("11900519", nil, "<USDC>"), "11900519 &lt;USDC&gt;"},
		"fee in gwei":        {in("en").coins("123456789000000", 18, "base"), element("123456.789", "123,456.789", "123,456.79</data> gwei")},
		"fee of gwei":        {in("fr").coins("999999", 9, "base"), element("999999", "", in("fr").text.Number("999999")+"</data> gwei")},
		"fee in ether":       {in("en").coins("12345678901", 9, "base"), element("12.345678901", "12.345678901", "12.345679</data> ETH")},
		"no fee":             {in("en").coins("0", 18, "base"), element("0.00", "", "0.00</data> ETH")},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", what, c.got, c.want)
		}
	}
}

// TestShort leaves out the middle of hashes and the end of ids.
func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0x00000000000000000000000000000000000000a1": "0x000000…0000a1", "inv_06h0ebs5n1ta58e5ybdcx6k614": "inv_06h0ebs5n1ta…", "0x1234": "0x1234",
	} {
		if got := short(text); got != want {
			t.Errorf("%s is shortened to %s, want %s", text, got, want)
		}
	}
}
