package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// Header is the part of a block's header that the service uses. Its hash is not
// verified: networks add fields to the header, so it cannot be recomputed.
type Header struct {
	invoice.Header
	Bloom types.Bloom
	Txs   int // how many transactions the block has; UnknownTxs if the node does not list them
}

// UnknownTxs is the number of transactions of a header whose node does not list them.
const UnknownTxs = -1

// UnmarshalJSON reads a block as nodes write it, and refuses one without
// number, hash or parent.
func (h *Header) UnmarshalJSON(data []byte) error {
	var raw struct {
		Number    *hexutil.Uint64 `json:"number"`
		Hash      *common.Hash    `json:"hash"`
		Parent    *common.Hash    `json:"parentHash"`
		Timestamp *hexutil.Uint64 `json:"timestamp"`
		Bloom     *types.Bloom    `json:"logsBloom"`
		Txs       []skipped       `json:"transactions"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw.Number == nil || raw.Hash == nil || raw.Parent == nil || raw.Timestamp == nil {
		return errors.New("block lacks number, hash, parentHash or timestamp")
	}
	*h = Header{Txs: len(raw.Txs), Header: invoice.Header{
		Number: uint64(*raw.Number), Hash: invoice.Hash(*raw.Hash), Parent: invoice.Hash(*raw.Parent), Time: invoice.Unix(int64(min(*raw.Timestamp, math.MaxInt64))),
	}}
	if raw.Txs == nil {
		h.Txs = UnknownTxs
	}
	if raw.Bloom == nil {
		h.Bloom = noBloom // any log may be there
		return nil
	}
	h.Bloom = *raw.Bloom
	return nil
}

// skipped is any JSON value. It is read only to be counted.
type skipped struct{}

// UnmarshalJSON accepts every value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// noBloom is the bloom filter of a header that has none.
var noBloom = types.Bloom(bytes.Repeat([]byte{0xff}, types.BloomByteLength))

// HasBloom reports whether the header has a bloom filter.
func (h *Header) HasBloom() bool { return h.Bloom != noBloom }

// Excludes reports whether the bloom filter rules out all logs that f selects. An
// empty bloom filter counts only for a block without transactions: nodes that keep
// no bloom filters send empty ones.
func (h *Header) Excludes(f LogFilter) bool {
	return !f.MayMatch(h.Bloom) && (h.Txs == 0 || h.Bloom != types.Bloom{})
}

// BloomContains reports whether the header's bloom filter contains a log.
func (h *Header) BloomContains(l *types.Log) bool {
	if !types.BloomLookup(h.Bloom, l.Address) {
		return false
	}
	return !slices.ContainsFunc(l.Topics, func(topic common.Hash) bool { return !types.BloomLookup(h.Bloom, topic) })
}

// Receipt is the part of a transaction's receipt that the service uses.
type Receipt struct {
	TxHash      common.Hash     `json:"transactionHash"`
	BlockHash   common.Hash     `json:"blockHash"`
	BlockNumber hexutil.Uint64  `json:"blockNumber"`
	From        common.Address  `json:"from"` // who sent the transaction
	To          *common.Address `json:"to"`   // whom it called; nil when it created a contract
	Status      hexutil.Uint64  `json:"status"`
	Logs        Logs            `json:"logs"`

	GasUsed  hexutil.Uint64 `json:"gasUsed"`
	GasPrice *hexutil.Big   `json:"effectiveGasPrice"` // wei; nil when the node does not say
	L1Fee    *hexutil.Big   `json:"l1Fee"`             // wei, of rollups that charge it apart; else nil
}

// Cost returns what the transaction cost its sender, in wei, or nil when the
// node does not say.
func (r *Receipt) Cost() *big.Int {
	if r.GasPrice == nil {
		return nil
	}
	cost := new(big.Int).Mul(new(big.Int).SetUint64(uint64(r.GasUsed)), r.GasPrice.ToInt())
	if r.L1Fee != nil {
		cost.Add(cost, r.L1Fee.ToInt())
	}
	return cost
}

// Succeeded reports whether the transaction was not reverted.
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

// MayMatch reports whether a block with this bloom filter may hold a log that f
// selects. If not, it holds none.
func (f LogFilter) MayMatch(bloom types.Bloom) bool {
	var address, topic bool
	for _, a := range f.Addresses {
		address = address || types.BloomLookup(bloom, a)
	}
	for _, t := range f.Topics {
		topic = topic || types.BloomLookup(bloom, t)
	}
	return address && topic
}

// Methods that classify and the calls below name.
const (
	blockByNumber = "eth_getBlockByNumber"
	getLogs       = "eth_getLogs"
)

// Head returns the newest block that the node has.
func (c *Client) Head(ctx context.Context) (Header, error) {
	var h *Header
	if err := c.call(ctx, &h, blockByNumber, "latest", false); err != nil {
		return Header{}, err
	}
	if h == nil {
		return Header{}, c.notFound(blockByNumber, "latest")
	}
	return *h, nil
}

// HeadAndTagged returns the newest block that the node has, and the newest that
// its tag holds for, TagSafe or TagFinalized, as of one request. tagged is zero
// when the tag holds for no block yet. An empty tag asks for the head alone.
func (c *Client) HeadAndTagged(ctx context.Context, tag string) (head, tagged Header, err error) {
	if tag == "" {
		head, err = c.Head(ctx)
		return head, Header{}, err
	}
	var found [2]*Header
	batch := []rpc.BatchElem{
		{Method: blockByNumber, Args: []any{"latest", false}, Result: &found[0]},
		{Method: blockByNumber, Args: []any{tag, false}, Result: &found[1]},
	}
	err = c.batch(ctx, batch)
	if errors.Is(err, ErrNotFound) && batch[0].Error == nil {
		err, found[1] = nil, nil
	}
	if err != nil {
		return Header{}, Header{}, err
	}
	if found[0] == nil {
		return Header{}, Header{}, c.notFound(blockByNumber, "latest")
	}
	if found[1] != nil {
		tagged = *found[1]
	}
	return *found[0], tagged, nil
}

// notFound is the error for a null answer.
func (c *Client) notFound(method string, what any) error {
	return &callError{node: c.name, method: method, err: fmt.Errorf("%v: %w", what, ErrNotFound)}
}

// Headers returns the canonical blocks at several heights, in the order asked
// for. One that the node lacks is ErrNotFound.
func (c *Client) Headers(ctx context.Context, numbers []uint64) ([]Header, error) {
	found, err := batchOf[Header](ctx, c, blockByNumber, len(numbers), func(i int) []any {
		return []any{hexutil.EncodeUint64(numbers[i]), false}
	})
	if err != nil {
		return nil, err
	}
	headers := make([]Header, len(found))
	for i, h := range found {
		if h.Number != numbers[i] {
			return nil, c.contradiction("answered block %d when asked for block %d", h.Number, numbers[i])
		}
		headers[i] = *h
	}
	return headers, nil
}

// LogsOfBlocks returns, for each block hash, the logs that the filter selects. The
// answer does not show whether a block is canonical.
func (c *Client) LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, f LogFilter) ([][]types.Log, error) {
	found, err := batchOf[Logs](ctx, c, getLogs, len(blocks), func(i int) []any {
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

// LogsInRange returns the logs of the blocks first..last that the filter selects.
// last must not be above the node's head, where answers are undefined. It is
// ErrNotFound when the answer is null.
func (c *Client) LogsInRange(ctx context.Context, first, last uint64, f LogFilter) ([]types.Log, error) {
	filter := f.arg(map[string]any{"fromBlock": hexutil.EncodeUint64(first), "toBlock": hexutil.EncodeUint64(last)})
	x := &exchange{forLogs: true}
	var logs *Logs
	err := c.do(ctx, []rpc.BatchElem{{Method: getLogs}}, x, func(ctx context.Context, client *rpc.Client) error {
		return client.CallContext(ctx, &logs, getLogs, filter)
	})
	switch {
	case err != nil:
		return nil, err
	case x.logs != nil:
		return x.logs, nil
	case logs == nil: // null does not mean an empty list
		return nil, c.notFound(getLogs, fmt.Sprintf("blocks %d to %d", first, last))
	}
	return *logs, nil
}
