package chaintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// api holds the methods of the eth namespace, under their names.
type api struct{ node *Node }

// ChainId answers eth_chainId.
func (a *api) ChainId(ctx context.Context) (hexutil.Uint64, error) {
	return hexutil.Uint64(a.node.chain.ID), a.node.enter(ctx, "eth_chainId")
}

// GetCode answers eth_getCode: with some code if there is a contract.
func (a *api) GetCode(ctx context.Context, at common.Address, _ string) (hexutil.Bytes, error) {
	if err := a.node.enter(ctx, "eth_getCode"); err != nil {
		return nil, err
	}
	c := a.node.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.decimals[at]; ok {
		return hexutil.Bytes{0x60}, nil
	}
	return hexutil.Bytes{}, nil
}

// GetTransactionCount answers eth_getTransactionCount.
func (a *api) GetTransactionCount(ctx context.Context, account common.Address, _ string) (hexutil.Uint64, error) {
	err := a.node.enter(ctx, "eth_getTransactionCount")
	c := a.node.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	return hexutil.Uint64(c.nonces[account]), err
}

// reverted is the error of a call that a contract reverted.
type reverted struct{ error }

// ErrorCode returns geth's code.
func (reverted) ErrorCode() int { return 3 }

// Call answers eth_call as if decimals() were the only function.
func (a *api) Call(ctx context.Context, call struct{ To common.Address }, _ any) (hexutil.Bytes, error) {
	if err := a.node.enter(ctx, "eth_call"); err != nil {
		return nil, err
	}
	c := a.node.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.decimals[call.To]
	switch {
	case !ok:
		return hexutil.Bytes{}, nil
	case d < 0:
		return nil, reverted{errors.New("execution reverted")}
	}
	return common.LeftPadBytes([]byte{byte(d)}, 32), nil
}

// GetBlockByNumber answers eth_getBlockByNumber.
func (a *api) GetBlockByNumber(ctx context.Context, number rpc.BlockNumber, full bool) (map[string]any, error) {
	if err := a.node.enter(ctx, "eth_getBlockByNumber"); err != nil {
		return nil, err
	}
	blocks := a.node.view()
	at := int64(number)
	switch number {
	case rpc.LatestBlockNumber, rpc.PendingBlockNumber:
		at = int64(len(blocks)) - 1
	case rpc.EarliestBlockNumber:
		at = 0
	case rpc.SafeBlockNumber, rpc.FinalizedBlockNumber:
		tagged, ok := a.node.chain.tagged(number.String())
		if !ok {
			return nil, nil
		}
		at = int64(tagged)
	}
	if at < 0 || at >= int64(len(blocks)) {
		return nil, nil
	}
	return blocks[at].json(full), nil
}

// GetBlockByHash answers eth_getBlockByHash, also for orphaned blocks.
func (a *api) GetBlockByHash(ctx context.Context, hash common.Hash, full bool) (map[string]any, error) {
	if err := a.node.enter(ctx, "eth_getBlockByHash"); err != nil {
		return nil, err
	}
	if b := a.node.block(hash); b != nil {
		return b.json(full), nil
	}
	return nil, nil
}

func (c *Chain) tagged(tag string) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.tags[tag]
	return n, ok
}

// json writes the block, with full transactions or only their hashes.
func (b *Block) json(full bool) map[string]any {
	txs := make([]any, len(b.Txs))
	for i, tx := range b.Txs {
		if txs[i] = tx.Hash; full {
			txs[i] = b.tx(i)
		}
	}
	return map[string]any{
		"number": hexutil.Uint64(b.Number), "hash": b.Hash, "parentHash": b.Parent,
		"timestamp": hexutil.Uint64(b.Time), "logsBloom": b.bloom, "transactions": txs,
	}
}

// tx writes a transaction of the block.
func (b *Block) tx(i int) map[string]any {
	shown := make(map[string]any)
	if signed := b.Txs[i].Signed; signed != nil {
		text, err := signed.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &shown)
		}
		if err != nil {
			panic(fmt.Sprintf("chaintest: show a signed transaction: %v", err))
		}
	}
	maps.Copy(shown, map[string]any{
		"hash": b.Txs[i].Hash, "input": hexutil.Bytes(b.Txs[i].Input),
		"blockHash": b.Hash, "blockNumber": hexutil.Uint64(b.Number), "transactionIndex": hexutil.Uint(i),
	})
	return shown
}

// receipt writes the receipt of a transaction of the block.
func (b *Block) receipt(i int) map[string]any {
	logs := []types.Log{}
	for _, l := range b.logs {
		if l.TxIndex == uint(i) {
			logs = append(logs, l)
		}
	}
	return map[string]any{
		"transactionHash": b.Txs[i].Hash, "transactionIndex": hexutil.Uint(i), "status": hexutil.Uint64(status),
		"from": b.Txs[i].sender(), "to": b.Txs[i].To,
		"blockHash": b.Hash, "blockNumber": hexutil.Uint64(b.Number), "logs": logs,
	}
}

// errUnknownBlock is geth's error for a block that it lacks.
var errUnknownBlock = errors.New("unknown block")

// filter is the argument of eth_getLogs.
type filter struct {
	BlockHash *common.Hash     `json:"blockHash,omitempty"`
	FromBlock *hexutil.Uint64  `json:"fromBlock,omitempty"`
	ToBlock   *hexutil.Uint64  `json:"toBlock,omitempty"`
	Address   []common.Address `json:"address"`
	Topics    [][]common.Hash  `json:"topics"`

	toLatest bool
}

// UnmarshalJSON reads a filter. Its toBlock may be the head.
func (f *filter) UnmarshalJSON(data []byte) error {
	type plain filter
	read := struct {
		*plain
		ToBlock json.RawMessage `json:"toBlock"`
	}{plain: (*plain)(f)}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if f.toLatest = string(read.ToBlock) == `"latest"`; f.toLatest || read.ToBlock == nil {
		return nil
	}
	return json.Unmarshal(read.ToBlock, &f.ToBlock)
}

// GetLogs answers eth_getLogs. As geth does, it serves an orphaned block that is requested by hash, and refuses a range
// that ends above its head.
func (a *api) GetLogs(ctx context.Context, f filter) ([]types.Log, error) {
	if err := a.node.enter(ctx, "eth_getLogs"); err != nil {
		return nil, err
	}
	logs := []types.Log{}
	if f.BlockHash != nil {
		b := a.node.block(*f.BlockHash)
		if b == nil {
			return nil, errUnknownBlock
		}
		return f.of(b, logs), nil
	}
	blocks := a.node.view()
	if f.FromBlock != nil && f.toLatest {
		last := hexutil.Uint64(len(blocks) - 1)
		f.ToBlock = &last
	}
	if f.FromBlock == nil || f.ToBlock == nil || *f.FromBlock > *f.ToBlock || uint64(*f.ToBlock) >= uint64(len(blocks)) {
		return nil, errors.New("block range extends beyond current head block")
	}
	for _, b := range blocks[*f.FromBlock : *f.ToBlock+1] {
		logs = f.of(b, logs)
	}
	return logs, nil
}

func (f filter) of(b *Block, logs []types.Log) []types.Log {
	for _, l := range b.logs {
		if !slices.Contains(f.Address, l.Address) {
			continue
		}
		matches := len(f.Topics) <= len(l.Topics)
		for i := 0; matches && i < len(f.Topics); i++ {
			matches = len(f.Topics[i]) == 0 || slices.Contains(f.Topics[i], l.Topics[i])
		}
		if matches {
			logs = append(logs, l)
		}
	}
	return logs
}

// GetTransactionReceipt answers eth_getTransactionReceipt.
func (a *api) GetTransactionReceipt(ctx context.Context, hash common.Hash) (map[string]any, error) {
	if err := a.node.enter(ctx, "eth_getTransactionReceipt"); err != nil {
		return nil, err
	}
	if at, ok := a.node.find(hash); ok {
		return at.block.receipt(at.index), nil
	}
	return nil, nil
}

// GetBlockReceipts answers eth_getBlockReceipts for a block given by hash, orphaned or not.
func (a *api) GetBlockReceipts(ctx context.Context, hash common.Hash) ([]map[string]any, error) {
	if err := a.node.enter(ctx, "eth_getBlockReceipts"); err != nil {
		return nil, err
	}
	b := a.node.block(hash)
	if b == nil {
		return nil, nil
	}
	receipts := make([]map[string]any, len(b.Txs))
	for i := range receipts {
		receipts[i] = b.receipt(i)
	}
	return receipts, nil
}

// GetTransactionByHash answers eth_getTransactionByHash.
func (a *api) GetTransactionByHash(ctx context.Context, hash common.Hash) (map[string]any, error) {
	if err := a.node.enter(ctx, "eth_getTransactionByHash"); err != nil {
		return nil, err
	}
	if at, ok := a.node.find(hash); ok {
		return at.block.tx(at.index), nil
	}
	return nil, nil
}
