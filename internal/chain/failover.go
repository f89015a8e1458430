package chain

import (
	"context"
	"errors"
	"net/http"

	"github.com/ethereum/go-ethereum/rpc"
)

// JSON-RPC codes by which providers say that they were asked too often:
// EIP-1474's, and that of HTTP within an answer to a batch.
const (
	errorLimitExceeded   = -32005
	errorTooManyRequests = http.StatusTooManyRequests
)

// Failover makes JSON-RPC calls to the first of several endpoints that
// answers. An answer that refuses the call is an answer: only an endpoint that
// cannot be reached, or that was asked too often, passes the call on. It must
// not be empty.
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
		if err == nil || answered(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// answered reports whether a call's error is the node's word on the call.
func answered(err error) bool {
	var answer rpc.Error
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.ErrorCode()
	return code != errorLimitExceeded && code != errorTooManyRequests
}
