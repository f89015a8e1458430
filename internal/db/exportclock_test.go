package db

import "context"

// Read is a reading as Run makes it.
func (c *Clock) Read(ctx context.Context) error { return c.read(ctx) }
