package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

const (
	// depositNoise is how many transfers of strangers a block of measureDeposits has.
	depositNoise = 10_000
	// depositRounds is how many blocks of each kind are measured.
	depositRounds = 10
)

// depositFactory is the factory that the deposit addresses of a history derive from.
var depositFactory = invoice.Address{0xfa}

// measureDeposits measures how long a block of payments to deposit addresses takes from its
// sealing until it is read, with very many watched addresses, compared with a block of as
// many direct payments. Blocks of both kinds take turns.
func (b *bench) measureDeposits(ctx context.Context, kind string) (err error) {
	if b.million == 0 {
		return nil
	}
	n, err := b.holding(ctx, history{Blocks: 2, Noise: depositNoise, Singles: burst, Deposits: true})
	if err != nil {
		return err
	}
	database, err := b.url(ctx, kind, "deposits")
	if err != nil {
		return err
	}
	invoices := max(b.million, n.paidAfter(2*depositRounds))
	if err := seedHistory(ctx, database, n, invoices); err != nil {
		return err
	}
	s, err := startService(ctx, serverConfig{Database: database, RPC: n.WS, Token: n.Token, StartBlock: &n.First})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.caughtUp(ctx, n.HTTP); err != nil {
		return err
	}
	var took, used [2][]time.Duration
	for i := range 2 * depositRounds {
		before, err := s.cpu()
		if err != nil {
			return err
		}
		if err := n.sealFull(); err != nil {
			return err
		}
		sealed := time.Now()
		if err := s.caughtUp(ctx, n.HTTP); err != nil {
			return err
		}
		took[i%2] = append(took[i%2], time.Since(sealed))
		after, err := s.cpu()
		if err != nil {
			return err
		}
		used[i%2] = append(used[i%2], after-before)
	}
	if err := n.verifyDeposits(ctx, database); err != nil {
		return err
	}
	direct, deposit := quantile(took[0], 0.5), quantile(took[1], 0.5)
	b.report.row(kind, fmt.Sprintf("block of %d payments to deposit addresses and %d other transfers, %d addresses, sealed to read", burst, depositNoise, invoices),
		deposit, direct, fmt.Sprintf("%.2f", deposit.Seconds()/direct.Seconds()),
		fmt.Sprintf("ceiling: as many direct payments; medians of %d; CPU of the server %v and %v", depositRounds, quantile(used[1], 0.5), quantile(used[0], 0.5)))
	return nil
}

// paidAfter returns how many invoices are paid after so many more blocks.
func (n *node) paidAfter(blocks int) int { return (n.sealed + blocks) * n.perBlock() }

// verifyDeposits fails unless each payment of the blocks is that of its invoice.
func (n *node) verifyDeposits(ctx context.Context, database string) error {
	half := n.paidAfter(0) / 2
	for query, want := range map[string]int{
		"SELECT count(*) FROM payments WHERE method = 'transfer_amount' AND deposit_of IS NULL": half,
		"SELECT count(*) FROM payments WHERE method = 'deposit' AND deposit_of = invoice_id":    half,
		"SELECT count(*) FROM payments": 2 * half,
	} {
		got, err := count(ctx, database, query)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s: %d; want %d", query, got, want)
		}
	}
	return nil
}
