package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// DefaultFailoverAfter is how long a call of a Pool waits for one node while another is usable. A node that hangs
// delays its callers this once, and then is in backoff.
const DefaultFailoverAfter = 3 * time.Second

// Writer makes the calls of the transaction manager.
type Writer struct{ pool *Pool }

// broadcast is the method that sends a transaction.
const broadcast = "eth_sendRawTransaction"

// Writer returns the caller for the transaction manager.
func (p *Pool) Writer() Writer { return Writer{p} }

// CallContext makes one call, as go-ethereum's rpc.Client does, to the first usable node that answers. A JSON-RPC error
// about the request is an answer. A transaction (eth_sendRawTransaction) goes to all usable nodes in parallel, and
// counts as sent when one accepts it.
func (w Writer) CallContext(ctx context.Context, result any, method string, args ...any) error {
	ctx = withClass(ctx, ClassWriting)
	if method == broadcast {
		return w.pool.send(ctx, result, method, args...)
	}
	return w.pool.try(ctx, func(ctx context.Context, node *Node) error { return node.CallContext(ctx, result, method, args...) })
}

// BatchCallContext makes several calls together, to the first usable node that answers them all. It fails if one of
// them fails.
func (w Writer) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return w.pool.try(withClass(ctx, ClassWriting), func(ctx context.Context, node *Node) error { return node.BatchCallContext(ctx, batch) })
}

// Caller makes calls of the transaction manager to one node, without failover.
type Caller struct{ node *Node }

// Callers returns a caller of each usable node, best first, to compare their answers.
func (w Writer) Callers() []Caller {
	usable := w.pool.Usable()
	nodes := make([]Caller, len(usable))
	for i, node := range usable {
		nodes[i] = Caller{node}
	}
	return nodes
}

// CallContext is Writer.CallContext with only this node.
func (n Caller) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return n.node.call(withClass(ctx, ClassWriting), n.node.pool.conf.FailoverAfter, func(ctx context.Context, node *Node) error {
		return node.CallContext(ctx, result, method, args...)
	})
}

// BatchCallContext is Writer.BatchCallContext with only this node.
func (n Caller) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return n.node.call(withClass(ctx, ClassWriting), n.node.pool.conf.FailoverAfter, func(ctx context.Context, node *Node) error {
		return node.BatchCallContext(ctx, batch)
	})
}

func (p *Pool) try(ctx context.Context, call func(context.Context, *Node) error) error {
	var err error
	usable := p.Usable()
	for i, node := range usable {
		limit := p.conf.FailoverAfter
		if i == len(usable)-1 {
			limit = 0
		}
		if err = node.call(ctx, limit, call); err == nil || !shouldFailOver(err) {
			return err
		}
	}
	return err
}

// shouldFailOver reports whether another node may succeed after this error.
func shouldFailOver(err error) bool {
	_, limited := IsRateLimit(err)
	return limited || isNodeFailure(err) || errors.Is(err, ErrMismatch) || errors.Is(err, ErrUnsupported) || errors.Is(err, errTooManyAnswers)
}

// call makes a call within limit and reports its outcome.
func (p *Node) call(ctx context.Context, limit time.Duration, call func(context.Context, *Node) error) error {
	err := p.callWithin(ctx, limit, call)
	if err == nil {
		p.ReportSuccess()
	} else if !isOfSimulation(ctx, err) {
		p.ReportFailure(err)
	}
	return err
}

// callWithin makes a call to the node, after checking the node. A node that takes longer than limit has failed; 0 means
// no limit.
func (p *Node) callWithin(ctx context.Context, limit time.Duration, call func(context.Context, *Node) error) error {
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err := p.Ready(limited)
	if err == nil {
		err = call(limited, p)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w: more than %s", p, ErrTimeout, limit)
	}
	return err
}

// send sends a transaction to all usable nodes. If no node accepts it, it returns the error of the first node that
// answered, or the first error.
func (p *Pool) send(ctx context.Context, result any, method string, args ...any) error {
	usable := p.Usable()
	type answer struct {
		from int
		body json.RawMessage
		err  error
	}
	answers := make(chan answer, len(usable))
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := p.conf.FailoverAfter
	if len(usable) == 1 {
		limit = 0
	}
	for i, node := range usable {
		go func() {
			a := answer{from: i}
			a.err = node.call(limited, limit, func(ctx context.Context, node *Node) error {
				return node.CallContext(ctx, &a.body, method, args...)
			})
			answers <- a
		}()
	}
	var taken json.RawMessage
	errs := make([]error, len(usable))
	for range usable {
		a := <-answers
		if errs[a.from] = a.err; a.err == nil && taken == nil {
			taken = a.body
			defer time.AfterFunc(sendGrace, cancel).Stop()
		}
	}
	if taken != nil {
		return json.Unmarshal(taken, result)
	}
	for _, err := range errs {
		if !shouldFailOver(err) {
			return err
		}
	}
	return errs[0]
}
