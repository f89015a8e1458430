package chain

import (
	"context"
	"time"
)

type onCallKey struct{}

// OnCall returns a context in which done is called whenever a request to a
// node has ended, well or not.
func OnCall(ctx context.Context, done func()) context.Context {
	return context.WithValue(ctx, onCallKey{}, done)
}

// begin notes a request that is under way.
func (e *Endpoint) begin(x *exchange, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.underWay[x] = at
}

// end notes the end of a request.
func (e *Endpoint) end(ctx context.Context, x *exchange) {
	e.mu.Lock()
	delete(e.underWay, x)
	e.mu.Unlock()
	if done, ok := ctx.Value(onCallKey{}).(func()); ok {
		done()
	}
}

// Waiting returns for how long the oldest request to the node that is under way
// has not ended; 0 when there is none.
func (e *Endpoint) Waiting() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	var longest time.Duration
	for _, began := range e.underWay {
		longest = max(longest, time.Since(began))
	}
	return longest
}
