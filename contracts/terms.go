package contracts

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Status is the status of an invoice by the registry's storage and logs.
type Status uint8

// The states of an invoice. StatusPaid is final.
const (
	StatusNone   Status = iota // unknown to the registry, and payable until it expires
	StatusOpen                 // logged as issued, and payable until it expires
	StatusPaid                 // paid through the registry
	StatusClosed               // ended by the operator
)

// StoredStatus returns the status for a number that the registry's statusOf returns: StatusNone, StatusPaid or
// StatusClosed.
func StoredStatus(n uint8) Status {
	switch n {
	case 1:
		return StatusPaid
	case 2:
		return StatusClosed
	}
	return StatusNone
}

// ReadStatus returns the status of an invoice as of the newest block. What the registry does not store, it reads from
// the registry's logs, starting at the first block.
func ReadStatus(ctx context.Context, node Reader, registry common.Address, id common.Hash) (Status, error) {
	answer, err := node.CallContract(ctx, ethereum.CallMsg{To: &registry, Data: NewInvoiceRegistry().PackStatusOf(id)}, nil)
	if err != nil {
		return StatusNone, fmt.Errorf("read the status of a commitment: %w", err)
	}
	stored, err := NewInvoiceRegistry().UnpackStatusOf(answer)
	if status := StoredStatus(stored); err != nil || status != StatusNone {
		return status, err
	}
	logs, err := node.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int), Addresses: []common.Address{registry}, Topics: [][]common.Hash{{OpenedTopic, ClosedTopic}, {id}},
	})
	if err != nil {
		return StatusNone, fmt.Errorf("read the logs of a commitment: %w", err)
	}
	status := StatusNone
	for _, l := range logs {
		if l.Topics[0] == ClosedTopic {
			return StatusClosed, nil
		}
		status = StatusOpen
	}
	return status, nil
}

// Reader is the part of a node's client that ReadStatus needs. *ethclient.Client implements it.
type Reader interface {
	CallContract(ctx context.Context, call ethereum.CallMsg, block *big.Int) ([]byte, error)
	FilterLogs(ctx context.Context, q ethereum.FilterQuery) ([]types.Log, error)
}

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
// and every field, each as a 32-byte word. Amount must be set, not negative and below 2^256; higher bits are cut off.
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
