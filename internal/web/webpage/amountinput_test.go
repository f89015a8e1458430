package webpage

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed, language, want string
		err                   error
	}{
		{"5", "en", "5000000", nil},
		{" 4.90 ", "en", "4900000", nil},
		{"4,90", "en", "4900000", nil},
		{"4,90", "de", "4900000", nil},
		{"4.90", "de", "4900000", nil},
		{"0.000001", "en", "1", nil},
		{".5", "en", "500000", nil},
		{",5", "fr", "500000", nil},
		{"1,234.5", "en", "1234500000", nil},
		{"1.234,5", "en", "1234500000", nil},
		{"1.234.567", "de", "1234567000000", nil},
		{"1 234,50", "fr", "1234500000", nil},
		{"1\u202f234,50", "fr", "1234500000", nil},
		{"1’234.50", "de", "1234500000", nil},
		{"1.234", "en", "1234000", nil}, // decimals: that is how English writes them
		{"1,234", "de", "1234000", nil},
		{"0,123", "en", "123000", nil},
		{"1234,567", "en", "1234567000", nil},
		{"٤٫٩٠", "ar", "4900000", nil},
		{"٤٬٠٠٠٫٥", "ar", "4000500000", nil},
		{"４．９", "ja", "4900000", nil},
		{"0", "en", "0", nil},
		{"1,234", "en", "", ErrAmbiguous},
		{"1.234", "de", "", ErrAmbiguous},
		{"12,345", "ja", "", ErrAmbiguous},
		{"0.0000001", "en", "", invoice.ErrTooPrecise},
		{"", "en", "", ErrSyntax},
		{".", "en", "", ErrSyntax},
		{"5.", "en", "", ErrSyntax},
		{"-5", "en", "", ErrSyntax},
		{"+5", "en", "", ErrSyntax},
		{"1e3", "en", "", ErrSyntax},
		{"1e300", "en", "", ErrSyntax},
		{"05", "en", "", ErrSyntax},
		{"5 USDC", "en", "", ErrSyntax},
		{"1,23.4", "en", "", ErrSyntax},
		{"1.2.3", "en", "", ErrSyntax},
		{"1,234.567,8", "en", "", ErrSyntax},
		{"1 2", "en", "", ErrSyntax},
		{"999999999999999999999999999999999999999999999999999999999999999999999999999999", "en", "", invoice.ErrAmountOverflow},
	} {
		got, err := ParseAmount(c.typed, c.language, 6)
		if !errors.Is(err, c.err) || err == nil && got.String() != c.want {
			t.Errorf("%q in %s: %s, %v; want %s, %v", c.typed, c.language, got, err, c.want, c.err)
		}
	}
}

// TestTypedAmountOfShownAmount reads back every amount that the service shows.
func TestTypedAmountOfShownAmount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := invoice.NewAmount(rapid.Uint64().Draw(t, "amount"))
		got, err := ParseAmount(amount.Major(6), "en", 6)
		if err != nil || got != amount {
			t.Fatalf("%s: %s, %v", amount.Major(6), got, err)
		}
	})
}

func FuzzTypedAmount(f *testing.F) {
	f.Add("1,234.5", "en")
	f.Fuzz(func(_ *testing.T, typed, language string) {
		_, _ = ParseAmount(typed, language, 6) // it does not panic
	})
}
