package invoice

import (
	"encoding/hex"
	"fmt"
)

// Address is an account or contract on an EVM chain.
type Address [20]byte

// Hash is 32 bytes that name a block, a transaction or a commitment.
type Hash [32]byte

// IsZero reports whether a is the zero address, which has no owner.
func (a Address) IsZero() bool { return a == Address{} }

// String writes a as 0x and 40 lower-case hex digits. For people and the
// interface, chain.Checksum writes the mixed-case form of ERC-55.
func (a Address) String() string { return "0x" + hex.EncodeToString(a[:]) }

// IsZero reports whether h is unset.
func (h Hash) IsZero() bool { return h == Hash{} }

// String writes h as 0x and 64 lower-case hex digits.
func (h Hash) String() string { return "0x" + hex.EncodeToString(h[:]) }

// ParseAddress reads what Address.String writes, in either case of letters.
// It does not judge a checksum.
func ParseAddress(s string) (Address, error) {
	var a Address
	err := parseHex(a[:], s)
	return a, err
}

// ParseHash reads what Hash.String writes, in either case of letters.
func ParseHash(s string) (Hash, error) {
	var h Hash
	err := parseHex(h[:], s)
	return h, err
}

func parseHex(dst []byte, s string) error {
	if len(s) != 2+2*len(dst) || s[0] != '0' || s[1] != 'x' {
		return fmt.Errorf("must be 0x and %d hex digits", 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(s[2:])); err != nil {
		return fmt.Errorf("must be 0x and %d hex digits", 2*len(dst))
	}
	return nil
}
