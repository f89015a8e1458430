package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// DefaultFailoverAfter is how long a call of a Pool waits for one provider while
// another could be asked. A provider that is frozen costs its callers this
// once, and is left alone for a while then.
const DefaultFailoverAfter = 3 * time.Second

// CallContext makes one call, as go-ethereum's rpc.Client does: of the first
// usable provider that answers. An answer that refuses the question is an
// answer. A transaction (eth_sendRawTransaction) goes to all usable providers
// at once; it is sent when one takes it.
func (p *Pool) CallContext(ctx context.Context, result any, method string, args ...any) error {
	if method == "eth_sendRawTransaction" {
		return p.send(ctx, result, method, args...)
	}
	return p.try(ctx, func(ctx context.Context, e *Node) error { return e.CallContext(ctx, result, method, args...) })
}

// BatchCallContext makes several calls together, of the first usable provider
// that answers them all. It fails when one of them does.
func (p *Pool) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return p.try(ctx, func(ctx context.Context, e *Node) error { return e.BatchCallContext(ctx, batch) })
}

// Caller asks one provider of a Pool, and no other.
type Caller struct{ node *Node }

// Callers returns the usable providers, best first, each to be asked by itself:
// so one's answer can be held against another's.
func (p *Pool) Callers() []Caller {
	usable := p.Usable()
	nodes := make([]Caller, len(usable))
	for i, provider := range usable {
		nodes[i] = Caller{provider}
	}
	return nodes
}

// CallContext is the Pool's, of the provider alone.
func (n Caller) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return n.node.call(ctx, n.node.pool.conf.FailoverAfter, func(ctx context.Context, e *Node) error {
		return e.CallContext(ctx, result, method, args...)
	})
}

// BatchCallContext is the Pool's, of the provider alone.
func (n Caller) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return n.node.call(ctx, n.node.pool.conf.FailoverAfter, func(ctx context.Context, e *Node) error {
		return e.BatchCallContext(ctx, batch)
	})
}

func (p *Pool) try(ctx context.Context, call func(context.Context, *Node) error) error {
	var err error
	usable := p.Usable()
	for i, provider := range usable {
		patience := p.conf.FailoverAfter
		if i == len(usable)-1 {
			patience = 0
		}
		if err = provider.call(ctx, patience, call); err == nil || !shouldFailOver(err) {
			return err
		}
	}
	return err
}

// shouldFailOver reports whether another provider may answer what one did not.
func shouldFailOver(err error) bool {
	_, limited := IsRateLimit(err)
	return limited || isNodeFailure(err) || errors.Is(err, ErrMismatch) || errors.Is(err, ErrUnsupported)
}

// call makes a call of the provider, and notes how it went. A provider that
// takes longer than patience has failed; 0 waits as long as the context does.
func (p *Node) call(ctx context.Context, patience time.Duration, call func(context.Context, *Node) error) error {
	limited := ctx
	if patience > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	err := p.Ready(limited)
	if err == nil {
		err = call(limited, p)
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w: more than %s", p, ErrTimeout, patience)
	}
	if err == nil {
		p.ReportSuccess()
	} else {
		p.ReportFailure(err)
	}
	return err
}

// send gives a transaction to all usable providers. When none takes it, the
// error is that of the first that answered, or else of the first.
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
	patience := p.conf.FailoverAfter
	if len(usable) == 1 {
		patience = 0
	}
	for i, provider := range usable {
		go func() {
			a := answer{from: i}
			a.err = provider.call(limited, patience, func(ctx context.Context, e *Node) error {
				return e.CallContext(ctx, &a.body, method, args...)
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
