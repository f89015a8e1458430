package invoice_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

func TestAddressAndHashText(t *testing.T) {
	t.Parallel()
	lower := "0x" + strings.Repeat("0123456789abcdef0123", 2)
	for name, test := range map[string]struct {
		text string
		ok   bool
	}{
		"lower case":         {lower, true},
		"upper case":         {"0x" + strings.ToUpper(lower[2:]), true},
		"mixed case":         {lower[:20] + strings.ToUpper(lower[20:]), true},
		"zero":               {"0x" + strings.Repeat("0", 40), true},
		"empty":              {"", false},
		"prefix alone":       {"0x", false},
		"no prefix":          {lower[2:], false},
		"capital prefix":     {"0X" + lower[2:], false},
		"another digit":      {"1x" + lower[2:], false},
		"a digit short":      {lower[:41], false},
		"a digit long":       {lower + "0", false},
		"not hex":            {lower[:41] + "g", false},
		"space for a digit":  {lower[:41] + " ", false},
		"two-byte character": {lower[:40] + "é", false},
	} {
		a, err := invoice.ParseAddress(test.text)
		if (err == nil) != test.ok {
			t.Errorf("%s: ParseAddress(%q) gives the error %v", name, test.text, err)
		}
		if test.ok && a.String() != strings.ToLower(test.text) {
			t.Errorf("%s: ParseAddress(%q) is written as %s", name, test.text, a)
		}
	}
	if _, err := invoice.ParseHash(lower); err == nil {
		t.Error("ParseHash takes an address")
	}
	if _, err := invoice.ParseAddress("0x" + strings.Repeat("0", 64)); err == nil {
		t.Error("ParseAddress takes a hash")
	}
	if !(invoice.Address{}).IsZero() || (invoice.Address{19: 1}).IsZero() {
		t.Error("Address.IsZero is wrong about the zero address or its neighbour")
	}
	if !(invoice.Hash{}).IsZero() || (invoice.Hash{31: 1}).IsZero() {
		t.Error("Hash.IsZero is wrong about the zero hash or its neighbour")
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("0x" + strings.Repeat("aB", 20))
	f.Add("0x")
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := invoice.ParseAddress(s); err == nil && a.String() != strings.ToLower(s) {
			t.Fatalf("ParseAddress(%q) is written as %s", s, a)
		}
	})
}
