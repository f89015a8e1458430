package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// Header is what the service uses of a block's header. Its hash is the node's
// word: networks add fields to the header, so it cannot be recomputed.
type Header struct {
	Number uint64
	Hash   invoice.Hash
	Parent invoice.Hash
	Time   int64 // Unix seconds
	Bloom  types.Bloom
}

// UnmarshalJSON reads a block as nodes write it, and refuses one without
// number, hash or parent.
func (h *Header) UnmarshalJSON(data []byte) error {
	var raw struct {
		Number    *hexutil.Uint64 `json:"number"`
		Hash      *common.Hash    `json:"hash"`
		Parent    *common.Hash    `json:"parentHash"`
		Timestamp *hexutil.Uint64 `json:"timestamp"`
		Bloom     *types.Bloom    `json:"logsBloom"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw.Number == nil || raw.Hash == nil || raw.Parent == nil || raw.Timestamp == nil {
		return errors.New("block lacks number, hash, parentHash or timestamp")
	}
	*h = Header{
		Number: uint64(*raw.Number), Hash: invoice.Hash(*raw.Hash), Parent: invoice.Hash(*raw.Parent),
		Time: int64(*raw.Timestamp),
	}
	if raw.Bloom == nil {
		// Without a bloom filter any log may be there.
		for i := range h.Bloom {
			h.Bloom[i] = 0xff
		}
		return nil
	}
	h.Bloom = *raw.Bloom
	return nil
}

// Receipt is what the service uses of a transaction's receipt.
type Receipt struct {
	TxHash      common.Hash    `json:"transactionHash"`
	BlockHash   common.Hash    `json:"blockHash"`
	BlockNumber hexutil.Uint64 `json:"blockNumber"`
	Status      hexutil.Uint64 `json:"status"`
	Logs        []types.Log    `json:"logs"`
}

// Succeeded reports whether the transaction was carried out rather than
// reverted.
func (r *Receipt) Succeeded() bool { return uint64(r.Status) == types.ReceiptStatusSuccessful }

// LogFilter selects logs as eth_getLogs does: from any of Addresses, with any
// of Topics as their first topic.
type LogFilter struct {
	Addresses []common.Address
	Topics    []common.Hash
}

// arg writes the filter's JSON with the blocks that it is for.
func (f LogFilter) arg(blocks map[string]any) map[string]any {
	blocks["address"] = f.Addresses
	blocks["topics"] = [][]common.Hash{f.Topics}
	return blocks
}

// Mentioned reports whether a block with that bloom filter can hold a log that
// f selects. A block of which it says no holds none.
func (f LogFilter) Mentioned(bloom types.Bloom) bool {
	var address, topic bool
	for _, a := range f.Addresses {
		address = address || types.BloomLookup(bloom, a)
	}
	for _, t := range f.Topics {
		topic = topic || types.BloomLookup(bloom, t)
	}
	return address && topic
}

// Head returns the newest block that the node has.
func (e *Endpoint) Head(ctx context.Context) (Header, error) { return e.block(ctx, "latest") }

// Tagged returns the newest block that the node's tag holds for, TagSafe or
// TagFinalized. It is ErrNotFound on a chain too young to have one.
func (e *Endpoint) Tagged(ctx context.Context, tag string) (Header, error) { return e.block(ctx, tag) }

func (e *Endpoint) block(ctx context.Context, which string) (Header, error) {
	const method = "eth_getBlockByNumber"
	var h *Header
	if err := e.call(ctx, &h, method, which, false); err != nil {
		return Header{}, err
	}
	if h == nil {
		return Header{}, fmt.Errorf("%s: %s %s: %w", e.name, method, which, ErrNotFound)
	}
	return *h, nil
}

// Headers returns the canonical blocks at several heights, in the order asked
// for. One that the node lacks is ErrNotFound.
func (e *Endpoint) Headers(ctx context.Context, numbers []uint64) ([]Header, error) {
	found, err := batchOf[Header](ctx, e, "eth_getBlockByNumber", len(numbers), func(i int) []any {
		return []any{hexutil.EncodeUint64(numbers[i]), false}
	})
	if err != nil {
		return nil, err
	}
	headers := make([]Header, len(found))
	for i, h := range found {
		if h.Number != numbers[i] {
			return nil, fmt.Errorf("%s: answered block %d when asked for block %d", e.name, h.Number, numbers[i])
		}
		headers[i] = *h
	}
	return headers, nil
}

// LogsOfBlocks returns, for each block, its logs that the filter selects.
// Asked by hash, a node cannot answer with those of another block of that
// height; whether the block is canonical it does not say.
func (e *Endpoint) LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, f LogFilter) ([][]types.Log, error) {
	found, err := batchOf[[]types.Log](ctx, e, "eth_getLogs", len(blocks), func(i int) []any {
		return []any{f.arg(map[string]any{"blockHash": common.Hash(blocks[i])})}
	})
	if err != nil {
		return nil, err
	}
	logs := make([][]types.Log, len(found))
	for i := range found {
		logs[i] = *found[i]
	}
	return logs, nil
}

// LogsInRange returns the logs of the blocks from first through last that the
// filter selects. last must not lie beyond the node's head: what a node
// answers then is not defined.
func (e *Endpoint) LogsInRange(ctx context.Context, first, last uint64, f LogFilter) ([]types.Log, error) {
	var logs []types.Log
	err := e.call(ctx, &logs, "eth_getLogs", f.arg(map[string]any{
		"fromBlock": hexutil.EncodeUint64(first), "toBlock": hexutil.EncodeUint64(last),
	}))
	return logs, err
}

// Receipts returns the receipts of transactions, in the order asked for. One
// that the node lacks is ErrNotFound.
func (e *Endpoint) Receipts(ctx context.Context, txs []common.Hash) ([]*Receipt, error) {
	found, err := batchOf[Receipt](ctx, e, "eth_getTransactionReceipt", len(txs), func(i int) []any { return []any{txs[i]} })
	if err != nil {
		return nil, err
	}
	for i, r := range found {
		if r.TxHash != txs[i] {
			return nil, fmt.Errorf("%s: answered the receipt of %s when asked for that of %s", e.name, r.TxHash, txs[i])
		}
	}
	return found, nil
}

// Inputs returns the calldata of transactions, in the order asked for. One
// that the node lacks is ErrNotFound.
func (e *Endpoint) Inputs(ctx context.Context, txs []common.Hash) ([][]byte, error) {
	type transaction struct {
		Hash  common.Hash   `json:"hash"`
		Input hexutil.Bytes `json:"input"`
	}
	found, err := batchOf[transaction](ctx, e, "eth_getTransactionByHash", len(txs), func(i int) []any { return []any{txs[i]} })
	if err != nil {
		return nil, err
	}
	inputs := make([][]byte, len(found))
	for i, tx := range found {
		if tx.Hash != txs[i] {
			return nil, fmt.Errorf("%s: answered transaction %s when asked for %s", e.name, tx.Hash, txs[i])
		}
		inputs[i] = tx.Input
	}
	return inputs, nil
}

// batchOf makes n calls of a method in batches. Every answer is there, or the
// error says which was not.
func batchOf[T any](ctx context.Context, e *Endpoint, method string, n int, args func(i int) []any) ([]*T, error) {
	found := make([]*T, n)
	elems := make([]rpc.BatchElem, n)
	for i := range elems {
		elems[i] = rpc.BatchElem{Method: method, Args: args(i), Result: &found[i]}
	}
	if err := e.batch(ctx, elems); err != nil {
		return nil, err
	}
	for i, v := range found {
		if v == nil {
			return nil, fmt.Errorf("%s: %s %v: %w", e.name, method, elems[i].Args[0], ErrNotFound)
		}
	}
	return found, nil
}

// Listen calls wake for every new head that the node announces, until ctx
// ends or the subscription breaks, and says why it ended. It is
// ErrNoSubscription at once over HTTP. A head that is not announced is no
// error: poll as well.
func (e *Endpoint) Listen(ctx context.Context, wake func()) error {
	client, err := e.connect(ctx)
	if err != nil {
		return e.done("eth_subscribe", 1, time.Now(), err)
	}
	if !client.SupportsSubscriptions() {
		return ErrNoSubscription
	}
	heads := make(chan json.RawMessage, 16)
	sub, err := client.EthSubscribe(ctx, heads, "newHeads")
	if err != nil {
		return e.done("eth_subscribe", 1, time.Now(), err)
	}
	defer sub.Unsubscribe()
	for {
		select {
		case <-heads:
			wake()
		case err := <-sub.Err():
			if err == nil {
				err = rpc.ErrClientQuit
			}
			return fmt.Errorf("%s: subscription ended: %w", e.name, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
