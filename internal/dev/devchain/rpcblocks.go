package devchain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// object is a JSON object of an answer: what go-ethereum's types encode, and what JSON-RPC adds.
type object map[string]any

// Encode returns the members of a value's JSON that are not null, and the members of more, which may be null.
func Encode(value json.Marshaler, more map[string]any) (map[string]any, error) {
	raw, err := value.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	all := make(map[string]any)
	for name, member := range members {
		if !bytes.Equal(member, []byte("null")) {
			all[name] = member
		}
	}
	maps.Copy(all, more)
	return all, nil
}

// encodeBlock returns a block with its transactions, or with only their hashes.
func encodeBlock(block *types.Block, full bool) (object, error) {
	txs := make([]any, block.Transactions().Len())
	for i, tx := range block.Transactions() {
		txs[i] = tx.Hash()
		if full {
			encoded, err := encodeTx(tx, block, i)
			if err != nil {
				return nil, err
			}
			txs[i] = encoded
		}
	}
	return Encode(block.Header(), object{
		"size": hexutil.Uint64(block.Size()), "transactions": txs, "uncles": []common.Hash{}, "withdrawals": block.Withdrawals(),
	})
}

// encodeTx returns a transaction of a block, or one of the pool if block is nil.
func encodeTx(tx *types.Transaction, block *types.Block, index int) (object, error) {
	from, err := sender(tx)
	if err != nil {
		return nil, err
	}
	more := object{
		"from": from, "to": tx.To(), "gasPrice": (*hexutil.Big)(tx.GasPrice()), // which is the highest fee of newer types
		"blockHash": nil, "blockNumber": nil, "blockTimestamp": nil, "transactionIndex": nil,
	}
	if block != nil {
		more["gasPrice"] = (*hexutil.Big)(paidPrice(tx, block.BaseFee()))
		more["blockHash"], more["blockNumber"] = block.Hash(), hexutil.Uint64(block.NumberU64())
		more["blockTimestamp"], more["transactionIndex"] = hexutil.Uint64(block.Time()), hexutil.Uint64(index)
	}
	return Encode(tx, more)
}

// paidPrice returns what a transaction pays for gas in a block with the given base fee.
func paidPrice(tx *types.Transaction, baseFee *big.Int) *big.Int {
	tip := tx.EffectiveGasTipValue(baseFee)
	return tip.Add(tip, baseFee)
}

func encodeReceipt(receipt *types.Receipt, tx *types.Transaction) (object, error) {
	from, err := sender(tx)
	if err != nil {
		return nil, err
	}
	more := object{"type": hexutil.Uint64(tx.Type()), "from": from, "to": tx.To(), "contractAddress": nil}
	if receipt.ContractAddress != (common.Address{}) {
		more["contractAddress"] = receipt.ContractAddress
	}
	if receipt.Logs == nil {
		more["logs"] = []*types.Log{}
	}
	answer, err := Encode(receipt, more)
	delete(answer, "root") // of receipts before Byzantium, which have no status
	return answer, err
}

func sender(tx *types.Transaction) (common.Address, error) {
	return types.Sender(types.LatestSignerForChainID(new(big.Int).SetUint64(ChainID)), tx)
}

// GetBlockByNumber returns a block, or null.
func (a *ethAPI) GetBlockByNumber(number rpc.BlockNumber, full bool) (object, error) {
	block, err := a.node.block(rpc.BlockNumberOrHashWithNumber(number))
	if block == nil || err != nil {
		return nil, err
	}
	answer, err := encodeBlock(block, full)
	if number == rpc.PendingBlockNumber && err == nil {
		answer["hash"], answer["nonce"], answer["miner"] = nil, nil, nil
	}
	return answer, err
}

// GetBlockByHash returns a block, or null. Blocks that a reorg has removed remain.
func (a *ethAPI) GetBlockByHash(hash common.Hash, full bool) (object, error) {
	block := a.node.blocks.GetBlockByHash(hash)
	if block == nil {
		return nil, nil
	}
	return encodeBlock(block, full)
}

// GetBlockReceipts returns the receipts of a block, or null.
func (a *ethAPI) GetBlockReceipts(at rpc.BlockNumberOrHash) ([]object, error) {
	block, err := a.node.block(at)
	if block == nil || err != nil {
		return nil, err
	}
	txs, receipts := block.Transactions(), a.node.blocks.GetReceiptsByHash(block.Hash())
	if len(receipts) != len(txs) {
		return nil, fmt.Errorf("block %s has %d transactions but %d receipts", block.Hash(), len(txs), len(receipts))
	}
	answer := make([]object, len(receipts))
	for i, receipt := range receipts {
		if answer[i], err = encodeReceipt(receipt, txs[i]); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// GetTransactionByHash returns a transaction of the chain or the pool, or null.
func (a *ethAPI) GetTransactionByHash(hash common.Hash) (object, error) {
	found, _ := a.node.blocks.GetCanonicalTransaction(hash)
	if found != nil {
		block := a.node.blocks.GetBlock(found.BlockHash, found.BlockIndex)
		return encodeTx(block.Transactions()[found.Index], block, int(found.Index))
	}
	if tx := a.node.pool.Get(hash); tx != nil {
		return encodeTx(tx, nil, 0)
	}
	return nil, nil
}

// GetRawTransactionByHash returns the encoding of a transaction of the chain or the pool, or null.
func (a *ethAPI) GetRawTransactionByHash(hash common.Hash) (hexutil.Bytes, error) {
	_, tx := a.node.blocks.GetCanonicalTransaction(hash)
	if tx == nil {
		tx = a.node.pool.Get(hash)
	}
	if tx == nil {
		return nil, nil
	}
	return tx.MarshalBinary()
}

// GetTransactionReceipt returns the receipt of a transaction of the chain, or null.
func (a *ethAPI) GetTransactionReceipt(hash common.Hash) (object, error) {
	found, tx := a.node.blocks.GetCanonicalTransaction(hash)
	// A block is stored a moment before it is the head. Until then a client would read the state before the transaction.
	if found == nil || found.BlockIndex > a.node.blocks.CurrentBlock().Number.Uint64() {
		return nil, nil
	}
	receipt, err := a.node.blocks.GetCanonicalReceipt(tx, found.BlockHash, found.BlockIndex, found.Index)
	if err != nil {
		return nil, err
	}
	return encodeReceipt(receipt, tx)
}
