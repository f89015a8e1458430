package chain

import (
	"context"

	"github.com/ethereum/go-ethereum/rpc"
)

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
