package contracts

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// First topics of the registry's logs.
var (
	PaidTopic   = crypto.Keccak256Hash([]byte("Paid(bytes32,address,address,address,uint256)"))
	OpenedTopic = crypto.Keccak256Hash([]byte("Opened(bytes32)"))
	ClosedTopic = crypto.Keccak256Hash([]byte("Closed(bytes32)"))
)

// SweptTopic is the first topic of the deposit factory's log of a sweep.
var SweptTopic = crypto.Keccak256Hash([]byte("Swept(address,address,address,uint256)"))

// Swept is the event that the contents of a deposit address went to its merchant.
type Swept struct{ Deposit, Token, Merchant common.Address }

// ParseSwept parses a Swept log. It checks only the log's form; the caller must check that the factory emitted it.
func ParseSwept(log types.Log) (s Swept, err error) {
	if err := checkShape(log, "Swept", SweptTopic, 4, 1); err != nil {
		return Swept{}, err
	}
	for i, into := range []*common.Address{&s.Deposit, &s.Token, &s.Merchant} {
		word := log.Topics[i+1]
		*into = common.BytesToAddress(word[:])
		if word != common.BytesToHash(into.Bytes()) {
			return Swept{}, fmt.Errorf("Swept log: topic %d is %s, want an address", i+1, word)
		}
	}
	return s, nil
}

// Paid is the event that an invoice was paid through the registry.
type Paid struct {
	ID       common.Hash    // the invoice's on-chain id
	Payer    common.Address // the account that paid
	Merchant common.Address // the account that received the money
	Token    common.Address // token of the payment
	Amount   *big.Int       // minor units of Token
}

// ParsePaid parses a Paid log. It checks only the log's form; the caller must check that the registry emitted it.
func ParsePaid(log types.Log) (Paid, error) {
	if err := checkShape(log, "Paid", PaidTopic, 4, 2); err != nil {
		return Paid{}, err
	}
	p := Paid{ID: log.Topics[1], Amount: new(big.Int).SetBytes(log.Data[32:])}
	for _, field := range []struct {
		name string
		word []byte
		into *common.Address
	}{
		{"payer", log.Topics[2][:], &p.Payer},
		{"merchant", log.Topics[3][:], &p.Merchant},
		{"token", log.Data[:32], &p.Token},
	} {
		*field.into = common.BytesToAddress(field.word)
		if common.BytesToHash(field.word) != common.BytesToHash(field.into.Bytes()) {
			return Paid{}, fmt.Errorf("Paid log: %s is %#x, want an address", field.name, field.word)
		}
	}
	return p, nil
}

// ParseOpened returns the on-chain id in an Opened log. The caller must check that the registry emitted it.
func ParseOpened(log types.Log) (common.Hash, error) {
	return parseID(log, "Opened", OpenedTopic)
}

// ParseClosed returns the on-chain id in a Closed log. The caller must check that the registry emitted it.
func ParseClosed(log types.Log) (common.Hash, error) {
	return parseID(log, "Closed", ClosedTopic)
}

func parseID(log types.Log, event string, topic common.Hash) (common.Hash, error) {
	if err := checkShape(log, event, topic, 2, 0); err != nil {
		return common.Hash{}, err
	}
	return log.Topics[1], nil
}

// checkShape returns an error unless a log has the event's first topic, its number of topics and its number of 32-byte words.
func checkShape(log types.Log, event string, topic common.Hash, topics, words int) error {
	if len(log.Topics) != topics || log.Topics[0] != topic {
		return fmt.Errorf("%s log: topics are %v, want %d beginning with %s", event, log.Topics, topics, topic)
	}
	if len(log.Data) != 32*words {
		return fmt.Errorf("%s log: data has %d bytes, want %d", event, len(log.Data), 32*words)
	}
	return nil
}
