package clock

import "context"

// Read is what Run does now and then.
func (c *Clock) Read(ctx context.Context) error { return c.read(ctx) }
