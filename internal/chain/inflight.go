package chain

import (
	"context"
	"time"
)

type onRequestDoneKey struct{}

// OnRequestDone returns a context in which done is called after every request to a
// node, whatever its outcome.
func OnRequestDone(ctx context.Context, done func()) context.Context {
	return context.WithValue(ctx, onRequestDoneKey{}, done)
}

// begin records the start of a request.
func (e *Client) begin(x *exchange, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inFlight[x] = at
}

// end records the end of a request.
func (e *Client) end(ctx context.Context, x *exchange) {
	e.mu.Lock()
	delete(e.inFlight, x)
	e.mu.Unlock()
	if done, ok := ctx.Value(onRequestDoneKey{}).(func()); ok {
		done()
	}
}

// OldestRequest returns the age of the oldest request in flight, or 0.
func (e *Client) OldestRequest() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	var longest time.Duration
	for _, began := range e.inFlight {
		longest = max(longest, time.Since(began))
	}
	return longest
}
