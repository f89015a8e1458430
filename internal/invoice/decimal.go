package invoice

import (
	"errors"
	"strings"
)

// ErrDecimalSyntax is returned by ParseDecimal for text that is not a plain
// decimal number.
var ErrDecimalSyntax = errors.New("must be a plain decimal number such as 12.34")

// ErrTooPrecise is returned by ParseDecimal for a number with more decimals
// than the currency has.
var ErrTooPrecise = errors.New("has more decimals than the currency")

// ParseDecimal converts a decimal number of major units ("4.90") into minor
// units exactly; the currency has the given number of decimals. Signs,
// exponents and separators are refused. Decimals beyond the currency's are
// refused even when they are zero: their writer means another unit.
func ParseDecimal(s string, decimals int) (Amount, error) {
	whole, frac, point := strings.Cut(s, ".")
	if whole == "" || (point && frac == "") || (len(whole) > 1 && whole[0] == '0') {
		return Amount{}, ErrDecimalSyntax
	}
	if strings.Trim(whole, "0123456789") != "" || strings.Trim(frac, "0123456789") != "" {
		return Amount{}, ErrDecimalSyntax
	}
	if len(frac) > decimals {
		return Amount{}, ErrTooPrecise
	}
	digits := strings.TrimLeft(whole+frac+strings.Repeat("0", decimals-len(frac)), "0")
	if digits == "" {
		return Amount{}, nil
	}
	return ParseAmount(digits)
}
