package chain

import (
	"context"

	"github.com/ethereum/go-ethereum/rpc"
)

// CallContext makes one call and decodes its answer into result, as the method
// of that name of go-ethereum's rpc.Client does, with the Client's limits and
// errors.
func (c *Client) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return c.call(ctx, result, method, args...)
}

// BatchCallContext makes calls together, in order, in as few requests as the node
// takes. Unlike the method of that name of go-ethereum's rpc.Client, it fails when
// one of them does. If a node refuses a batch of requests, the batches of other classes stay as they
// are.
func (c *Client) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	kind := KindCalls
	if classOf(ctx) == ClassRequest {
		kind = KindRequestCalls
	}
	return c.batch(ctx, kind, batch, nil)
}
