package chain

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// LogsAndEnds returns the logs of the blocks first..last that the filter selects, and the
// canonical headers of these two, by one batch. The headers show that the server that answered has
// the blocks: one that lags omits the logs of those that it lacks, without an error.
func (c *Client) LogsAndEnds(ctx context.Context, first, last uint64, f LogFilter) (logs []types.Log, ends [2]Header, err error) {
	var found *Logs
	var headers [2]*Header
	batch := []rpc.BatchElem{
		{Method: blockByNumber, Args: []any{hexutil.EncodeUint64(first), false}, Result: &headers[0]},
		{Method: getLogs, Args: []any{f.arg(map[string]any{"fromBlock": hexutil.EncodeUint64(first), "toBlock": hexutil.EncodeUint64(last)})}, Result: &found},
		{Method: blockByNumber, Args: []any{hexutil.EncodeUint64(last), false}, Result: &headers[1]},
	}
	if err := c.batch(ctx, KindHeads, batch, nil); err != nil {
		if IsRefusal(err) {
			c.Limit(KindRange).Refused(last - first + 1)
		}
		return nil, ends, err
	}
	if found == nil {
		return nil, ends, c.notFound(getLogs, fmt.Sprintf("blocks %d to %d", first, last))
	}
	for i, number := range []uint64{first, last} {
		switch h := headers[i]; {
		case h == nil:
			return nil, ends, c.notFound(blockByNumber, number)
		case h.Number != number:
			return nil, ends, c.contradiction("answered block %d when asked for block %d", h.Number, number)
		default:
			ends[i] = *h
		}
	}
	return *found, ends, nil
}

// LogsFrom returns the logs of a block and of all above it that the filter selects.
func (c *Client) LogsFrom(ctx context.Context, first uint64, f LogFilter) ([]types.Log, error) {
	var found *Logs
	err := c.call(ctx, &found, getLogs, f.arg(map[string]any{"fromBlock": hexutil.EncodeUint64(first), "toBlock": "latest"}))
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, c.notFound(getLogs, fmt.Sprintf("blocks from %d", first))
	}
	return *found, nil
}
