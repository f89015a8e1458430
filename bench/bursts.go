package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
)

const (
	// burstPaid and burstStrays are the numbers of payments in a block: payments of invoices, and of amounts that match
	// no invoice.
	burstPaid, burstStrays = 450, 50
	burst                  = burstPaid + burstStrays
	// burstPoll is the interval at which the API is polled for the last payment. Polling takes CPU time of the server.
	burstPoll = 5 * time.Millisecond
	// burstWait is the interval at which the service looks for a block, so that its wait is a small part of the time.
	burstWait = 20 * time.Millisecond
	// warmBursts are bursts before the ones that count.
	warmBursts = 1
)

// measureBursts measures the time from the sealing of a block with many payments to one address until the API lists the
// last of them. Many invoices are open at the address, and the last payment is stored with or after all others. The
// baseline is the service with few invoices, in turns, so that the ratio does not depend on the machine. The service
// with few is compared with a bare loop that reads the same data from the node, and copies rows like the block's
// payments and events without any rules.
func measureBursts(ctx context.Context, r *measurement) (err error) {
	open := []int{burstPaid * (warmBursts + r.Bursts), r.Open}
	if open[1] <= open[0] {
		return fmt.Errorf("-open %d must be more than the %d invoices that are paid", open[1], open[0])
	}
	services := make([]*service, len(open))
	for i, n := range open {
		if services[i], err = r.startBursts(ctx, n); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, services[i].stop(), services[i].node.stop()) }()
	}
	var took [2][]time.Duration
	var copied []time.Duration
	for round := range warmBursts + r.Bursts {
		for turn := range services {
			i := (round + turn) % len(services) // each is first in half of the rounds
			one, err := services[i].burst(ctx)
			if err != nil {
				return err
			}
			if round >= warmBursts {
				took[i] = append(took[i], one)
			}
		}
	}
	for range r.Bursts { // at the end, because it writes to the database of the service with few
		one, err := services[0].bareBurst(ctx)
		if err != nil {
			return fmt.Errorf("bare loop: %w", err)
		}
		copied = append(copied, one)
	}
	for i, s := range services {
		blocks := warmBursts + r.Bursts
		if err := expect(ctx, s.database, map[string]int{
			"SELECT count(*) FROM payments WHERE invoice_id IS NOT NULL": blocks * burstPaid,
			"SELECT count(*) FROM payments WHERE invoice_id IS NULL":     blocks * burstStrays,
		}); err != nil {
			return fmt.Errorf("with %d open invoices: %w", open[i], err)
		}
	}
	few, many := quantile(took[0], 0.5), quantile(took[1], 0.5)
	what := fmt.Sprintf("block of %d payments, from sealed to listed", burst)
	r.slower(figure{
		What: fmt.Sprintf("%s, %d open at the address", what, open[1]), Unit: "ms", Value: many, Baseline: few,
		BaselineIs: fmt.Sprintf("%d open; medians of %d, in turns", open[0], r.Bursts),
	})
	r.slower(figure{
		What: fmt.Sprintf("%s, %d open at the address", what, open[0]), Unit: "ms", Value: few,
		Baseline: quantile(copied, 0.5), BaselineIs: "a bare loop that reads and copies the same", unchecked: true,
	})
	return nil
}

// startBursts starts a node, and a server on a database with open invoices of one address.
func (r *measurement) startBursts(ctx context.Context, open int) (_ *service, err error) {
	h := history{Paid: burstPaid, Strays: burstStrays, Shops: 1}
	n, err := startNode(ctx, r.self, h)
	if err != nil {
		return nil, err
	}
	database, err := r.newFilled(ctx, fillConfig{History: &h, Open: open, Shared: open, Token: n.Token})
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	s, err := r.startServer(ctx, n, serverConfig{Database: database, Registry: n.Registry, PollInterval: burstWait})
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	if err := s.waitCaughtUp(ctx); err != nil {
		return nil, errors.Join(err, s.stop(), n.stop())
	}
	return s, nil
}

// burst pays many invoices in one block, and returns how long after its sealing the API lists the last payment.
func (s *service) burst(ctx context.Context) (time.Duration, error) {
	block, err := s.node.seal(fullBlock)
	if err != nil {
		return 0, err
	}
	path := fmt.Sprintf("/api/payments?include=pending,unattributed&candidates=false&txHash=%s", block.LastTx)
	err = poll(ctx, "the last payment is listed", burstPoll, patience, func(ctx context.Context) (bool, error) {
		var page struct{ Payments []json.RawMessage }
		_, err := s.get(ctx, path, &page)
		return len(page.Payments) > 0, err
	})
	return time.Since(block.At), err
}

// bareTables are the tables from which a block's rows are copied, with the column that identifies the newest.
var bareTables = map[string]string{"payments": "seen_id", "events": "seq"}

// bareBurst reads the newest block from the node as the service does, copies as many payments and events as the block
// has, and returns how long that took.
func (s *service) bareBurst(ctx context.Context) (took time.Duration, err error) {
	copies, err := prepareCopies(ctx, s.database)
	if err != nil {
		return 0, err
	}
	node, err := rpc.DialContext(ctx, s.node.HTTP)
	if err != nil {
		return 0, err
	}
	defer node.Close()
	began := time.Now()
	eth := ethclient.NewClient(node)
	head, err := eth.HeaderByNumber(ctx, nil)
	if err != nil {
		return 0, err
	}
	logs, err := eth.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: head.Number, ToBlock: head.Number, Topics: [][]common.Hash{{chain.TransferTopic}},
	})
	if err != nil {
		return 0, err
	}
	if len(logs) != burst {
		return 0, fmt.Errorf("the block has %d transfers, want %d", len(logs), burst)
	}
	if _, err := eth.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(head.Hash(), false)); err != nil {
		return 0, err
	}
	if _, err := eth.BlockByHash(ctx, head.Hash()); err != nil { // with its transactions
		return 0, err
	}
	err = execute(ctx, s.database, copies)
	return time.Since(began), err
}

// prepareCopies makes empty tables like bareTables, without indexes. It returns statements that copy the newest rows to
// them in one transaction.
func prepareCopies(ctx context.Context, database string) (string, error) {
	copies := "BEGIN;"
	for table, key := range bareTables {
		const empty = "DROP TABLE IF EXISTS bare_%[1]s; CREATE TABLE bare_%[1]s AS SELECT * FROM %[1]s LIMIT 0"
		if err := execute(ctx, database, fmt.Sprintf(empty, table)); err != nil {
			return "", err
		}
		const newest = "INSERT INTO bare_%[1]s SELECT * FROM %[1]s ORDER BY %[2]s DESC LIMIT %[3]d;"
		copies += fmt.Sprintf(newest, table, key, burst)
	}
	return copies + "COMMIT", nil
}
