package webpage

import (
	"errors"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// MaxLength bounds an amount that a person types, in bytes.
const MaxLength = 100

// Errors of Parse.
var (
	ErrSyntax    = errors.New("not an amount")
	ErrAmbiguous = errors.New("the separator may be one of thousands or of decimals")
)

// commaLanguages are the languages of the page that write a comma before the decimals.
var commaLanguages = map[string]bool{"es": true, "fr": true, "de": true, "pt": true, "it": true, "tr": true}

// ParseAmount converts an amount that a person types, in units of a currency, into minor units exactly. Digits may be
// of any script. The last separator precedes the decimals if it differs from the others, occurs once, and does not look
// like a separator of thousands in the language: in English 4.90, 4,90, 1,234.5 and 1.234,5 are amounts with decimals,
// and 1,234 is ambiguous. Errors are ErrSyntax, ErrAmbiguous, invoice.ErrTooPrecise and invoice.ErrAmountOverflow.
func ParseAmount(typed, language string, decimals int) (invoice.Amount, error) {
	if len(typed) > MaxLength {
		return invoice.Amount{}, ErrSyntax
	}
	plain, err := plainDecimal(typed, language)
	if err != nil {
		return invoice.Amount{}, err
	}
	amount, err := invoice.ParseDecimal(plain, decimals)
	if errors.Is(err, invoice.ErrDecimalSyntax) {
		err = ErrSyntax
	}
	return amount, err
}

// plainDecimal returns a typed number in the notation of invoice.ParseDecimal.
func plainDecimal(typed, language string) (string, error) {
	text := strings.Map(normalDigit, strings.TrimSpace(typed))
	at := strings.LastIndexAny(text, ".,")
	if at < 0 {
		return ungrouped(text)
	}
	whole, frac, separator := text[:at], text[at+1:], text[at:at+1]
	switch {
	case strings.Count(text, separator) > 1: // as in 1,234,567
		return ungrouped(text)
	case strings.ContainsAny(whole, ".,'"): // as in 1.234,5 or 1 234,5
	case isGroup(whole, frac) && separator == groupSeparator(language):
		return "", ErrAmbiguous
	}
	whole, err := ungrouped(whole)
	if err != nil || frac == "" || strings.Trim(frac, "0123456789") != "" {
		return "", ErrSyntax
	}
	if whole == "" {
		whole = "0"
	}
	return whole + "." + frac, nil
}

// groupSeparator returns the separator of thousands that looks like one of decimals.
func groupSeparator(language string) string {
	if commaLanguages[language] {
		return "."
	}
	return ","
}

// isGroup reports whether the digits around a separator may be thousands, as in 12,345.
func isGroup(whole, frac string) bool {
	return len(frac) == 3 && len(whole) >= 1 && len(whole) <= 3 && whole[0] != '0'
}

// ungrouped removes separators of thousands: all the same, and each followed by three digits.
func ungrouped(text string) (string, error) {
	at := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
	if at < 0 {
		return text, nil
	}
	if !strings.Contains(".,'", text[at:at+1]) {
		return "", ErrSyntax
	}
	parts := strings.Split(text, text[at:at+1])
	for i, part := range parts {
		if strings.Trim(part, "0123456789") != "" || i > 0 && len(part) != 3 || i == 0 && (part == "" || len(part) > 3) {
			return "", ErrSyntax
		}
	}
	return strings.Join(parts, ""), nil
}

// zeros are the digits 0 of the scripts in which people write amounts.
var zeros = []rune{'\u0660', '\u06f0', '\uff10'}

// normalDigit returns the ASCII form of a digit or separator. Separators that are certainly for
// thousands become an apostrophe.
func normalDigit(c rune) rune {
	for _, zero := range zeros {
		if c >= zero && c <= zero+9 {
			return '0' + c - zero
		}
	}
	switch c {
	case '\u066b', '\uff0e', '\u3002': // Arabic decimal separator, full-width stops
		return '.'
	case '\uff0c', '\u060c':
		return ','
	case ' ', '\u00a0', '\u202f', '\u2009', '\'', '\u2019', '\u066c':
		return '\''
	case '\u200e', '\u200f', '\u061c': // marks of the writing direction
		return -1
	}
	return c
}
