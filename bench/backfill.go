package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
)

const (
	// bareSpan is the number of blocks per request of the bare loop, about 13 MB, and bareInFlight is the number of
	// parallel requests.
	bareSpan, bareInFlight = 40, 4
	// fillPatience bounds a back-fill, and filledPoll is the interval at which its end is polled.
	fillPatience, filledPoll = 15 * time.Minute, 20 * time.Millisecond
)

// measureBackfill measures how fast a server that was added late reads the history over HTTP. The baseline is a bare
// loop that fetches and decodes the same logs.
func measureBackfill(ctx context.Context, r *measurement) (err error) {
	n, err := r.holding(ctx, backfilled(r.Blocks))
	if err != nil {
		return err
	}
	if n.baseline == 0 {
		if n.baseline, err = n.bareLoop(ctx); err != nil {
			return fmt.Errorf("bare loop: %w", err)
		}
	}
	payments := n.payments()
	url, err := r.newFilled(ctx, fillConfig{History: &n.history, Open: payments, Shared: payments, Token: n.Token})
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := r.startServer(ctx, n, serverConfig{Database: url, RPC: n.HTTP, StartBlock: &n.First})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.waitFilled(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	used, err := s.cpuFor(int64(payments), 0)
	if err != nil {
		return err
	}
	r.faster(figure{
		What: fmt.Sprintf("logs back-filled, %d of %d match", payments, n.logs()), Unit: "/s",
		Value: perSecond(n.logs(), took), Baseline: perSecond(n.logs(), n.baseline),
		BaselineIs: fmt.Sprintf("ethclient's FilterLogs, %d in flight", bareInFlight),
	})
	r.slower(figure{What: "CPU time of the server for a back-filled payment", Unit: "µs", Value: used})
	return expect(ctx, url, map[string]int{
		"SELECT count(*) FROM payments":                                          payments,
		"SELECT count(*) FROM payments WHERE status <> 'confirmed'":              0,
		"SELECT count(*) FROM invoices WHERE status = 'paid' AND exception = ''": payments,
		"SELECT count(*) FROM events WHERE type = 'payment.received'":            payments,
		"SELECT count(*) FROM events":                                            2 * payments,
	})
}

// waitFilled waits until the newest payment of the history has paid its invoice; blocks are applied in order.
func (s *service) waitFilled(ctx context.Context) error {
	last := s.node.invoiceOf(s.node.payments()-1, false, s.node.Token, time.Now()).ID
	return poll(ctx, "the last invoice is paid", filledPoll, fillPatience, func(ctx context.Context) (bool, error) {
		var answer struct{ Invoice struct{ Status string } }
		_, err := s.get(ctx, "/api/invoices/"+last, &answer)
		return answer.Invoice.Status == "paid", err
	})
}

// bareLoop fetches and decodes the history's logs, and returns how long that takes.
func (n *node) bareLoop(ctx context.Context) (time.Duration, error) {
	eth, err := ethclient.DialContext(ctx, n.HTTP)
	if err != nil {
		return 0, err
	}
	defer eth.Close()
	began := time.Now()
	var next, found atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range bareInFlight {
		group.Go(func() error {
			for ctx.Err() == nil {
				first := n.First + uint64(next.Add(1)-1)*bareSpan
				if first > n.Last {
					return nil
				}
				last := min(first+bareSpan-1, n.Last)
				logs, err := eth.FilterLogs(ctx, ethereum.FilterQuery{
					FromBlock: new(big.Int).SetUint64(first), ToBlock: new(big.Int).SetUint64(last),
					Addresses: []common.Address{common.Address(n.Token)},
					Topics:    [][]common.Hash{{chain.TransferTopic}},
				})
				if err != nil {
					return err
				}
				found.Add(int64(len(logs)))
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if found.Load() != int64(n.logs()) {
		return 0, fmt.Errorf("found %d logs; want %d", found.Load(), n.logs())
	}
	return time.Since(began), nil
}
