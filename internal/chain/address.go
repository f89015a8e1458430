package chain

import (
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
)

// Checksum writes an address in the mixed-case form of ERC-55, the form in which addresses leave the service.
func Checksum(a invoice.Address) string { return common.Address(a).Hex() }

// ParseAddress parses 0x and 40 hex digits. If all letters are lower-case or all are upper-case there is no checksum;
// in mixed case the checksum of ERC-55 must match, so that a mistyped address is not paid.
func ParseAddress(s string) (invoice.Address, error) {
	a, err := invoice.ParseAddress(s)
	if err != nil {
		return invoice.Address{}, err
	}
	digits := s[2:]
	if digits == strings.ToLower(digits) || digits == strings.ToUpper(digits) {
		return a, nil
	}
	if want := Checksum(a); s != want {
		return invoice.Address{}, fmt.Errorf("has a wrong ERC-55 checksum; if the digits are right it is written %s", want)
	}
	return a, nil
}

// MustAddress is ParseAddress for addresses in the source. It panics if s is not an address.
func MustAddress(s string) invoice.Address {
	a, err := ParseAddress(s)
	if err != nil {
		panic(fmt.Sprintf("chain: address %q %v", s, err))
	}
	return a
}
