package chaintest

import (
	"fmt"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// Tx is a transaction. After a reorg it may be mined again in a block that replaces its former block.
type Tx struct {
	Hash  common.Hash
	From  common.Address  // the sender; if zero, the sender of its first transfer
	To    *common.Address // the contract it calls, if that matters
	Input []byte
	Logs  []Log
	// Signed, if set, has the signature that nodes return.
	Signed *types.Transaction
}

// sender returns the transaction's sender.
func (tx Tx) sender() common.Address {
	if tx.From != (common.Address{}) {
		return tx.From
	}
	for _, l := range tx.Logs {
		if len(l.Topics) == 3 && l.Topics[0] == transferTopic {
			return common.BytesToAddress(l.Topics[1][:])
		}
	}
	return common.Address{}
}

// Log is a log that a contract emits.
type Log struct {
	Address common.Address
	Topics  []common.Hash
	Data    []byte
}

// transferEvent is ERC-20's event.
const transferEvent = "Transfer(address,address,uint256)"

var transferTopic = crypto.Keccak256Hash([]byte(transferEvent))

var made atomic.Uint64

// NewTx returns a transaction with a unique hash that emits these logs.
func NewTx(logs ...Log) Tx {
	return NamedTx(fmt.Sprint("transaction ", made.Add(1)), logs...)
}

// SignedTx returns a transaction that an account has signed.
func SignedTx(signed *types.Transaction, logs ...Log) Tx {
	return Tx{Hash: signed.Hash(), To: signed.To(), Input: signed.Data(), Logs: logs, Signed: signed}
}

// NamedTx returns the transaction with a name. Its hash is the same each time.
func NamedTx(name string, logs ...Log) Tx {
	return Tx{Hash: crypto.Keccak256Hash([]byte("chaintest"), []byte(name)), Logs: logs}
}

// WithInput returns the transaction with this calldata.
func (tx Tx) WithInput(input []byte) Tx {
	tx.Input = input
	return tx
}

// Transfer is the log of an ERC-20 transfer.
func Transfer(token, from, to invoice.Address, amount invoice.Amount) Log {
	data := amount.Bytes()
	return event(token, data[:], transferEvent, word(from), word(to))
}

// AuthorizationUsed is the log of an ERC-3009 authorization.
func AuthorizationUsed(token, authorizer invoice.Address, nonce invoice.Hash) Log {
	return event(token, nil, "AuthorizationUsed(address,bytes32)", word(authorizer), common.Hash(nonce))
}

// Paid is the log of a payment through the registry.
func Paid(registry invoice.Address, id invoice.Hash, payer, merchant, token invoice.Address, amount invoice.Amount) Log {
	value, of := amount.Bytes(), word(token)
	return Log{
		Address: common.Address(registry), Data: append(of[:], value[:]...),
		Topics: []common.Hash{contracts.PaidTopic, common.Hash(id), word(payer), word(merchant)},
	}
}

// Swept is the log of a deposit factory that swept a deposit address.
func Swept(factory, deposit, token, merchant invoice.Address, amount invoice.Amount) Log {
	value := amount.Bytes()
	return Log{
		Address: common.Address(factory), Data: value[:],
		Topics: []common.Hash{contracts.SweptTopic, word(deposit), word(token), word(merchant)},
	}
}

// Opened is the registry's log of an opened commitment.
func Opened(registry invoice.Address, id invoice.Hash) Log {
	return Log{Address: common.Address(registry), Topics: []common.Hash{contracts.OpenedTopic, common.Hash(id)}}
}

// Closed is the registry's log of a closed commitment.
func Closed(registry invoice.Address, id invoice.Hash) Log {
	return Log{Address: common.Address(registry), Topics: []common.Hash{contracts.ClosedTopic, common.Hash(id)}}
}

func event(from invoice.Address, data []byte, signature string, indexed ...common.Hash) Log {
	topics := append([]common.Hash{crypto.Keccak256Hash([]byte(signature))}, indexed...)
	return Log{Address: common.Address(from), Topics: topics, Data: data}
}

func word(a invoice.Address) common.Hash { return common.BytesToHash(a[:]) }

// status is the status of every transaction: a failed one emits no logs, so no script needs it.
const status = types.ReceiptStatusSuccessful
