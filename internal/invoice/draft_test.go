package invoice_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quittance/quittance/internal/invoice"
)

const draftNow = 1_700_000_000

// lines returns n line items that add up to the sum.
func lines(n int, sum uint64) []invoice.LineItem {
	items := make([]invoice.LineItem, n)
	for i := range items {
		items[i] = invoice.LineItem{Label: "item", Amount: invoice.NewAmount(1)}
	}
	items[n-1].Amount = invoice.NewAmount(sum - uint64(n) + 1)
	return items
}

func TestDraftCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*invoice.Draft)
		field  string // the refused field; empty if the draft is accepted
	}{
		{"plain", func(*invoice.Draft) {}, ""},
		{"merchant of 1", func(d *invoice.Draft) { d.MerchantID = "m" }, ""},
		{"merchant of 64", func(d *invoice.Draft) { d.MerchantID = strings.Repeat("m", 64) }, ""},
		{"merchant of 65", func(d *invoice.Draft) { d.MerchantID = strings.Repeat("m", 65) }, "merchantId"},
		{"no merchant", func(d *invoice.Draft) { d.MerchantID = "" }, "merchantId"},
		{"all characters of a merchant", func(d *invoice.Draft) { d.MerchantID = "AZaz09_.-" }, ""},
		{"blank in merchant", func(d *invoice.Draft) { d.MerchantID = "a b" }, "merchantId"},
		{"slash in merchant", func(d *invoice.Draft) { d.MerchantID = "a/b" }, "merchantId"},
		{"umlaut in merchant", func(d *invoice.Draft) { d.MerchantID = "ä" }, "merchantId"},
		{"zero byte in merchant", func(d *invoice.Draft) { d.MerchantID = "a\x00" }, "merchantId"},
		{"neighbours of the ranges", func(d *invoice.Draft) { d.MerchantID = "@" }, "merchantId"},
		{"zero address", func(d *invoice.Draft) { d.Merchant = invoice.Address{} }, "merchantAddress"},
		{"amount 0", func(d *invoice.Draft) { d.Amount = invoice.Amount{} }, "amount"},
		{"amount 1", func(d *invoice.Draft) { d.Amount = invoice.NewAmount(1) }, ""},
		{"largest amount", func(d *invoice.Draft) { d.Amount = invoice.MaxAmount }, ""},
		{"expires in the past", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(draftNow - 1) }, "expiresAt"},
		{"expires now", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(draftNow) }, "expiresAt"},
		{"expires in a second", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(draftNow + 1) }, ""},
		{"expires in 366 days", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(draftNow + 366*86400) }, ""},
		{"expires a second later", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(draftNow + 366*86400 + 1) }, "expiresAt"},
		{"expires at 0", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(0) }, "expiresAt"},
		{"expires at the end of time", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(math.MaxInt64) }, "expiresAt"},
		{"expires before time", func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(math.MinInt64) }, "expiresAt"},
		{"empty line items", func(d *invoice.Draft) { d.LineItems = []invoice.LineItem{} }, ""},
		{"one line item", func(d *invoice.Draft) { d.LineItems = lines(1, 1000) }, ""},
		{"100 line items", func(d *invoice.Draft) { d.LineItems = lines(100, 1000) }, ""},
		{"101 line items", func(d *invoice.Draft) { d.LineItems = lines(101, 1000) }, "lineItems"},
		{"sum one short", func(d *invoice.Draft) { d.LineItems = lines(3, 999) }, "lineItems"},
		{"sum one over", func(d *invoice.Draft) { d.LineItems = lines(3, 1001) }, "lineItems"},
		{"empty label", func(d *invoice.Draft) { d.LineItems = lines(2, 1000); d.LineItems[1].Label = "" }, "lineItems[1].label"},
		{"label of 200", func(d *invoice.Draft) { d.LineItems = lines(1, 1000); d.LineItems[0].Label = strings.Repeat("é", 200) }, ""},
		{"label of 201", func(d *invoice.Draft) { d.LineItems = lines(1, 1000); d.LineItems[0].Label = strings.Repeat("x", 201) }, "lineItems[0].label"},
		{"line of nothing", func(d *invoice.Draft) {
			d.LineItems = append(lines(2, 1000), invoice.LineItem{Label: "free"})
		}, "lineItems[2].amount"},
		{"sum wraps around to the amount", func(d *invoice.Draft) {
			d.LineItems = []invoice.LineItem{{Label: "a", Amount: invoice.MaxAmount}, {Label: "b", Amount: invoice.NewAmount(1001)}}
		}, "lineItems"},
		{"largest sum", func(d *invoice.Draft) {
			d.Amount = invoice.MaxAmount
			d.LineItems = []invoice.LineItem{
				{Label: "a", Amount: invoice.MaxAmount.Minus(invoice.NewAmount(1))}, {Label: "b", Amount: invoice.NewAmount(1)},
			}
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := invoice.Draft{
				MerchantID: "acme", Merchant: invoice.Address{1}, Amount: invoice.NewAmount(1000),
				Currency: "USDC", ChainKey: "base", ExpiresAt: invoice.Unix(draftNow + 3600),
			}
			test.change(&d)
			err := d.Check(invoice.Unix(draftNow))
			if test.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var wrong *invoice.FieldError
			if !errors.As(err, &wrong) || wrong.Field != test.field {
				t.Fatalf("gives %v, want a FieldError about %s", err, test.field)
			}
			if wrong.Detail == "" || !strings.HasPrefix(wrong.Error(), test.field+" ") {
				t.Errorf("the error reads %q", wrong)
			}
		})
	}
}

// TestLabelsAreVisible expects labels without a visible character to be refused.
func TestLabelsAreVisible(t *testing.T) {
	t.Parallel()
	for label, seen := range map[string]bool{
		"Tea": true, " a ": true, "☕": true, "ש": true, "1": true, "-": true, "\u0301": true, "\u200b.": true,
		" ": false, "   ": false, "\u00a0": false, "\u00ad": false, "\u200b": false, "\u200c\u200d": false, "\u2060": false, "\ufeff": false,
		"\u3000": false, "\u115f": false, "\u3164": false, "\uffa0": false, "\u2800": false, "\ufe0f": false, "\u034f": false, "\u200e \u200f": false,
		"\U000e0041": false, "\u2028": false, "\ue000": false,
	} {
		err := invoice.CheckLabel("label", label)
		var wrong *invoice.FieldError
		if seen != (err == nil) || err != nil && (!errors.As(err, &wrong) || wrong.Field != "label") {
			t.Errorf("label %+q: %v, want accepted %t", label, err, seen)
		}
	}
}

func TestDraftCheckLabelCharacters(t *testing.T) {
	t.Parallel()
	d := invoice.Draft{
		MerchantID: "acme", Merchant: invoice.Address{1}, Amount: invoice.NewAmount(1000), Currency: "USDC", ChainKey: "base", ExpiresAt: invoice.Unix(draftNow + 3600),
	}
	for c, allowed := range map[rune]bool{
		' ': true, '~': true, '\u00a0': true, '\u00ad': true, '☕': true, '\u061c': true, '\u200d': true, '\u200e': true, '\u200f': true,
		'\u2028': true, '\u2029': true, '\u202f': true, '\u2065': true, '\u206a': true, 'ש': true, utf8.MaxRune: true,
		0: false, '\t': false, '\n': false, '\r': false, 0x1b: false, 0x1f: false, 0x7f: false, 0x80: false, 0x85: false, 0x9f: false,
		'\u202a': false, '\u202b': false, '\u202c': false, '\u202d': false, '\u202e': false,
		'\u2066': false, '\u2067': false, '\u2068': false, '\u2069': false,
	} {
		for _, label := range []string{"tea" + string(c), string(c) + "tea", "te" + string(c) + "a"} {
			d.LineItems = lines(2, 1000)
			d.LineItems[1].Label = label
			err := d.Check(invoice.Unix(draftNow))
			var wrong *invoice.FieldError
			switch {
			case allowed && err != nil:
				t.Errorf("label %+q: refused: %v", label, err)
			case !allowed && (!errors.As(err, &wrong) || wrong.Field != "lineItems[1].label" || !strings.Contains(wrong.Detail, fmt.Sprintf("%U", c))):
				t.Errorf("label %+q: gives %v, want a FieldError that names %U", label, err, c)
			}
		}
	}
}
