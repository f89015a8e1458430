package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"github.com/quittance/quittance/internal/dev/devchain"
)

// Errors of nodes, in go-ethereum's words.
var (
	errKnown       = errors.New("already known")
	errUnderpriced = errors.New("replacement transaction underpriced")
)

// rpcCall is one call of JSON-RPC, and its answer.
type rpcCall struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method,omitempty"`
	Params  []json.RawMessage `json:"params,omitempty"`
	Result  any               `json:"result"`
	Error   *rpcError         `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// answer returns the answer to a call from the blocks that the node has.
func (n *node) answer(view blockView, c rpcCall) rpcCall {
	out := rpcCall{Version: "2.0", ID: c.ID}
	result, err := n.call(view, c)
	if err != nil {
		refused := &rpcError{Code: -32000, Message: err.Error()}
		errors.As(err, &refused)
		out.Error = refused
	}
	out.Result = result
	return out
}

func (n *node) call(view blockView, c rpcCall) (any, error) {
	head, gwei := view.blocks[len(view.blocks)-1], big.NewInt(params.GWei)
	switch c.Method {
	case "eth_chainId":
		return (*hexutil.Big)(n.chain.id), nil
	case "eth_blockNumber":
		return hexutil.Uint64(head.number), nil
	case "eth_gasPrice", "eth_maxPriorityFeePerGas":
		return (*hexutil.Big)(gwei), nil
	case "eth_feeHistory":
		return object{
			"oldestBlock": hexutil.Uint64(head.number), "baseFeePerGas": []*hexutil.Big{(*hexutil.Big)(gwei), (*hexutil.Big)(gwei)},
			"gasUsedRatio": []float64{0.5}, "reward": [][]*hexutil.Big{{(*hexutil.Big)(gwei)}},
		}, nil
	}
	answer := map[string]func(blockView, rpcCall) (any, error){
		"eth_getBlockByNumber": n.getBlock, "eth_getBlockByHash": n.getBlock, "eth_getBlockReceipts": n.getReceipts,
		"eth_getCode": n.getAccount, "eth_getBalance": n.getAccount, "eth_getTransactionCount": n.getAccount,
		"eth_call": n.run, "eth_estimateGas": n.run, "eth_getLogs": n.getLogs, "eth_sendRawTransaction": n.sendRaw,
		"eth_getTransactionReceipt": n.getTx, "eth_getTransactionByHash": n.getTx,
	}[c.Method]
	if answer == nil {
		return nil, &rpcError{Code: -32601, Message: "the method " + c.Method + " does not exist/is not available"}
	}
	return answer(view, c)
}

func (n *node) getReceipts(view blockView, c rpcCall) (any, error) {
	b, err := n.blockAt(view, c, 0)
	if b == nil || err != nil {
		return nil, err
	}
	all := make([]json.RawMessage, len(b.receipts))
	for i := range all {
		if n.isHidden(b.txs[i].Hash(), false) {
			return nil, errors.New("internal error")
		}
		all[i] = n.receipt(b, i)
	}
	return all, nil
}

// param decodes a parameter. A missing one leaves into as it is.
func param(c rpcCall, i int, into any) error {
	if i >= len(c.Params) {
		return nil
	}
	if err := json.Unmarshal(c.Params[i], into); err != nil {
		return &rpcError{Code: -32602, Message: fmt.Sprintf("invalid argument %d: %v", i, err)}
	}
	return nil
}

// blockAt returns the block that a parameter names, or nil.
func (n *node) blockAt(view blockView, c rpcCall, i int) (*block, error) {
	var at any = "latest"
	if err := param(c, i, &at); err != nil {
		return nil, err
	}
	if o, ok := at.(map[string]any); ok {
		if at = o["blockHash"]; at == nil {
			at = o["blockNumber"]
		}
	}
	text, _ := at.(string)
	return n.find(view, text)
}

// find returns the block with a tag, a number or a hash, or nil.
func (n *node) find(view blockView, text string) (*block, error) {
	switch text {
	case "latest", "pending":
		return view.blocks[len(view.blocks)-1], nil
	case "safe", "finalized":
		return view.blocks[min(view.tag, uint64(len(view.blocks)-1))], nil
	case "earliest":
		return view.blocks[0], nil
	}
	if len(text) == 66 {
		return n.byHash(view, common.HexToHash(text)), nil
	}
	number, err := hexutil.DecodeUint64(text)
	if err != nil {
		return nil, &rpcError{Code: -32602, Message: "invalid argument: " + text}
	}
	if number >= uint64(len(view.blocks)) {
		return nil, nil
	}
	return view.blocks[number], nil
}

// byHash returns a block that the node has, canonical or not, or nil.
func (n *node) byHash(view blockView, hash common.Hash) *block {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	if b := n.chain.byHash[hash]; b != nil && b.seq <= view.blocks[len(view.blocks)-1].seq {
		return b
	}
	return nil
}

// object is a JSON object of an answer.
type object map[string]any

// encode returns the members of a value's JSON, and the members of more, without an empty root.
func encode(value json.Marshaler, more object) json.RawMessage {
	all, err := devchain.Encode(value, more)
	if err != nil {
		panic(err)
	}
	delete(all, "root")
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return raw
}

// part returns the JSON of a part of the block, which is encoded once.
func (b *block) part(name string, encoded func() json.RawMessage) json.RawMessage {
	known, ok := b.encoded.Load(name)
	if !ok {
		known, _ = b.encoded.LoadOrStore(name, encoded())
	}
	return known.(json.RawMessage)
}

func (n *node) getBlock(view blockView, c rpcCall) (any, error) {
	b, err := n.blockAt(view, c, 0)
	if b == nil || err != nil {
		return nil, err
	}
	var full bool
	if err := param(c, 1, &full); err != nil {
		return nil, err
	}
	return b.part(fmt.Sprint("block ", full), func() json.RawMessage {
		txs := make([]any, len(b.txs))
		for i, tx := range b.txs {
			if txs[i] = tx.Hash(); full {
				txs[i] = n.tx(b, i)
			}
		}
		return encode(b.header, object{"size": hexutil.Uint64(1000), "transactions": txs, "uncles": []common.Hash{}})
	}), nil
}

func (n *node) tx(b *block, i int) json.RawMessage {
	return b.part(fmt.Sprint("transaction ", i), func() json.RawMessage {
		from := n.chain.senderOf(b.txs[i])
		return encode(b.txs[i], object{
			"from": from, "to": b.txs[i].To(), "blockHash": b.hash, "blockNumber": hexutil.Uint64(b.number), "transactionIndex": hexutil.Uint64(i),
			"gasPrice": (*hexutil.Big)(b.receipts[i].EffectiveGasPrice),
		})
	})
}

func (n *node) receipt(b *block, i int) json.RawMessage {
	return b.part(fmt.Sprint("receipt ", i), func() json.RawMessage {
		from := n.chain.senderOf(b.txs[i])
		more := object{"from": from, "to": b.txs[i].To()}
		if len(b.receipts[i].Logs) == 0 {
			more["logs"] = []any{}
		}
		return encode(b.receipts[i], more)
	})
}

// stateAt returns the block with the state that the second parameter names.
func (n *node) stateAt(view blockView, c rpcCall) (b *block, err error) {
	if b, err = n.blockAt(view, c, 1); b == nil && err == nil {
		err = errors.New("header not found")
	}
	return b, err
}

func (n *node) getAccount(view blockView, c rpcCall) (any, error) {
	var of common.Address
	if err := param(c, 0, &of); err != nil {
		return nil, err
	}
	b, err := n.stateAt(view, c)
	if err != nil {
		return nil, err
	}
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	switch c.Method {
	case "eth_getCode":
		return hexutil.Bytes(b.state.GetCode(of)), nil
	case "eth_getBalance":
		return (*hexutil.Big)(b.state.GetBalance(of).ToBig()), nil
	}
	if len(c.Params) > 1 && string(c.Params[1]) == `"pending"` {
		return hexutil.Uint64(n.chain.nextNonce(of, b)), nil
	}
	return hexutil.Uint64(b.state.GetNonce(of)), nil
}

// run answers eth_call and eth_estimateGas.
func (n *node) run(view blockView, c rpcCall) (any, error) {
	var args struct {
		From        common.Address
		To          *common.Address
		Gas         *hexutil.Uint64
		Value       *hexutil.Big
		Data, Input hexutil.Bytes
	}
	if err := param(c, 0, &args); err != nil {
		return nil, err
	}
	b, err := n.stateAt(view, c)
	if err != nil {
		return nil, err
	}
	msg := &core.Message{From: args.From, To: args.To, Value: new(uint256.Int), GasPrice: new(uint256.Int), GasFeeCap: new(uint256.Int), GasTipCap: new(uint256.Int), GasLimit: blockGas, Data: args.Data}
	if len(args.Input) > 0 {
		msg.Data = args.Input
	}
	if args.Gas != nil {
		msg.GasLimit = uint64(*args.Gas)
	}
	if args.Value != nil {
		msg.Value = uint256.MustFromBig(args.Value.ToInt())
	}
	if c.Method == "eth_estimateGas" {
		gas, refused, err := n.chain.estimate(b, msg)
		if errors.Is(err, vm.ErrExecutionReverted) {
			err = revertError(refused)
		}
		return hexutil.Uint64(gas), err
	}
	result, err := n.chain.call(b, msg)
	switch {
	case err != nil:
		return nil, err
	case errors.Is(result.Err, vm.ErrExecutionReverted):
		return nil, revertError(result.Revert())
	}
	return hexutil.Bytes(result.Return()), result.Err
}

// revertError is the error of a call that a contract has refused.
func revertError(data []byte) error {
	reason := vm.ErrExecutionReverted.Error()
	if text, err := abi.UnpackRevert(data); err == nil {
		reason += ": " + text
	}
	return &rpcError{Code: 3, Message: reason, Data: hexutil.Encode(data)}
}

func (n *node) getTx(view blockView, c rpcCall) (any, error) {
	var hash common.Hash
	if err := param(c, 0, &hash); err != nil {
		return nil, err
	}
	n.chain.mu.Lock()
	places, pool := n.chain.places[hash], n.chain.pool
	n.chain.mu.Unlock()
	if n.isHidden(hash, false) {
		return nil, nil
	}
	for _, b := range places {
		if b.number < uint64(len(view.blocks)) && view.blocks[b.number] == b {
			i := slices.IndexFunc(b.txs, func(tx *types.Transaction) bool { return tx.Hash() == hash })
			if c.Method == "eth_getTransactionByHash" {
				return n.tx(b, i), nil
			}
			return n.receipt(b, i), nil
		}
	}
	if i := slices.IndexFunc(pool, func(tx *types.Transaction) bool { return tx.Hash() == hash }); i >= 0 && c.Method == "eth_getTransactionByHash" {
		from := n.chain.senderOf(pool[i])
		return encode(pool[i], object{"from": from, "blockHash": nil, "blockNumber": nil, "transactionIndex": nil}), nil
	}
	return nil, nil
}

func (n *node) sendRaw(_ blockView, c rpcCall) (any, error) {
	var raw hexutil.Bytes
	if err := param(c, 0, &raw); err != nil {
		return nil, err
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, err
	}
	return tx.Hash(), n.chain.add(tx)
}
