package client

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// maxDigits is the maximum number of digits of an amount, which is below 2^256.
const maxDigits = 78

// Errors of ParseAmount and FormatAmount. The text of an error contains the amount, too.
var (
	// ErrAmountSyntax is the error for a text that is not a plain decimal number, such as "12.34".
	ErrAmountSyntax = errors.New("an amount must be a plain decimal number, such as 12.34")
	// ErrAmountPrecision is the error for an amount with more decimals than the currency has.
	ErrAmountPrecision = errors.New("the amount has more decimals than the currency")
	// ErrAmountRange is the error for an amount that is not below 2^256 minor units.
	ErrAmountRange = errors.New("the amount is not below 2^256 minor units")
	// ErrMinorUnits is the error for a text that is not a number of minor units, such as "4900000".
	ErrMinorUnits = errors.New("an amount must be a whole number of minor units, such as 4900000")
	// ErrDecimals is the error for decimals that no currency has.
	ErrDecimals = fmt.Errorf("the decimals of a currency must be from 0 to %d", maxDigits-1)
)

// ParseAmount returns the minor units of an amount, in the form that calls use: for "4.90" with 6 decimals "4900000".
// Signs, exponents, separators and more decimals than the currency has are errors. It does not round.
func ParseAmount(text string, decimals int) (string, error) {
	if decimals < 0 || decimals >= maxDigits {
		return "", fmt.Errorf("client: %w; they are %d", ErrDecimals, decimals)
	}
	whole, fraction, point := strings.Cut(text, ".")
	switch {
	case !isDigits(whole) || whole[0] == '0' && whole != "0" || point && !isDigits(fraction):
		return "", fmt.Errorf("client: %w; it is %.100q", ErrAmountSyntax, text)
	case len(fraction) > decimals:
		return "", fmt.Errorf("client: %w, which has %d; it is %.100q", ErrAmountPrecision, decimals, text)
	}
	digits := strings.TrimLeft(whole+fraction+strings.Repeat("0", decimals-len(fraction)), "0")
	if digits == "" {
		return "0", nil
	}
	if len(digits) <= maxDigits {
		if units, ok := new(big.Int).SetString(digits, 10); ok && units.BitLen() <= 256 {
			return digits, nil
		}
	}
	return "", fmt.Errorf("client: %w; it is %.100q", ErrAmountRange, text)
}

// FormatAmount returns an amount of minor units as an exact decimal number: for "4900000" with 6 decimals "4.9", or
// "4.90" if minDecimals is 2. Sums may be negative.
func FormatAmount(amount string, decimals, minDecimals int) (string, error) {
	for _, n := range []int{decimals, minDecimals} {
		if n < 0 || n >= maxDigits {
			return "", fmt.Errorf("client: %w; they are %d", ErrDecimals, n)
		}
	}
	digits, negative := strings.CutPrefix(amount, "-")
	if !isDigits(digits) || len(digits) > maxDigits {
		return "", fmt.Errorf("client: %w; it is %.100q", ErrMinorUnits, amount)
	}
	digits = strings.TrimLeft(digits, "0")
	sign := ""
	if negative && digits != "" {
		sign = "-"
	}
	digits = strings.Repeat("0", max(decimals+1-len(digits), 0)) + digits
	whole, fraction := digits[:len(digits)-decimals], strings.TrimRight(digits[len(digits)-decimals:], "0")
	if least := min(minDecimals, decimals); len(fraction) < least {
		fraction += strings.Repeat("0", least-len(fraction))
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction, nil
}

// isDigits reports whether a text is a number of ASCII digits.
func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
