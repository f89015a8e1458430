package chain

import (
	"context"
	"time"
)

type onRequestDoneKey struct{}

// OnRequestDone returns a context in which done is called after every request to a node, whatever its outcome.
func OnRequestDone(ctx context.Context, done func()) context.Context {
	return context.WithValue(ctx, onRequestDoneKey{}, done)
}

// begin records the start of a request.
func (c *Client) begin(x *exchange, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight[x] = at
}

// end records the end of a request.
func (c *Client) end(ctx context.Context, x *exchange) {
	c.mu.Lock()
	delete(c.inFlight, x)
	c.mu.Unlock()
	x.reading.Add(-x.read)
	if done, ok := ctx.Value(onRequestDoneKey{}).(func()); ok {
		done()
	}
}

// OldestRequest returns the age of the oldest request in flight, or 0.
func (c *Client) OldestRequest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var longest time.Duration
	for _, began := range c.inFlight {
		longest = max(longest, time.Since(began))
	}
	return longest
}
