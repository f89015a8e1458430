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

// Swept says that what was at a deposit address went to its merchant.
type Swept struct{ Deposit, Token, Merchant common.Address }

// ParseSwept reads a Swept log. It judges the log's shape alone: that the factory emitted it is for the caller to check.
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

// Paid says that an invoice was paid through the registry.
type Paid struct {
	ID       common.Hash    // the invoice's on-chain id
	Payer    common.Address // who the money came from
	Merchant common.Address // who it went to
	Token    common.Address // token of the payment
	Amount   *big.Int       // minor units of Token
}

// ParsePaid reads a Paid log. It judges the log's shape alone: that the registry emitted it is for the caller to check.
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

// ParseOpened reads the on-chain id out of an Opened log. That the registry emitted it is for the caller to check.
func ParseOpened(log types.Log) (common.Hash, error) {
	return parseID(log, "Opened", OpenedTopic)
}

// ParseClosed reads the on-chain id out of a Closed log. That the registry emitted it is for the caller to check.
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
