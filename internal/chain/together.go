package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// LogsAndEnds returns the logs of the blocks first..last that the filter selects, and the canonical headers of these
// two blocks, with one request. The headers show that the server that answered has the blocks: a server that lags omits
// the logs of blocks that it lacks, without an error.
func (c *Client) LogsAndEnds(ctx context.Context, first, last uint64, f LogFilter) (logs []types.Log, ends [2]Header, err error) {
	var found *foundLogs
	var headers [2]*Header
	batch := []rpc.BatchElem{
		{Method: blockByNumber, Args: []any{hexutil.EncodeUint64(first), false}, Result: &headers[0]},
		{Method: getLogs, Args: []any{f.arg(map[string]any{"fromBlock": hexutil.EncodeUint64(first), "toBlock": hexutil.EncodeUint64(last)})}, Result: &found},
		{Method: blockByNumber, Args: []any{hexutil.EncodeUint64(last), false}, Result: &headers[1]},
	}
	if _, _, err := c.request(ctx, []*rpc.BatchElem{&batch[0], &batch[1], &batch[2]}, nil); err != nil {
		c.learnRefused(ctx, len(batch), first, last, f, err)
		return nil, ends, err
	}
	c.Limit(KindHeads).Answered(uint64(len(batch)))
	if found == nil {
		c.Limit(KindRange).Refused(last - first + 1)
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
	return found.logs, ends, nil
}

// learnRefused lowers the limit of ranges or the limit of batches, after a batch of this many calls with the logs of a
// range failed. If the node answers the range in a separate request, it does not accept the batch.
func (c *Client) learnRefused(ctx context.Context, calls int, first, last uint64, f LogFilter, failure error) {
	switch {
	case !IsRefusal(failure) || ctx.Err() != nil:
		return
	case errors.Is(failure, ErrTimeout) || classify(failure).retryAfter > 0: // send no more requests now
		c.Limit(KindRange).Refused(last - first + 1)
		return
	}
	if _, err := c.LogsInRange(ctx, first, last, f); err == nil {
		c.Limit(KindHeads).Refused(uint64(calls))
	}
}

// LogsFrom returns the logs of a block and of all blocks above it that the filter selects. Its failure does not change
// KindRange: nodes also return an error if there is no such block yet, and for a range that ends above their head.
func (c *Client) LogsFrom(ctx context.Context, first uint64, f LogFilter) ([]types.Log, error) {
	var found *foundLogs
	err := c.call(ctx, &found, getLogs, f.arg(map[string]any{"fromBlock": hexutil.EncodeUint64(first), "toBlock": "latest"}))
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, c.notFound(getLogs, fmt.Sprintf("blocks from %d", first))
	}
	return found.logs, nil
}
