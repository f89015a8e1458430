package invoice

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strings"
)

// Amount is a number of minor units (for USDC, millionths) between 0 and
// 2^256-1, the range of an ERC-20 balance. It is comparable, and its zero value
// is 0. Inside the program money is always an Amount, never a float or a string.
type Amount struct {
	limb [4]uint64 // least significant first
}

// MaxAmountDigits is the number of decimal digits of the largest Amount.
const MaxAmountDigits = 78

// MaxAmount is the largest Amount, 2^256-1.
var MaxAmount = Amount{limb: [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}}

// Errors of ParseAmount.
var (
	ErrAmountSyntax   = errors.New("must be an integer in minor units, written in digits without sign, leading zero or separator")
	ErrAmountOverflow = errors.New("must fit an unsigned 256-bit integer")
)

// NewAmount returns n minor units.
func NewAmount(n uint64) Amount { return Amount{limb: [4]uint64{n}} }

// AmountFromBytes reads a big-endian unsigned integer, such as an ABI word.
func AmountFromBytes(word [32]byte) Amount {
	var a Amount
	for i := range a.limb {
		a.limb[i] = binary.BigEndian.Uint64(word[24-8*i:])
	}
	return a
}

// ParseAmount reads the interface's notation of an amount: decimal digits, no
// sign, no leading zero ("0" itself is allowed). It returns ErrAmountSyntax or
// ErrAmountOverflow.
func ParseAmount(s string) (Amount, error) {
	if s == "" || (len(s) > 1 && s[0] == '0') {
		return Amount{}, ErrAmountSyntax
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return Amount{}, ErrAmountSyntax
		}
	}
	if len(s) > MaxAmountDigits {
		return Amount{}, ErrAmountOverflow
	}
	var a Amount
	for i := range len(s) {
		var ok bool
		if a, ok = a.mulAdd(10, uint64(s[i]-'0')); !ok {
			return Amount{}, ErrAmountOverflow
		}
	}
	return a, nil
}

// mulAdd returns a*m+add, and false when that does not fit.
func (a Amount) mulAdd(m, add uint64) (Amount, bool) {
	carry := add
	for i, l := range a.limb {
		hi, lo := bits.Mul64(l, m)
		var c uint64
		a.limb[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return a, carry == 0
}

// divide returns a divided by n, rounded down, and the remainder.
func (a Amount) divide(n uint64) (quotient Amount, rest uint64) {
	for i := len(a.limb) - 1; i >= 0; i-- {
		quotient.limb[i], rest = bits.Div64(rest, a.limb[i], n)
	}
	return quotient, rest
}

// Add returns a+b, and false when the sum does not fit.
func (a Amount) Add(b Amount) (Amount, bool) {
	var carry uint64
	for i := range a.limb {
		a.limb[i], carry = bits.Add64(a.limb[i], b.limb[i], carry)
	}
	return a, carry == 0
}

// Plus returns a+b, or MaxAmount if the sum does not fit. Sums of transfers use it: real balances cannot exceed
// MaxAmount, and a hostile token must not make a sum wrap around.
func (a Amount) Plus(b Amount) Amount {
	if sum, ok := a.Add(b); ok {
		return sum
	}
	return MaxAmount
}

// Minus returns a-b, or 0 when b is larger.
func (a Amount) Minus(b Amount) Amount {
	if a.Less(b) {
		return Amount{}
	}
	var borrow uint64
	for i := range a.limb {
		a.limb[i], borrow = bits.Sub64(a.limb[i], b.limb[i], borrow)
	}
	return a
}

// Cmp returns -1, 0 or +1 as a is less than, equal to or greater than b.
func (a Amount) Cmp(b Amount) int {
	for i := len(a.limb) - 1; i >= 0; i-- {
		switch {
		case a.limb[i] < b.limb[i]:
			return -1
		case a.limb[i] > b.limb[i]:
			return 1
		}
	}
	return 0
}

// Less reports a < b.
func (a Amount) Less(b Amount) bool { return a.Cmp(b) < 0 }

// IsZero reports whether a is 0.
func (a Amount) IsZero() bool { return a == Amount{} }

// Bytes returns a as a big-endian word, as the ABI encodes a uint256.
func (a Amount) Bytes() [32]byte {
	var word [32]byte
	for i, l := range a.limb {
		binary.BigEndian.PutUint64(word[24-8*i:], l)
	}
	return word
}

// String writes a in the interface's notation.
func (a Amount) String() string {
	const chunk = 1e19 // the largest power of ten in a uint64
	var buf [MaxAmountDigits]byte
	at := len(buf)
	for {
		var rem uint64
		for i := len(a.limb) - 1; i >= 0; i-- {
			a.limb[i], rem = bits.Div64(rem, a.limb[i], chunk)
		}
		for range 19 {
			if at == 0 || (rem == 0 && a.IsZero() && at < len(buf)) {
				return string(buf[at:])
			}
			at--
			buf[at] = byte('0' + rem%10)
			rem /= 10
		}
	}
}

// MarshalText implements encoding.TextMarshaler with String.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with ParseAmount.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAmount(string(text))
	return err
}

// Major writes a in major units with the currency's number of decimals, for
// people: 4900000 with 6 decimals is "4.90". At least two decimals are shown.
func (a Amount) Major(decimals int) string { return MajorSum(a.String(), decimals) }

// MajorSum writes a sum of amounts in major units, as Major does. sum is decimal digits with or without a minus sign.
func MajorSum(sum string, decimals int) string {
	s, negative := strings.CutPrefix(sum, "-")
	sign := ""
	if negative {
		sign = "-"
	}
	if len(s) <= decimals {
		s = strings.Repeat("0", decimals+1-len(s)) + s
	}
	whole, frac := s[:len(s)-decimals], s[len(s)-decimals:]
	for len(frac) > 2 && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	if frac == "" {
		return sign + whole
	}
	return sign + whole + "." + frac
}
