package chaintest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// Methods that faults look for.
const (
	methodBlock    = "eth_getBlockByNumber"
	methodByHash   = "eth_getBlockByHash"
	methodLogs     = "eth_getLogs"
	methodReceipt  = "eth_getTransactionReceipt"
	methodReceipts = "eth_getBlockReceipts"
	methodTx       = "eth_getTransactionByHash"
)

// DropLogs leaves logs out of the answers to eth_getLogs, for the blocks From..To, or to the end if To is 0. It drops
// the given percentage, always the same logs, or all if Percent is 0. If Txs is not empty, it drops only logs of these
// transactions. Receipts stay complete.
type DropLogs struct {
	contentFault
	From, To uint64
	Percent  uint64
	Txs      []common.Hash
}

func (f DropLogs) wrapCalls(p *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(c)
		var logs []types.Log
		if c.Method != methodLogs || json.Unmarshal(a.Result, &logs) != nil {
			return a
		}
		a.Result = marshal(slices.DeleteFunc(logs, func(l types.Log) bool {
			return (len(f.Txs) == 0 || slices.Contains(f.Txs, l.TxHash)) && f.From <= l.BlockNumber && (f.To == 0 || l.BlockNumber <= f.To) &&
				(f.Percent == 0 || p.draw(l.BlockHash, l.Index) < f.Percent)
		}))
		return a
	}
}

// DropReceipts leaves receipts out of the answers to eth_getBlockReceipts, except the first Keep of each block. With
// LogsOnly all receipts stay, and the others lose their logs.
type DropReceipts struct {
	contentFault
	Keep     int
	LogsOnly bool
}

func (f DropReceipts) wrapCalls(_ *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(c)
		var receipts []map[string]any
		if c.Method != methodReceipts || json.Unmarshal(a.Result, &receipts) != nil || len(receipts) <= f.Keep {
			return a
		}
		if !f.LogsOnly {
			receipts = receipts[:f.Keep]
		}
		for _, r := range receipts[f.Keep:] {
			r["logs"] = []any{}
		}
		a.Result = marshal(receipts)
		return a
	}
}

// DropTx answers requests for a transaction's receipt with null, or requests for the transaction if Input is true. With
// a Code it answers with that error instead. The transaction's logs stay.
type DropTx struct {
	contentFault
	Tx    common.Hash
	Input bool
	Code  int
}

func (f DropTx) wrapCalls(_ *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		of := methodReceipt
		if f.Input {
			of = methodTx
		}
		if c.Method == of && text(c.Params[0]) == f.Tx.Hex() {
			if f.Code != 0 {
				return answer{Error: &refusal{f.Code, "transaction indexing is in progress"}}
			}
			return answer{Result: []byte("null")}
		}
		return ask(c)
	}
}

// Stale freezes the node: at block At or, if At is 0, Behind blocks below the real head. The node has no blocks above
// that one, and silently omits their logs from ranges, as the backends of some nodes do.
type Stale struct {
	contentFault
	At     uint64
	Behind uint64
}

func (f Stale) wrapCalls(_ *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		head := f.At
		if head == 0 {
			n, _ := numberOf(ask(call{Method: methodBlock, Params: params("latest", false)}))
			head = n - min(n, f.Behind)
		}
		switch c.Method {
		case methodBlock:
			return f.block(c, head, ask)
		case methodLogs:
			return f.logs(c, head, ask)
		}
		a := ask(c)
		if n, ok := numberOf(a); ok && n > head {
			a.Result = []byte("null")
		}
		return a
	}
}

// block answers with the block at a height up to the head.
func (Stale) block(c call, head uint64, ask callHandler) answer {
	a := ask(c)
	if n, ok := numberOf(a); !ok || n <= head {
		return a
	}
	if strings.HasPrefix(text(c.Params[0]), "0x") {
		return answer{Result: []byte("null")}
	}
	return ask(call{Method: methodBlock, Params: params(hexutil.Uint64(head), false)})
}

// logs cuts a range off at the head, and knows no blocks above it.
func (Stale) logs(c call, head uint64, ask callHandler) answer {
	f, err := filterOf(c)
	if err != nil {
		return ask(c)
	}
	if f.BlockHash != nil {
		n, ok := numberOf(ask(call{Method: methodByHash, Params: params(f.BlockHash, false)}))
		if ok && n > head {
			return answer{Error: &refusal{-32000, errUnknownBlock.Error()}}
		}
		return ask(c)
	}
	if uint64(*f.FromBlock) > head {
		return answer{Result: []byte("[]")}
	}
	*f.ToBlock = min(*f.ToBlock, hexutil.Uint64(head))
	c.Params = params(f)
	return ask(c)
}

// WrongHash changes the hash of the block At when it is requested by number. So the blocks above it have another
// parent.
type WrongHash struct {
	contentFault
	At uint64
}

func (f WrongHash) wrapCalls(p *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(c)
		if n, ok := numberOf(a); c.Method == methodBlock && ok && n == f.At {
			a.Result = rewrite(a.Result, func(o map[string]any) { p.mask(o, "hash") })
		}
		return a
	}
}

// WrongTime adds By seconds to the time of the blocks From..To, or of all from From on if To is 0. Their hashes stay.
// With Once, only the first answer about each block is wrong.
type WrongTime struct {
	contentFault
	From, To uint64
	By       int64
	Once     bool
}

func (f WrongTime) wrapCalls(p *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(c)
		if n, ok := numberOf(a); (c.Method == methodBlock || c.Method == methodByHash) && ok && n >= f.From && (f.To == 0 || n <= f.To) && (!f.Once || p.count(fmt.Sprint("time of ", n)) == 1) {
			a.Result = rewrite(a.Result, func(o map[string]any) {
				if at, ok := quantity(o["timestamp"]); ok {
					o["timestamp"] = hexutil.Uint64(int64(at) + f.By)
				}
			})
		}
		return a
	}
}

// FarHead announces a head far above the chain's, a year ahead.
type FarHead struct{ contentFault }

func (FarHead) wrapCalls(p *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(c)
		if c.Method == methodBlock && len(c.Params) > 0 && text(c.Params[0]) == "latest" {
			a.Result = rewrite(a.Result, func(o map[string]any) {
				n, _ := quantity(o["number"])
				at, _ := quantity(o["timestamp"])
				o["number"], o["timestamp"] = hexutil.Uint64(n+60), hexutil.Uint64(at+365*86400)
				p.mask(o, "hash")
			})
		}
		return a
	}
}

// FalseChain changes the hashes of all blocks from From on, consistently in all answers of the node.
type FalseChain struct {
	contentFault
	From uint64
}

func (f FalseChain) wrapCalls(p *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(p.unmask(c))
		if a.Error != nil || string(a.Result) == "null" {
			a = ask(c) // about a block below the false ones, or about a transaction
		}
		a.Result = rewrite(a.Result, func(o map[string]any) {
			if n, ok := quantity(o["blockNumber"]); ok && n >= f.From {
				p.mask(o, "blockHash")
			}
			n, ok := quantity(o["number"])
			if ok && n >= f.From {
				p.mask(o, "hash")
			}
			if ok && n > f.From {
				p.mask(o, "parentHash")
			}
		})
		return a
	}
}

// unmask replaces the false hash of a block in a call by the true one.
func (p *Proxy) unmask(c call) call {
	switch c.Method {
	case methodByHash, methodReceipts:
		hash := map[string]any{"hash": text(c.Params[0])}
		p.mask(hash, "hash")
		c.Params = append([]json.RawMessage{marshal(hash["hash"])}, c.Params[1:]...)
	case methodLogs:
		c.Params = []json.RawMessage{rewrite(c.Params[0], func(o map[string]any) { p.mask(o, "blockHash") })}
	}
	return c
}

// mask replaces a true hash by a false one, and a false one by the true one.
func (p *Proxy) mask(o map[string]any, member string) {
	if s, ok := o[member].(string); ok {
		hash := common.HexToHash(s)
		for i := range hash[:8] {
			hash[i] ^= byte(p.seed>>(8*i)) | 1
		}
		o[member] = hash
	}
}

// Forge invents a transaction with these logs in block At, and includes it in all answers that should contain it. The
// block keeps its hash.
type Forge struct {
	contentFault
	At   uint64
	Logs []Log
}

// TxHash returns the transaction's hash.
func (f Forge) TxHash() common.Hash { return f.tx().Hash }

func (f Forge) tx() Tx { return NamedTx(fmt.Sprint("forged in ", f.At, f.Logs), f.Logs...) }

func (f Forge) wrapCalls(_ *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		b := f.block(ask)
		a := ask(c)
		if b == nil || a.Error != nil {
			return a
		}
		switch c.Method {
		case methodBlock, methodByHash:
			a.Result = f.header(a.Result, b)
		case methodLogs:
			if filter, err := filterOf(c); err == nil && filter.covers(b) {
				a.Result = extend(a.Result, filter.of(b, nil))
			}
		case methodReceipt:
			if text(c.Params[0]) == b.Txs[0].Hash.Hex() {
				a.Result = marshal(b.receipt(0))
			}
		case methodTx:
			if text(c.Params[0]) == b.Txs[0].Hash.Hex() {
				a.Result = marshal(b.tx(0))
			}
		case methodReceipts:
			if text(c.Params[0]) == b.Hash.Hex() {
				a.Result = extend(a.Result, []any{b.receipt(0)})
			}
		}
		return a
	}
}

// header changes the bloom filter of the block to match everything, and adds the forged transaction.
func (f Forge) header(block json.RawMessage, b *Block) json.RawMessage {
	return rewrite(block, func(o map[string]any) {
		if n, ok := quantity(o["number"]); ok && n == f.At {
			o["logsBloom"] = "0x" + strings.Repeat("ff", types.BloomByteLength)
			if txs, ok := o["transactions"].([]any); ok {
				o["transactions"] = append(txs, b.tx(0))
			}
		}
	})
}

// block is the block as if it held only the forged transaction, at the end; nil while the node does not have the block.
func (f Forge) block(ask callHandler) *Block {
	var h struct {
		Hash common.Hash    `json:"hash"`
		Time hexutil.Uint64 `json:"timestamp"`
	}
	a := ask(call{Method: methodBlock, Params: params(hexutil.Uint64(f.At), false)})
	if string(a.Result) == "null" || json.Unmarshal(a.Result, &h) != nil {
		return nil
	}
	tx := f.tx()
	b := &Block{Number: f.At, Hash: h.Hash, Time: int64(h.Time), Txs: []Tx{tx}}
	for i, l := range f.Logs {
		b.logs = append(b.logs, types.Log{
			Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: b.Number, BlockHash: b.Hash,
			BlockTimestamp: uint64(b.Time), TxHash: tx.Hash, Index: uint(forgedIndex + i),
		})
	}
	return b
}

// forgedIndex is the index of the first forged log in its block.
const forgedIndex = 1000
