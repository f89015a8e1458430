package chain

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/rpc"
)

// Failover makes JSON-RPC calls to the first of several endpoints that
// answers. An answer that refuses the call is an answer: only an endpoint that
// cannot be reached passes the call on. It must not be empty.
type Failover []*Endpoint

// CallContext makes one call, as go-ethereum's rpc.Client does.
func (f Failover) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return f.try(ctx, func(e *Endpoint) error { return e.CallContext(ctx, result, method, args...) })
}

// BatchCallContext makes several calls in one request, as go-ethereum's
// rpc.Client does.
func (f Failover) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return f.try(ctx, func(e *Endpoint) error { return e.BatchCallContext(ctx, batch) })
}

func (f Failover) try(ctx context.Context, call func(*Endpoint) error) error {
	var err error
	for _, e := range f {
		err = call(e)
		var answer rpc.Error
		if err == nil || errors.As(err, &answer) || ctx.Err() != nil {
			return err
		}
	}
	return err
}
