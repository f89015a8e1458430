package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/store/storetest"
)

const (
	// clients is how many create invoices at the same time over a link.
	clients = 100
	// minLinked is how long they do at least: connecting takes seconds.
	minLinked = 20 * time.Second
)

// measureLinks measures how many invoices are created in a second while PostgreSQL is far away.
// A create that is not answered with 201 ends the measurement with an error.
func (b *bench) measureLinks(ctx context.Context, kind string) error {
	if kind == "sqlite" {
		return nil // it is a file
	}
	for _, roundTrip := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond} {
		if err := b.measureLink(ctx, kind, roundTrip); err != nil {
			return fmt.Errorf("over %v: %w", roundTrip, err)
		}
	}
	return nil
}

func (b *bench) measureLink(ctx context.Context, kind string, roundTrip time.Duration) (err error) {
	during := max(b.creates, minLinked)
	near, err := b.url(ctx, kind, fmt.Sprintf("bare%d", roundTrip.Milliseconds()))
	if err != nil {
		return err
	}
	if err := prepareCeiling(ctx, near); err != nil {
		return err
	}
	bare, far, err := storetest.StartProxy(ctx, near, roundTrip)
	if err != nil {
		return err
	}
	ceiling, err := b.pgbench(ctx, far, clients, clients, during)
	if err := errors.Join(err, bare.Close()); err != nil {
		return err
	}
	if near, err = b.url(ctx, kind, fmt.Sprintf("link%d", roundTrip.Milliseconds())); err != nil {
		return err
	}
	link, far, err := storetest.StartProxy(ctx, near, roundTrip)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	w, err := b.start(ctx, serverConfig{Database: far})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return err
	}
	began := time.Now()
	made, err := create(ctx, w, clients, func(int64) bool { return time.Since(began) < during })
	if err != nil {
		return err
	}
	rate := float64(made) / time.Since(began).Seconds()
	b.report.ratio(kind, fmt.Sprintf("creates/s, %d at a time, %v to the database", clients, roundTrip), fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", ceiling),
		rate/ceiling, fmt.Sprintf("ceiling: pgbench, %d clients over the same link; none was refused", clients))
	return nil
}
