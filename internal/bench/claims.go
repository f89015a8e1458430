package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/store"
)

// accepted answers every request with 200, without a network.
type accepted struct{}

// RoundTrip is http.RoundTripper's.
func (accepted) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// claimed is the result of a measurement of leasing.
type claimed struct {
	leases     []time.Duration
	deliveries int64
}

// measureClaims measures how long leasing takes with very many waiting deliveries, with and
// without another transaction that holds a snapshot of the database. A snapshot keeps the
// database from removing the rows of what was delivered since.
func (b *bench) measureClaims(ctx context.Context, kind string) (err error) {
	if kind != "postgres" || b.waiting == 0 {
		return nil
	}
	s, database, err := b.openStore(ctx, kind, "claims")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := schedule(ctx, s, merchantNames("m", deliverMerchants), b.waiting/deliverMerchants, time.Now()); err != nil {
		return err
	}
	if err := execute(ctx, database, "ANALYZE"); err != nil {
		return err
	}
	without, err := b.claim(ctx, s)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT count(*) FROM merchants"); err != nil { // takes the snapshot
		return err
	}
	with, err := b.claim(ctx, s)
	if err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	if err := tx.Rollback(ctx); err != nil {
		return err
	}
	if len(with.leases) == 0 {
		return fmt.Errorf("all %d waiting deliveries were leased before the snapshot; give more by -waiting, or a shorter -snapshot", b.waiting)
	}
	p99, ceiling := quantile(with.leases, 0.99), quantile(without.leases, 0.99)
	b.report.row(kind, fmt.Sprintf("lease, p99, %d waiting, snapshot open for %v", b.waiting, b.snapshot), p99, ceiling,
		fmt.Sprintf("%.2f", float64(p99)/float64(ceiling)),
		fmt.Sprintf("ceiling: without a snapshot; medians %v and %v, in the last quarter p99 %v; %d and %d delivered", quantile(with.leases, 0.5),
			quantile(without.leases, 0.5), quantile(with.leases[len(with.leases)*3/4:], 0.99), with.deliveries, without.deliveries))
	return nil
}

// claim has a worker lease deliveries, which succeed without a network, for the time of a
// snapshot.
func (b *bench) claim(ctx context.Context, s *store.Store) (claimed, error) {
	d := newDeliverer(s, &http.Client{Transport: accepted{}}, func(string) string { return "http://127.0.0.1/" })
	err := d.while(ctx, func(ctx context.Context) error {
		select {
		case <-time.After(b.snapshot):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return claimed{d.leases, d.done.Load()}, err
}
