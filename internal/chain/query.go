package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/http"
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
	Txs   int // number of transactions; UnknownTxs if the node does not list them

	leadingZeros bool
}

// UnknownTxs is the number of transactions of a header from a node that does not list them.
const UnknownTxs = -1

// HasLeadingZeros reports whether a number in the header had leading zeros.
func (h *Header) HasLeadingZeros() bool { return h.leadingZeros }

// UnmarshalJSON parses a block, and refuses one without number, hash or parent.
func (h *Header) UnmarshalJSON(data []byte) error {
	var raw struct {
		Number    *Quantity    `json:"number"`
		Hash      *common.Hash `json:"hash"`
		Parent    *common.Hash `json:"parentHash"`
		Timestamp *Quantity    `json:"timestamp"`
		Bloom     string       `json:"logsBloom"`
		Txs       []skipped    `json:"transactions"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw.Number == nil || raw.Hash == nil || raw.Parent == nil || raw.Timestamp == nil {
		return errors.New("block lacks number, hash, parentHash or timestamp")
	}
	*h = Header{
		Header: invoice.Header{
			Number: raw.Number.N, Hash: invoice.Hash(*raw.Hash), Parent: invoice.Hash(*raw.Parent),
			Time: invoice.Unix(int64(min(raw.Timestamp.N, math.MaxInt64))),
		},
		Bloom: noBloom, // any log may be in the block
		Txs:   len(raw.Txs),

		leadingZeros: raw.Number.leadingZeros || raw.Timestamp.leadingZeros,
	}
	if raw.Txs == nil {
		h.Txs = UnknownTxs
	}
	if raw.Bloom == "" || raw.Bloom == "0x" || raw.Bloom == "0x0" {
		return nil // nodes without bloom filters write any of these
	}
	return h.Bloom.UnmarshalText([]byte(raw.Bloom))
}

// skipped is any JSON value that is only counted.
type skipped struct{}

// UnmarshalJSON accepts every value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// noBloom is the bloom filter of a header without one.
var noBloom = types.Bloom(bytes.Repeat([]byte{0xff}, types.BloomByteLength))

// HasBloom reports whether the header has a bloom filter.
func (h *Header) HasBloom() bool { return h.Bloom != noBloom }

// Excludes reports whether the bloom filter rules out all logs that f selects. An empty bloom filter counts only for a
// block without transactions: nodes that keep no bloom filters send empty ones.
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
	From        common.Address  `json:"from"` // the transaction's sender
	To          *common.Address `json:"to"`   // the account it called; nil if it created a contract
	Status      hexutil.Uint64  `json:"status"`
	Logs        Logs            `json:"logs"`

	GasUsed  hexutil.Uint64 `json:"gasUsed"`
	GasPrice *hexutil.Big   `json:"effectiveGasPrice"` // wei; nil if the node does not report it
	L1Fee    *hexutil.Big   `json:"l1Fee"`             // wei, on rollups that charge it separately; otherwise nil

	leadingZeros bool
}

// HasLeadingZeros reports whether a number in the receipt had leading zeros.
func (r *Receipt) HasLeadingZeros() bool { return r.leadingZeros }

// UnmarshalJSON parses a receipt, and refuses one without the hash of its transaction. Other missing fields stay
// unchanged.
func (r *Receipt) UnmarshalJSON(data []byte) error {
	type plain Receipt
	raw := struct {
		*plain
		BlockNumber *Quantity    `json:"blockNumber"`
		Status      *Quantity    `json:"status"`
		GasUsed     *Quantity    `json:"gasUsed"`
		GasPrice    *BigQuantity `json:"effectiveGasPrice"`
		L1Fee       *BigQuantity `json:"l1Fee"`
		Logs        *foundLogs   `json:"logs"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if r.TxHash == (common.Hash{}) {
		return errors.New("receipt lacks transactionHash")
	}
	if raw.Logs != nil {
		r.Logs, r.leadingZeros = raw.Logs.logs, raw.Logs.leadingZeros
	}
	for _, number := range []struct {
		from *Quantity
		to   *hexutil.Uint64
	}{{raw.BlockNumber, &r.BlockNumber}, {raw.Status, &r.Status}, {raw.GasUsed, &r.GasUsed}} {
		if number.from != nil {
			*number.to, r.leadingZeros = hexutil.Uint64(number.from.N), r.leadingZeros || number.from.leadingZeros
		}
	}
	for _, fee := range []struct {
		from *BigQuantity
		to   **hexutil.Big
	}{{raw.GasPrice, &r.GasPrice}, {raw.L1Fee, &r.L1Fee}} {
		if fee.from != nil {
			*fee.to, r.leadingZeros = (*hexutil.Big)(fee.from.N), r.leadingZeros || fee.from.leadingZeros
		}
	}
	return nil
}

// Cost returns the cost of the transaction to its sender, in wei, or nil if the node does not report it.
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

// LogFilter selects logs as eth_getLogs does: from any of Addresses, with any of Topics as their first topic.
type LogFilter struct {
	Addresses []common.Address
	Topics    []common.Hash
}

// arg writes the filter's JSON with the blocks it applies to; see asksRange.
func (f LogFilter) arg(blocks map[string]any) map[string]any {
	blocks["address"] = f.Addresses
	blocks["topics"] = [][]common.Hash{f.Topics}
	return blocks
}

// asksRange reports whether a call requests the logs of a range of blocks, which may be too long.
func asksRange(elem rpc.BatchElem) bool {
	if elem.Method != getLogs || len(elem.Args) == 0 {
		return false
	}
	filter, ok := elem.Args[0].(map[string]any)
	return ok && filter["fromBlock"] != nil
}

// MayMatch reports whether a block with this bloom filter may hold a log that f selects. If false, it holds no such
// log.
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

// Methods used by classify and by the calls below.
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

// HeadAndTagged returns the node's newest block and the newest block with a tag, TagSafe or TagFinalized, with one
// request. tagged is zero if no block has the tag yet. An empty tag requests only the head.
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
	err = c.batch(ctx, KindHeads, batch, nil)
	if f := classify(err); found[0] != nil && f.rpcError && !f.rateLimited() && f.code != codeInternal && f.status < http.StatusInternalServerError {
		// Some nodes return an error instead of null. If the error has another reason, no block becomes final until the
		// next answer.
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

// mayLack reports whether a call requests the block with a tag that no block may have yet, which some nodes answer with
// an error.
func mayLack(elem rpc.BatchElem) bool {
	return elem.Method == blockByNumber && len(elem.Args) > 0 && (elem.Args[0] == TagSafe || elem.Args[0] == TagFinalized)
}

// notFound is the error for a null answer.
func (c *Client) notFound(method string, what any) error {
	return &callError{node: c.name, method: method, err: fmt.Errorf("%v: %w", what, ErrNotFound)}
}

// Headers returns the canonical blocks at several heights, in the order requested. The error is ErrNotFound if the node
// lacks one.
func (c *Client) Headers(ctx context.Context, numbers []uint64) ([]Header, error) {
	found, err := batchOf[Header](ctx, c, KindHeaders, blockByNumber, len(numbers), func(i int) []any {
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

// LogsOfBlocks returns, for each block hash, the logs that the filter selects. The answer does not show whether a block
// is canonical. After an error it returns the answers that arrived, and nil for the other blocks.
func (c *Client) LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, f LogFilter) ([][]types.Log, error) {
	found, err := batchOf[foundLogs](ctx, c, KindLogs, getLogs, len(blocks), func(i int) []any {
		return []any{f.arg(map[string]any{"blockHash": common.Hash(blocks[i])})}
	})
	logs := make([][]types.Log, len(blocks))
	for i := range found {
		if found[i] != nil {
			logs[i] = found[i].logs
		}
	}
	return logs, err
}

// LogsInRange returns the logs of the blocks first..last that the filter selects. last must not be above the node's
// head, where answers are undefined. The error is ErrNotFound if the answer is null. A failure lowers the limit
// KindRange; only the caller raises it, because it knows how many logs it wants.
func (c *Client) LogsInRange(ctx context.Context, first, last uint64, f LogFilter) ([]types.Log, error) {
	limit := c.Limit(KindRange)
	filter := f.arg(map[string]any{"fromBlock": hexutil.EncodeUint64(first), "toBlock": hexutil.EncodeUint64(last)})
	x := &exchange{forLogs: true}
	var logs *foundLogs
	err := c.do(ctx, []rpc.BatchElem{{Method: getLogs, Args: []any{filter}}}, x, func(ctx context.Context, client *rpc.Client) error {
		return client.CallContext(ctx, &logs, getLogs, filter)
	})
	if err == nil && x.logs == nil && logs == nil { // null does not mean an empty list
		err = c.notFound(getLogs, fmt.Sprintf("blocks %d to %d", first, last))
	}
	switch {
	case err == nil && x.logs != nil:
		return x.logs, nil
	case err == nil:
		c.noteLeadingZeros([]rpc.BatchElem{{Method: getLogs, Result: logs}})
		return logs.logs, nil
	case IsRefusal(err):
		limit.Refused(last - first + 1)
	}
	return nil, err
}

// CallContext makes one call and decodes its answer into result, like the method of go-ethereum's rpc.Client with that
// name, with the Client's limits and errors.
func (c *Client) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return c.call(ctx, result, method, args...)
}

// BatchCallContext makes calls together, in order, in as few requests as the node accepts. Unlike the method of
// go-ethereum's rpc.Client with that name, it fails if one of them fails. If a node refuses a batch on behalf of a
// request, the batches of other classes stay as long as they are.
func (c *Client) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	kind := KindCalls
	if classOf(ctx) == ClassRequest {
		kind = KindRequestCalls
	}
	return c.batch(ctx, kind, batch, nil)
}
