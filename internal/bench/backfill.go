package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// bareSpan is the number of blocks of one request of the bare loop: about 13 MB.
	bareSpan = 40
	// seedBatch is how many invoices go into one transaction.
	seedBatch = 5000
	// filledPoll is the interval at which the end of a back-fill is polled.
	filledPoll = 20 * time.Millisecond
	// fillPatience bounds a back-fill.
	fillPatience = 15 * time.Minute
)

// holding returns the node that holds the history. The first call makes it.
func (b *bench) holding(ctx context.Context, h history) (*node, error) {
	if n := b.nodes[h]; n != nil {
		return n, nil
	}
	n, err := startNode(ctx, h)
	if err == nil {
		b.nodes[h] = n
	}
	return n, err
}

func (b *bench) stopNodes() (err error) {
	for _, n := range b.nodes {
		err = errors.Join(err, n.stop())
	}
	return err
}

// measureBackfill measures how fast a server that was added late reads the history,
// compared with a bare loop that fetches and decodes the same logs.
func (b *bench) measureBackfill(ctx context.Context, kind string) error {
	n, err := b.holding(ctx, mixed(b.blocks))
	if err != nil {
		return err
	}
	if err := b.backfill(ctx, kind, n, n.HTTP); err != nil {
		return err
	}
	return b.backfill(ctx, kind, n, n.WS)
}

// measureSingles does the same with each payment in its own transaction, which takes the
// most requests to the node.
func (b *bench) measureSingles(ctx context.Context, kind string) error {
	n, err := b.holding(ctx, single(b.blocks))
	if err != nil {
		return err
	}
	return b.backfill(ctx, kind, n, n.WS)
}

func (b *bench) backfill(ctx context.Context, kind string, n *node, url string) (err error) {
	transport, _, _ := strings.Cut(url, ":")
	bare, note, err := n.ceiling(ctx, url)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("backfill_%s_%d", transport, n.Singles)
	database, err := b.url(ctx, kind, name)
	if err != nil {
		return err
	}
	if err := seedHistory(ctx, database, n, n.payments()); err != nil {
		return err
	}
	conf := serverConfig{Database: database, RPC: url, Token: n.Token, StartBlock: &n.First}
	if b.profile != "" {
		conf.Profile = filepath.Join(b.profile, kind+"_"+name+".pprof")
	}
	nodeBefore, err := n.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := startService(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := n.filled(ctx, s); err != nil {
		return err
	}
	took := time.Since(began)
	used, err := s.cpu()
	if err != nil {
		return err
	}
	nodeUsed, err := n.cpu()
	if err != nil {
		return err
	}
	events, err := n.verify(ctx, database)
	if err != nil {
		return err
	}
	b.report.ratio(kind, fmt.Sprintf("logs/s back-filled over %s, %d of %d match in %d transactions", transport, n.payments(), n.logs(), n.transactions()),
		n.rate(took), n.rate(bare), bare.Seconds()/took.Seconds(), "ceiling: "+note)
	b.report.row(kind, "events/s written by it over "+transport, fmt.Sprintf("%.0f", float64(events)/took.Seconds()), "", "",
		fmt.Sprintf("%d events in %.1fs; CPU %.1fs of the server, %.1fs of the node",
			events, took.Seconds(), used.Seconds(), (nodeUsed-nodeBefore).Seconds()))
	return nil
}

// rate returns logs of the history per second.
func (n *node) rate(took time.Duration) string {
	return fmt.Sprintf("%.0f", float64(n.logs())/took.Seconds())
}

// filled waits until the newest payment of the history has paid its invoice;
// blocks are applied in order.
func (n *node) filled(ctx context.Context, s *service) error {
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	last := n.invoiceOf(n.payments()-1, n.Token, time.Now()).ID
	for poll := time.NewTicker(filledPoll); ; {
		inv, err := s.api.Invoice(ctx, last)
		if err != nil {
			return fmt.Errorf("wait for the last payment of the history: %w", err)
		}
		if inv.Status == "paid" {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the last payment of the history: %w", ctx.Err())
		}
	}
}

// verify fails unless each payment of the history paid its invoice, and returns the number
// of their events.
func (n *node) verify(ctx context.Context, database string) (events int, err error) {
	for _, check := range []struct {
		query string
		want  int
	}{
		{"SELECT count(*) FROM payments WHERE status = 'confirmed' AND method = 'transfer_amount'", n.payments()},
		{"SELECT count(*) FROM payments", n.payments()},
		{"SELECT count(*) FROM invoices WHERE status = 'paid' AND exception = ''", n.payments()},
		{"SELECT count(*) FROM events WHERE type = 'payment.received'", n.payments()},
		{"SELECT count(*) FROM events", 2 * n.payments()},
	} {
		if events, err = count(ctx, database, check.query); err != nil {
			return 0, err
		}
		if events != check.want {
			return 0, fmt.Errorf("%s: %d; want %d", check.query, events, check.want)
		}
	}
	return events, nil
}

// ceiling returns how long the fastest bare loop of go-ethereum's client took,
// and says how fast it was with the service's decoder. Each is measured once.
func (n *node) ceiling(ctx context.Context, url string) (time.Duration, string, error) {
	if known, ok := n.ceilings[url]; ok {
		return known.best, known.note, nil
	}
	eth, err := ethclient.DialContext(ctx, url)
	if err != nil {
		return 0, "", err
	}
	defer eth.Close()
	own, err := chain.NewClient(chain.ClientConfig{URL: url})
	if err != nil {
		return 0, "", err
	}
	defer own.Close()
	filter := chain.LogFilter{Addresses: []common.Address{common.Address(n.Token)}, Topics: []common.Hash{chain.TransferTopic}}
	plain, inFlight, err := n.bestBareLoop(ctx, func(first, last uint64) ([]types.Log, error) {
		return eth.FilterLogs(ctx, ethereum.FilterQuery{
			FromBlock: new(big.Int).SetUint64(first), ToBlock: new(big.Int).SetUint64(last),
			Addresses: filter.Addresses, Topics: [][]common.Hash{filter.Topics},
		})
	})
	if err != nil {
		return 0, "", fmt.Errorf("bare loop: %w", err)
	}
	quick, _, err := n.bestBareLoop(ctx, func(first, last uint64) ([]types.Log, error) {
		return own.LogsInRange(ctx, first, last, filter)
	})
	if err != nil {
		return 0, "", fmt.Errorf("bare loop with the service's decoder: %w", err)
	}
	c := ceiling{plain, fmt.Sprintf("ethclient's FilterLogs, %d in flight; %s with the service's decoder", inFlight, n.rate(quick))}
	n.ceilings[url] = c
	return c.best, c.note, nil
}

// ceiling is the time of the fastest bare loop, and its name.
type ceiling struct {
	best time.Duration
	note string
}

// bestBareLoop returns the time of the faster of two bare loops, and how many ranges it had
// in flight.
func (n *node) bestBareLoop(ctx context.Context, fetch func(first, last uint64) ([]types.Log, error)) (best time.Duration, inFlight int, err error) {
	for _, many := range []int{1, 4} {
		took, err := n.bareLoop(ctx, many, fetch)
		if err != nil {
			return 0, 0, err
		}
		if best == 0 || took < best {
			best, inFlight = took, many
		}
	}
	return best, inFlight, nil
}

// bareLoop fetches and decodes the history's logs, with a number of ranges in flight.
func (n *node) bareLoop(ctx context.Context, inFlight int, fetch func(first, last uint64) ([]types.Log, error)) (time.Duration, error) {
	began := time.Now()
	var next, found atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range inFlight {
		group.Go(func() error {
			for ctx.Err() == nil {
				first := n.First + uint64(next.Add(1)-1)*bareSpan
				if first > n.Last {
					return nil
				}
				logs, err := fetch(first, min(first+bareSpan-1, n.Last))
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

// seedHistory fills a database with open invoices, of which the history pays the first, and with an
// address for each: a settlement or deposit address. The settlement addresses of the shops
// are in the first batch.
func seedHistory(ctx context.Context, url string, n *node, invoices int) (err error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	now := time.Now()
	for first := 0; first < invoices; first += seedBatch {
		err := s.Update(ctx, func(tx *store.Tx) error {
			var rows []invoice.Invoice
			var addresses []store.SettlementAddress
			for i := first; i < min(first+seedBatch, invoices); i++ {
				rows = append(rows, n.invoiceOf(i, n.Token, now))
				if i < shops || !n.paysDeposit(i) {
					addresses = append(addresses, store.SettlementAddress{ChainKey: chain.Local, Address: account(i), MerchantID: "shop"})
				}
			}
			if err := tx.InsertSettlementAddresses(ctx, addresses, now); err != nil {
				return err
			}
			inserted, err := tx.InsertInvoices(ctx, rows)
			if err == nil && len(inserted) != len(rows) {
				err = fmt.Errorf("of %d invoices %d are new", len(rows), len(inserted))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("seed the database: %w", err)
		}
	}
	return nil
}
