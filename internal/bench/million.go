package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// quietBlocks are the blocks of ten minutes at two seconds each.
const quietBlocks = 300

// measureMillion measures the server's resident memory with very many settlement addresses
// and open invoices, while it back-fills the history and follows blocks of ten minutes.
func (b *bench) measureMillion(ctx context.Context, kind string) (err error) {
	if b.million == 0 {
		return nil
	}
	n, err := b.holding(ctx, mixed(b.blocks))
	if err != nil {
		return err
	}
	database, err := b.url(ctx, kind, "million")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := seedHistory(ctx, database, n, max(b.million, n.payments())); err != nil {
		return err
	}
	seeded := time.Since(began)
	s, err := startService(ctx, serverConfig{Database: database, RPC: n.WS, Token: n.Token, StartBlock: &n.First})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	began = time.Now()
	if err := n.filled(ctx, s); err != nil {
		return err
	}
	filled := time.Since(began)
	for range quietBlocks {
		if err := n.seal(); err != nil {
			return err
		}
	}
	if err := s.caughtUp(ctx, n.HTTP); err != nil {
		return err
	}
	now, peak, err := s.memory()
	if err != nil {
		return err
	}
	b.report.row(kind, fmt.Sprintf("resident memory, %d addresses and open invoices", b.million),
		fmt.Sprintf("%d MB", peak>>20), "", "", fmt.Sprintf(
			"its peak; %d MB after %d more blocks; %d payments back-filled in %.1fs; rows made in %.0fs",
			now>>20, quietBlocks, n.payments(), filled.Seconds(), seeded.Seconds()))
	return nil
}
