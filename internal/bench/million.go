package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/seed"
	"github.com/quittance/quittance/internal/store"
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
	if err := b.loadClosed(ctx, database, n); err != nil {
		return fmt.Errorf("make closed invoices: %w", err)
	}
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
	b.report.row(kind, fmt.Sprintf("resident memory, %d addresses and open invoices, %d closed", b.million, b.closed),
		fmt.Sprintf("%d MB", peak>>20), "", "", fmt.Sprintf(
			"its peak; %d MB after %d more blocks; %d payments back-filled in %.1fs; rows made in %.0fs",
			now>>20, quietBlocks, n.payments(), filled.Seconds(), seeded.Seconds()))
	return nil
}

// loadClosed fills a database with the invoices of a year, nearly all of them closed. The server
// will read the chain from the node's history on.
func (b *bench) loadClosed(ctx context.Context, database string, n *node) error {
	if b.closed == 0 {
		return nil
	}
	rows, err := seed.New(seed.Config{
		Invoices: b.closed, Merchants: max(listedMerchants, b.closed/listedOf), Until: time.Now(), KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
	})
	if err != nil {
		return err
	}
	eth, err := ethclient.DialContext(ctx, n.HTTP)
	if err != nil {
		return err
	}
	defer eth.Close()
	before, err := eth.HeaderByNumber(ctx, new(big.Int).SetUint64(n.First-1))
	if err != nil {
		return err
	}
	head := invoice.Header{Number: before.Number.Uint64(), Hash: invoice.Hash(before.Hash()), Time: time.Unix(int64(before.Time), 0)}
	return loadChanged(ctx, database, rows, func(r *store.Rows) {
		for i := range r.Chains {
			r.Chains[i].Head = head
		}
	})
}
