package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// step is a step of an invoice's life, and what it takes once.
type step struct {
	name string
	each usage
	note string
}

// costs are the steps of an invoice's life.
type costs struct {
	steps []step
	idle  usage // in a second
	// alone and burst are creates of one client, and of bursts.
	alone, burst creates
	request      usage // for a create and a transfer
	block        usage // without payments
	seen, final  usage // of a payment
	event        usage // that is delivered
}

// step adds a step.
func (c *costs) step(name string, each usage, format string, args ...any) {
	c.steps = append(c.steps, step{name, each, fmt.Sprintf(format, args...)})
}

// measureSteps measures all steps, each for about a time. With counted it counts statements, which
// takes CPU time.
func (b *bench) measureSteps(ctx context.Context, kind string, counted bool, during time.Duration) (c costs, err error) {
	name := "cost"
	if counted {
		name = "counted"
	}
	for _, part := range []struct {
		name     string
		delivers bool
		measure  func(ctx context.Context, r *costRun, c *costs, during time.Duration) error
	}{{"life", false, lifeSteps}, {"events", true, eventSteps}, {"expiry", false, expirySteps}} {
		r, err := b.startCost(ctx, kind, name+part.name, counted, part.delivers)
		if err == nil {
			err = errors.Join(part.measure(ctx, r, &c, during), r.stop())
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return c, nil
}

// lifeSteps measures creates and payments.
func lifeSteps(ctx context.Context, r *costRun, c *costs, during time.Duration) (err error) {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.rest(ctx, 2*during); err != nil {
		return err
	}
	c.idle = r.idle
	c.step("idle, a second", c.idle, "")
	if c.alone, err = r.creating(ctx, r.together(1, during)); err != nil {
		return err
	}
	c.step("create, one at a time", c.alone.per(c.alone.made), "%.0f", c.alone.made)
	if c.burst, err = r.creating(ctx, r.bursts(during)); err != nil {
		return err
	}
	c.step(fmt.Sprintf("create, in bursts of %d", costBurst), c.burst.per(c.burst.made), "%.0f in transactions of %.1f", c.burst.made, c.burst.batch())
	return r.blocks(ctx, c)
}

// blocks measures empty blocks, and then payments in full ones.
func (r *costRun) blocks(ctx context.Context, c *costs) (err error) {
	const empty = 50
	c.block, err = r.spent(ctx, func() error {
		for range empty {
			if err := r.sealAndPause(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.block = c.block.per(empty)
	c.step("block without payments", c.block, "mean of %d", empty)
	for range costBlocks {
		if err := r.fullBlock(ctx, c); err != nil {
			return err
		}
	}
	const all = costBlock * costBlocks
	c.request, c.seen, c.final = c.request.per(all), c.seen.per(all), c.final.per(all)
	c.step("payment, until it is stored", c.seen, "%d in a block", costBlock)
	c.step("payment, made final", c.final, "%d in a block", costBlock)
	return nil
}

// sealAndPause seals a block, and gives the service time for it.
func (r *costRun) sealAndPause(ctx context.Context) error {
	if err := r.node.Seal(ctx); err != nil {
		return err
	}
	return r.pause(ctx, blockPause)
}

// fullBlock creates and pays invoices, seals their block and those that make it final, and adds
// what that takes.
func (r *costRun) fullBlock(ctx context.Context, c *costs) error {
	used, err := r.spent(ctx, func() error {
		for i := range costBlock {
			made, err := r.requestOf(ctx, 500_000_000+1000*(int(r.paid)+i))
			if err != nil {
				return err
			}
			if err := r.pay(ctx, made); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.request = c.request.plus(used, 1)
	r.paid += costBlock
	used, err = r.spent(ctx, func() error {
		return errors.Join(r.node.Seal(ctx), r.until(ctx, "SELECT count(*) FROM payments", r.paid))
	})
	if err != nil {
		return err
	}
	c.seen = c.seen.plus(used, 1).plus(c.block, -1)
	used, err = r.spent(ctx, func() error {
		for range finalBlocks() {
			if err := r.sealAndPause(ctx); err != nil {
				return err
			}
		}
		return r.until(ctx, "SELECT count(*) FROM invoices WHERE status = 'paid'", r.paid)
	})
	c.final = c.final.plus(used, 1).plus(c.block, -float64(finalBlocks()))
	return err
}

// eventSteps measures deliveries: creates with an endpoint, of which those without were
// measured before.
func eventSteps(ctx context.Context, r *costRun, c *costs, during time.Duration) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.rest(ctx, during/2); err != nil {
		return err
	}
	delivered, err := r.creating(ctx, func(ctx context.Context) error {
		return errors.Join(r.bursts(during)(ctx), r.until(ctx, "SELECT count(*) FROM deliveries", 0))
	})
	if err != nil {
		return err
	}
	c.event = delivered.per(delivered.made).plus(c.burst.per(c.burst.made), -1)
	c.step("event, delivered", c.event, "in bursts of %d, and creates in transactions of %.1f", costBurst, delivered.batch())
	return nil
}

// expirySteps measures expiry.
func expirySteps(ctx context.Context, r *costRun, c *costs, during time.Duration) error {
	if err := appendRows(ctx, r.url, openRows(costExpiring, time.Now().Add(-time.Second))); err != nil {
		return fmt.Errorf("make rows: %w", err)
	}
	if _, err := r.conn.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return err
	}
	if err := r.rest(ctx, during/2); err != nil {
		return err
	}
	used, err := r.spent(ctx, func() error {
		for range finalBlocks() + 1 {
			if err := r.node.Seal(ctx); err != nil {
				return err
			}
		}
		return r.until(ctx, "SELECT count(*) FROM invoices WHERE status = 'expired'", costExpiring)
	})
	c.step("expiry", used.per(costExpiring), "%d of one second", costExpiring)
	return err
}
