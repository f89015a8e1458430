package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
)

// measureExpiry measures how long it takes until all of the invoices that expire in the same
// second have, and the latency of creates without and with that.
func (b *bench) measureExpiry(ctx context.Context, kind string) (err error) {
	bare, err := b.expiryCeiling(ctx, kind)
	if err != nil {
		return err
	}
	url, err := b.url(ctx, kind, "expiry")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: url, Profile: b.profileOf("expiry_" + kind)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return err
	}
	at := time.Now().Truncate(time.Second).Add(time.Second)
	if err := appendRows(ctx, url, openRows(b.expiring, at)); err != nil {
		return fmt.Errorf("make rows: %w", err)
	}
	if err := settleRows(ctx, url); err != nil {
		return err
	}
	c := newTimedCreates(w.server.url, devchain.Address(w.node.Keys.Merchant).Hex())
	defer c.client.CloseIdleConnections()
	without, err := c.run(ctx, func(began time.Time) (bool, error) { return time.Since(began) > 2*b.turn, nil })
	if err != nil {
		return err
	}
	local, _ := chain.Lookup(chain.Local)
	for range local.Finality.Depth + 1 {
		if err := w.node.Seal(ctx); err != nil {
			return err
		}
	}
	sealed := time.Now()
	const left = "SELECT count(*) FROM (SELECT 1 FROM invoices WHERE chain_key = $1 AND status = 'open' AND expires_at <= $2 LIMIT 1) AS due"
	db, err := openSQL(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var took time.Duration
	with, err := c.run(ctx, func(time.Time) (bool, error) {
		var n int
		err := db.QueryRowContext(ctx, left, chain.Local, at.Unix()).Scan(&n)
		took = time.Since(sealed)
		return n == 0, err
	})
	if err != nil {
		return err
	}
	rate := float64(b.expiring) / took.Seconds()
	b.report.row(kind, fmt.Sprintf("%d invoices of one second, all expired", b.expiring), fmt.Sprintf("%.0f/s", rate), fmt.Sprintf("%.0f/s", bare), fmt.Sprintf("%.2f", rate/bare),
		fmt.Sprintf("ceiling: a bare loop of the same updates and inserts, %d in a transaction; took %v, and %d invoices were created meanwhile", bareBatch, took.Round(10*time.Millisecond), len(with)))
	b.report.creates(kind, "while they expire", "before", with, without, "")
	return nil
}
