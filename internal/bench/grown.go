package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// grownCreates is how many invoices are created in a turn.
	grownCreates = 20_000
	// warmingTurns is how many turns of creates read the pages of the many invoices before any is measured: after the
	// load, most of the pages are on disk.
	warmingTurns = 5
)

// measureGrown measures how many invoices are created in a second, and what each writes to PostgreSQL's log, with few
// and with many invoices in turns. A turn begins with a checkpoint, so that each page is written whole when it is
// changed first. The first turns are not counted, one with few invoices and warmingTurns with many. Its rounds share
// the databases, as those of lists do.
func (b *bench) measureGrown(ctx context.Context, kind string) (err error) {
	few, many, err := b.startFewAndMany(ctx, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.stop(), many.stop()) }()
	if _, err := b.createIn(ctx, kind, few); err != nil {
		return err
	}
	for range warmingTurns {
		if _, err := b.createIn(ctx, kind, many); err != nil {
			return err
		}
	}
	for range b.rounds {
		was, err := b.createIn(ctx, kind, few)
		if err != nil {
			return err
		}
		is, err := b.createIn(ctx, kind, many)
		if err != nil {
			return err
		}
		b.report.row(kind, fmt.Sprintf("creates/s, %d connections, with %d invoices", connections, b.listed), fmt.Sprintf("%.0f", is.rate), fmt.Sprintf("%.0f", was.rate), fmt.Sprintf("%.2f", is.rate/was.rate),
			fmt.Sprintf("ceiling: with %d; %d created in each turn", listedFew, grownCreates))
		if kind == "postgres" {
			b.report.row(kind, fmt.Sprintf("kB of WAL for a create, with %d invoices", b.listed), fmt.Sprintf("%.1f", is.wal/1000), fmt.Sprintf("%.1f", was.wal/1000), fmt.Sprintf("%.2f", is.wal/was.wal), fmt.Sprintf("ceiling: with %d", listedFew))
		}
	}
	b.report.merge(b.rounds)
	return nil
}

// turnOfCreates is what a turn of creates gave.
type turnOfCreates struct {
	rate float64 // in a second
	wal  float64 // bytes for each; 0 on SQLite
}

// createIn creates invoices in a database with others.
func (b *bench) createIn(ctx context.Context, kind string, l listed) (t turnOfCreates, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("with %d invoices: %w", l.Invoices, err)
		}
	}()
	written := func() (bytes int, err error) { return 0, nil }
	if kind == "postgres" {
		if err := execute(ctx, l.conf.Database, "CHECKPOINT"); err != nil {
			return t, err
		}
		written = func() (bytes int, err error) {
			return count(ctx, l.conf.Database, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
		}
	}
	before, err := written()
	if err != nil {
		return t, err
	}
	began := time.Now()
	made, err := create(ctx, l.world, connections, func(n int64) bool { return n <= grownCreates })
	if err != nil {
		return t, err
	}
	took := time.Since(began)
	after, err := written()
	return turnOfCreates{float64(made) / took.Seconds(), float64(after-before) / float64(max(1, made))}, err
}
