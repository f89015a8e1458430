package contracts

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Status is the status of an invoice in the registry.
type Status uint8

// The registry's states of an invoice. StatusPaid and StatusClosed are final.
const (
	StatusNone   Status = iota // unknown to the registry, and payable
	StatusOpen                 // recorded by the operator
	StatusPaid                 // paid through the registry
	StatusClosed               // ended by the operator
)

// String returns the state's name in lower case.
func (s Status) String() string {
	switch s {
	case StatusNone:
		return "none"
	case StatusOpen:
		return "open"
	case StatusPaid:
		return "paid"
	case StatusClosed:
		return "closed"
	}
	return "unknown"
}

// Salt returns the salt of the terms of the invoice with that off-chain id.
func Salt(invoiceID string) common.Hash {
	return crypto.Keccak256Hash([]byte(invoiceID))
}

// ID returns the on-chain id of an invoice with these terms, as the registry's idOf does: the hash of chain, registry
// and every field, each as a 32-byte word. Amount must be set, not negative and below 2^256; more is cut off.
func (t Terms) ID(chainID *big.Int, registry common.Address) common.Hash {
	return crypto.Keccak256Hash(
		word(chainID),
		address(registry),
		address(t.Merchant),
		address(t.Token),
		word(t.Amount),
		word(new(big.Int).SetUint64(t.ExpiresAt)),
		t.Salt[:],
	)
}
