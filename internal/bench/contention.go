package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
)

// measureContention measures the latency of creates without other work and during it: many deliveries that fall due
// at once, and the back-fill of a history on a database of its own. Both take what the machine has.
func (b *bench) measureContention(ctx context.Context, kind string) error {
	without, err := b.createsAndDeliveries(ctx, kind)
	if err != nil {
		return err
	}
	return b.createsAndBackfill(ctx, kind, without)
}

func (b *bench) createsAndDeliveries(ctx context.Context, kind string) (without []time.Duration, err error) {
	sink, port, err := startProcess(ctx, "sink", struct{}{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.stop()) }()
	url, err := b.url(ctx, kind, "contention_deliveries")
	if err != nil {
		return nil, err
	}
	w, err := b.start(ctx, serverConfig{Database: url, Webhook: poster.Endpoint{URL: "http://127.0.0.1:" + port, Secret: deliverSecret}, Profile: b.profileOf("contention_deliveries_" + kind)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return nil, err
	}
	last, err := scheduleLater(ctx, url, b.bursting, time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	c := newTimedCreates(w.server.url, devchain.Address(w.node.Keys.Merchant).Hex())
	defer c.client.CloseIdleConnections()
	without, err = c.run(ctx, func(began time.Time) (bool, error) { return time.Since(began) > 2*b.turn, nil })
	if err != nil {
		return nil, err
	}
	db, err := openSQL(url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "UPDATE deliveries SET due_ms = $1 WHERE seq <= $2", time.Now().UnixMilli(), last); err != nil {
		return nil, err
	}
	left := func(all int) func(time.Time) (bool, error) { // whether fewer are left
		return func(time.Time) (bool, error) {
			var n int
			err := db.QueryRowContext(ctx, "SELECT count(*) FROM deliveries WHERE seq <= $1", last).Scan(&n)
			return n < all, err
		}
	}
	if _, err := c.run(ctx, left(b.bursting/deliverMerchants*deliverMerchants)); err != nil { // the server sees them within seconds
		return nil, err
	}
	began := time.Now()
	with, err := c.run(ctx, left(1))
	if err != nil {
		return nil, err
	}
	b.reportContention(kind, fmt.Sprintf("%d deliveries", b.bursting), "without", without, with, time.Since(began))
	return without, nil
}

// scheduleLater inserts events into the database of a server that does not deliver them yet, and returns the newest.
func scheduleLater(ctx context.Context, url string, events int, due time.Time) (last int64, err error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := schedule(ctx, s, merchantNames("b", deliverMerchants), events/deliverMerchants, due); err != nil {
		return 0, err
	}
	n, err := count(ctx, url, "SELECT max(seq) FROM events")
	return int64(n), err
}

func (b *bench) createsAndBackfill(ctx context.Context, kind string, without []time.Duration) (err error) {
	n, err := b.holding(ctx, mixed(b.blocks))
	if err != nil {
		return err
	}
	url, err := b.url(ctx, kind, "contention_backfill")
	if err != nil {
		return err
	}
	if err := seedHistory(ctx, url, n, n.payments()); err != nil {
		return err
	}
	if err := settleRows(ctx, url); err != nil {
		return err
	}
	s, err := startService(ctx, serverConfig{Database: url, RPC: n.WS, Token: n.Token, StartBlock: &n.First, Profile: b.profileOf("contention_backfill_" + kind)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	c := newTimedCreates(s.url, account(0).String())
	defer c.client.CloseIdleConnections()
	began := time.Now()
	last := n.invoiceOf(n.payments()-1, n.Token, began).ID
	with, err := c.run(ctx, func(time.Time) (bool, error) {
		inv, err := s.api.Invoice(ctx, last)
		return inv.Status == "paid", err
	})
	if err != nil {
		return err
	}
	b.reportContention(kind, fmt.Sprintf("a back-fill of %d payments", n.payments()), "without, on another database", without, with, time.Since(began))
	return nil
}

func (b *bench) reportContention(kind, work, before string, without, with []time.Duration, took time.Duration) {
	b.report.creates(kind, "during "+work, before, with, without, fmt.Sprintf("; it took %v", took.Round(10*time.Millisecond)))
}
