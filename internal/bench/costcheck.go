package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/bench/costmodel"
)

const (
	// costCounted is how long a step is measured of which the statements are counted.
	costCounted = 2 * time.Second
	// laneShare is the part of the service's CPU time of a create that its transaction takes
	// (settle.createAll, of that and net/http's handlers), as a profile of 64 clients has it.
	laneShare = 0.37
	// largeCPUs, largeSync and largeClients are a larger machine, for which the model is evaluated.
	largeCPUs, largeSync, largeClients = 16, time.Millisecond, 1024
)

// measureCost measures what each step of an invoice's life costs, and compares what a simulation
// predicts from that with the rates of the service. What it predicts is another load than what was measured.
func (b *bench) measureCost(ctx context.Context, kind string) error {
	if kind == "sqlite" {
		return nil // the model is of PostgreSQL
	}
	counted, err := b.measureSteps(ctx, kind, true, costCounted)
	if err != nil {
		return fmt.Errorf("count statements: %w", err)
	}
	c, err := b.measureSteps(ctx, kind, false, b.turn)
	if err != nil {
		return err
	}
	disk, hold, err := b.costOfLock(ctx, kind)
	if err != nil {
		return err
	}
	c.report(b, kind, &counted)
	model := c.model(hold)
	if err := b.checkCreates(ctx, kind, model, disk); err != nil {
		return err
	}
	if err := b.dropDatabases(ctx, kind); err != nil { // else PostgreSQL vacuums them meanwhile
		return err
	}
	if err := b.checkLives(ctx, kind, &model, disk); err != nil {
		return err
	}
	b.extrapolate(kind, model)
	return nil
}

// costOfLock measures a sync to disk, and how long the lock of events is held besides.
func (b *bench) costOfLock(ctx context.Context, kind string) (disk time.Duration, hold costmodel.Hold, err error) {
	syncs, err := syncTimes(b.dir)
	if err != nil {
		return 0, hold, err
	}
	for _, took := range syncs {
		disk += took / time.Duration(len(syncs))
	}
	one, many, err := b.held(ctx, kind)
	if err != nil {
		return 0, hold, err
	}
	const unit = time.Microsecond
	fastest := exactQuantile(syncs, 0.1)
	hold.Fixed, hold.Each = costmodel.Line(1, max(0, one-fastest), connections, max(0, many-fastest))
	b.report.row(kind, "sync to disk", disk.Round(unit), "", "", fmt.Sprintf("mean of %d writes of a page of 8 kB; %v the fastest tenth", len(syncs), fastest.Round(unit)))
	b.report.row(kind, "lock of events, held for 1 event", one.Round(unit), "", "", fmt.Sprintf("with the sync; the fastest tenth of %d", heldTurns))
	b.report.row(kind, fmt.Sprintf("lock of events, held for %d events", connections), many.Round(unit), "", "", fmt.Sprintf("with the sync; the fastest tenth of %d", heldTurns))
	return disk, hold, nil
}

// report adds the rows of all steps, with the statements that were counted apart.
func (c *costs) report(b *bench, kind string, counted *costs) {
	const unit = time.Microsecond
	for i, s := range c.steps {
		cpu := s.each.cpu
		b.report.row(kind, "CPU of service and database: "+s.name, cpu.Served().Round(unit), "", "",
			fmt.Sprintf("%v of the service, %v of PostgreSQL, %v of client, chain and receiver; %s; WAL %.1f kB, disk %.1f kB; %s", cpu.Service.Round(unit),
				cpu.Database.Round(unit), cpu.Client.Round(unit), counted.steps[i].each.counts(), max(0, s.each.wal/1e3), max(0, s.each.disk/1e3), s.note))
	}
}

// extrapolate adds rows of what the model says of a larger machine, without the clients' CPU time.
func (b *bench) extrapolate(kind string, model costmodel.Constants) {
	model.Create.Fixed.Client, model.Create.Each.Client, model.Deliver.Client, model.DeliverPaid.Client = 0, 0, 0, 0
	model.Seen.Fixed.Client, model.Seen.Each.Client, model.Final.Fixed.Client, model.Final.Each.Client = 0, 0, 0, 0
	where := fmt.Sprintf("%d CPUs, sync %v", largeCPUs, largeSync)
	for _, replicas := range []int{1, 3} {
		m := costmodel.Machine{CPUs: largeCPUs, Sync: largeSync, Replicas: replicas}
		made := costmodel.Creates(model, m, largeClients, b.creates)
		b.report.row(kind, fmt.Sprintf("creates/s by the model, %s, replicas: %d", where, replicas), fmt.Sprintf("%.0f", made.Rate), "", "",
			fmt.Sprintf("%d connections, transactions of %.1f; bounds: %s", largeClients, made.Batch, bounds(model.CreateLimits(m, made.Batch))))
	}
	m := costmodel.Machine{CPUs: largeCPUs, Sync: largeSync, Replicas: 1}
	limits := model.LifeLimits(m, connections, costBlock)
	least := slices.MinFunc(limits, func(a, b costmodel.Limit) int { return cmp.Compare(a.Rate, b.Rate) })
	b.report.row(kind, fmt.Sprintf("whole lives/s by the model, %s", where), fmt.Sprintf("%.0f", least.Rate), "", "",
		fmt.Sprintf("transactions of %d, blocks of %d; %.2f events each; bounds: %s", connections, costBlock, model.Events, bounds(limits)))
}

// bounds writes limits.
func bounds(limits []costmodel.Limit) string {
	var all []string
	for _, l := range limits {
		all = append(all, fmt.Sprintf("%s %.0f", l.Resource, l.Rate))
	}
	return strings.Join(all, ", ")
}

// model returns the constants of the model.
func (c *costs) model(hold costmodel.Hold) costmodel.Constants {
	n1, n2 := c.pair.batch(), c.crowd.batch()
	few, many := float64(c.few.payments), float64(c.many.payments)
	transfer := c.many.transfer.per(many)
	return costmodel.Constants{
		LaneShare: laneShare, Request: c.many.request.per(many).cpu.Client, Transfer: transfer.cpu.Client, TransferTime: transfer.took,
		Block: c.block.cpu, Deliver: c.event.cpu, DeliverPaid: c.blockEvent.cpu, Idle: c.idle.cpu, Hold: hold,
		Create: costmodel.BatchOf(n1, c.pair.per(c.pair.transactions).cpu, n2, c.crowd.per(c.crowd.transactions).cpu),
		Seen:   costmodel.BatchOf(few, c.few.seen.cpu, many, c.many.seen.cpu),
		Final:  costmodel.BatchOf(few, c.few.final.cpu, many, c.many.final.cpu),
	}
}

// machine is this one, of which other programs left some CPUs free during a measurement.
func machine(during usage, disk time.Duration) costmodel.Machine {
	return costmodel.Machine{CPUs: during.free(runtime.NumCPU()), Sync: disk, Replicas: 1}
}

// predicted adds a row of a prediction.
func (b *bench) predicted(kind, what string, predicted costmodel.Created, made creates, m costmodel.Machine) {
	measured := made.made / made.took.Seconds()
	b.report.row(kind, what, fmt.Sprintf("%.0f", predicted.Rate), fmt.Sprintf("%.0f", measured), fmt.Sprintf("%.2f", predicted.Rate/measured),
		fmt.Sprintf("ceiling: measured; CPU %v, and %v measured; transactions of %.1f, and %.1f measured; other programs left %.2f CPUs", predicted.CPU.Round(time.Microsecond),
			made.per(made.made).total().Round(time.Microsecond), predicted.Batch, made.batch(), m.CPUs))
}

// checkCreates compares predictions of creates with the service.
func (b *bench) checkCreates(ctx context.Context, kind string, model costmodel.Constants, disk time.Duration) error {
	r, err := b.startCost(ctx, kind, "checkedcreates", false, false)
	if err != nil {
		return err
	}
	return errors.Join(func() error {
		if err := r.prepare(ctx); err != nil {
			return err
		}
		for _, clients := range []int{4, 16, connections} {
			made, err := r.creating(ctx, r.together(clients, b.creates))
			if err != nil {
				return err
			}
			m := machine(made.usage, disk)
			b.predicted(kind, fmt.Sprintf("creates/s predicted, %d connections", clients), costmodel.Creates(model, m, clients, b.creates), made, m)
		}
		return nil
	}(), r.stop())
}

// checkLives compares the prediction of whole lives with the service. It counts the events of a life.
func (b *bench) checkLives(ctx context.Context, kind string, model *costmodel.Constants, disk time.Duration) error {
	r, err := b.startCost(ctx, kind, "checkedlives", false, true)
	if err != nil {
		return err
	}
	return errors.Join(func() error {
		if err := r.prepare(ctx); err != nil {
			return err
		}
		events := "SELECT count(*) FROM events"
		before, err := r.number(ctx, events)
		if err != nil {
			return err
		}
		made, err := r.creating(ctx, r.lives(b.creates))
		if err != nil {
			return err
		}
		after, err := r.number(ctx, events)
		if err != nil {
			return err
		}
		model.Events = float64(after-before) / made.made
		m := machine(made.usage, disk)
		b.predicted(kind, fmt.Sprintf("invoices/s created, paid and delivered, predicted, %d connections, a block every %v", lifeClients, lifeInterval),
			costmodel.Lives(*model, m, lifeClients, lifeInterval, b.creates), made, m)
		return nil
	}(), r.stop())
}
