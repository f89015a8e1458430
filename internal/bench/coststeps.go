package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/apitypes"
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
	// pair and crowd are creates of costPair clients, and of costClients.
	pair, crowd creates
	block       usage // without payments
	few, many   blockCosts
	event       usage // of a create, that is delivered
	blockEvent  usage // of a payment in a block of many, that is delivered
}

// blockCosts are what a block of payments takes.
type blockCosts struct {
	payments    int
	request     usage // creates of the invoices
	transfer    usage // of the payments, one after another
	seen, final usage // more than blocks without payments
}

// step adds a step.
func (c *costs) step(name string, each usage, format string, args ...any) {
	c.steps = append(c.steps, step{name, each, fmt.Sprintf(format, args...)})
}

// measureSteps measures all steps, each for about a time. With counted it counts statements, which
// takes CPU time. PostgreSQL does not vacuum meanwhile, which would be in one step or another.
func (b *bench) measureSteps(ctx context.Context, kind string, counted bool, during time.Duration) (c costs, err error) {
	name := "cost"
	if counted {
		name = "counted"
	}
	if err := b.setAutovacuum(ctx, "off"); err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, b.setAutovacuum(ctx, "on")) }()
	for _, part := range []struct {
		name     string
		delivers bool
		measure  func(ctx context.Context, r *costRun, c *costs, during time.Duration) error
	}{{"life", false, lifeSteps}, {"events", true, eventSteps}, {"expiry", false, expirySteps}} {
		r, err := b.startCost(ctx, kind, name+part.name, counted, part.delivers)
		if err == nil {
			err = errors.Join(part.measure(ctx, r, &c, during), r.stop(), b.dropDatabases(ctx, kind))
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return c, nil
}

// setAutovacuum has PostgreSQL vacuum by itself or not.
func (b *bench) setAutovacuum(ctx context.Context, to string) error {
	for _, statement := range []string{"ALTER SYSTEM SET autovacuum = " + to, "SELECT pg_reload_conf()"} {
		if err := execute(ctx, b.cluster.DSN("postgres"), statement); err != nil {
			return err
		}
	}
	return nil
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
	for _, of := range []struct {
		clients int
		creates *creates
	}{{costPair, &c.pair}, {costClients, &c.crowd}} {
		made, err := r.creating(ctx, r.together(of.clients, during))
		if err != nil {
			return err
		}
		*of.creates = made
		c.step(fmt.Sprintf("create, %d clients", of.clients), made.per(made.made), "%.0f in transactions of %.1f", made.made, made.batch())
	}
	return r.blocks(ctx, c)
}

// blocks measures empty blocks, and then payments in full ones.
func (r *costRun) blocks(ctx context.Context, c *costs) (err error) {
	const empty = 50
	// The tables have grown. Otherwise the service would do this while the blocks are measured.
	if _, err := r.conn.Exec(ctx, "ANALYZE"); err != nil {
		return err
	}
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
	c.few, c.many = blockCosts{payments: costFew}, blockCosts{payments: costBlock}
	// Small blocks cost little, and CPU time is counted coarsely.
	if err := r.fullBlocks(ctx, c.block, &c.few, &c.few, &c.few, &c.few, &c.many); err != nil {
		return err
	}
	for _, of := range []*blockCosts{&c.few, &c.many} {
		n := float64(of.payments)
		c.step("payment, until it is stored", of.seen.per(n), "%d in a block", of.payments)
		c.step("payment, made final", of.final.per(n), "%d in a block", of.payments)
	}
	return nil
}

// sealAndPause seals a block, and gives the service time for it.
func (r *costRun) sealAndPause(ctx context.Context) error {
	if err := r.node.Seal(ctx); err != nil {
		return err
	}
	return r.pause(ctx, blockPause)
}

// fullBlocks measures rounds of blocks, and sets their means. A block that is given more than once is
// measured as often in each round.
func (r *costRun) fullBlocks(ctx context.Context, empty usage, round ...*blockCosts) error {
	sums, times := make(map[*blockCosts]*blockCosts), make(map[*blockCosts]float64)
	for n := range costWarm + costBlocks {
		if n == costWarm {
			clear(sums)
			clear(times)
		}
		for _, c := range round {
			if sums[c] == nil {
				sums[c] = &blockCosts{payments: c.payments}
			}
			if err := r.fullBlock(ctx, empty, sums[c]); err != nil {
				return err
			}
			times[c]++
		}
	}
	for c, sum := range sums {
		*c = blockCosts{c.payments, sum.request.per(times[c]), sum.transfer.per(times[c]), sum.seen.per(times[c]), sum.final.per(times[c])}
	}
	return nil
}

// fullBlock creates and pays invoices, seals their block and those that make it final, and adds
// what that takes more than empty blocks.
func (r *costRun) fullBlock(ctx context.Context, empty usage, c *blockCosts) error {
	var made []apitypes.CreateInvoiceResponse
	for _, step := range []struct {
		into   *usage
		blocks int
		do     func() error
	}{
		{&c.request, 0, func() error {
			for range c.payments {
				one, err := r.requestFor(ctx, r.shop(int64(len(made))), 500_000_000+1000*(int(r.paid)+len(made)))
				if err != nil {
					return err
				}
				made = append(made, one)
			}
			return r.untilDelivered(ctx)
		}},
		{&c.transfer, 0, func() error {
			for _, one := range made {
				if err := r.pay(ctx, one); err != nil {
					return err
				}
			}
			return nil
		}},
		{&c.seen, 1, func() error {
			r.paid += int64(len(made))
			return errors.Join(r.node.Seal(ctx), r.until(ctx, "SELECT count(*) FROM payments", r.paid), r.untilDelivered(ctx))
		}},
		{&c.final, finalBlocks(), func() error {
			for range finalBlocks() {
				if err := r.sealAndPause(ctx); err != nil {
					return err
				}
			}
			return errors.Join(r.until(ctx, "SELECT count(*) FROM invoices WHERE status = 'paid'", r.paid), r.untilDelivered(ctx))
		}},
	} {
		used, err := r.spent(ctx, step.do)
		if err != nil {
			return err
		}
		*step.into = step.into.plus(used, 1).plus(empty, -float64(step.blocks))
	}
	return nil
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
		return errors.Join(r.together(costClients, during)(ctx), r.untilDelivered(ctx))
	})
	if err != nil {
		return err
	}
	c.event = delivered.per(delivered.made).plus(c.crowd.per(c.crowd.made), -1)
	c.step("event of a create, delivered", c.event, "of %d merchants, and creates in transactions of %.1f", lifeClients, delivered.batch())
	with := blockCosts{payments: costBlock}
	if err := r.fullBlocks(ctx, c.block, &with); err != nil {
		return err
	}
	c.blockEvent = with.seen.plus(with.final, 1).plus(c.many.seen, -1).plus(c.many.final, -1).per(2 * costBlock)
	c.step("event of a payment, delivered", c.blockEvent, "of %d merchants, %d in a block", lifeClients, costBlock)
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
