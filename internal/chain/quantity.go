package chain

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Quantity is a number in JSON-RPC's notation: 0x and hexadecimal digits. Leading zeros are accepted, which JSON-RPC
// forbids and some nodes write.
type Quantity struct {
	N            uint64
	leadingZeros bool
}

// BigQuantity is a Quantity of up to 256 bits; nil if it is missing. It may be negative.
type BigQuantity struct {
	N            *big.Int
	leadingZeros bool
}

// maxQuantity is the length of the longest quantity, in digits with leading zeros. maxBits is the length of the largest
// number, a word of the EVM.
const maxQuantity, maxBits = 256, 256

var errQuantity = errors.New("is no quantity: want a string of 0x and hexadecimal digits")

// HasLeadingZeros reports whether the number had leading zeros.
func (q *Quantity) HasLeadingZeros() bool { return q.leadingZeros }

// HasLeadingZeros reports whether the number had leading zeros.
func (q *BigQuantity) HasLeadingZeros() bool { return q.leadingZeros }

// UnmarshalJSON parses a quantity. null leaves q unchanged.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	digits, leadingZeros, err := quantityDigits(data)
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return errQuantity
	}
	*q = Quantity{n, leadingZeros}
	return nil
}

// UnmarshalJSON parses a quantity. null leaves q unchanged.
func (q *BigQuantity) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	unsigned, negative := strings.CutPrefix(string(data), `"-`)
	if negative {
		unsigned = `"` + unsigned
	}
	digits, leadingZeros, err := quantityDigits([]byte(unsigned))
	if err != nil {
		return err
	}
	n, ok := new(big.Int).SetString(digits, 16)
	if !ok || n.BitLen() > maxBits {
		return errQuantity
	}
	if negative {
		n.Neg(n)
	}
	*q = BigQuantity{n, leadingZeros}
	return nil
}

// quantityDigits returns the digits of a quantity in JSON without leading zeros.
func quantityDigits(data []byte) (digits string, leadingZeros bool, err error) {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return "", false, errQuantity
	}
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || digits == "" || len(digits) > maxQuantity || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return "", false, errQuantity
	}
	short := strings.TrimLeft(digits, "0")
	if short == "" {
		short = "0"
	}
	return short, len(short) < len(digits), nil
}
