package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// expiryRate is how many invoices are created in a second meanwhile.
	expiryRate = 200
	// expiryPoll is the interval at which the database is asked whether all have expired.
	expiryPoll = 200 * time.Millisecond
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

// creates reports the latency of timedCreates with other work and without.
func (r *report) creates(kind, during, before string, with, without []time.Duration, more string) {
	figure, ceiling := quantile(with, 0.99), quantile(without, 0.99)
	r.row(kind, fmt.Sprintf("create, %d/s, p99 %s", expiryRate, during), figure, ceiling, fmt.Sprintf("%.2f", float64(figure)/float64(ceiling)),
		fmt.Sprintf("ceiling: %s; medians %v and %v, slowest %v and %v%s", before, quantile(with, 0.5), quantile(without, 0.5), quantile(with, 1), quantile(without, 1), more))
}

// timedCreates creates invoices at a steady rate.
type timedCreates struct {
	url      string // of the server
	merchant string // its address
	client   *http.Client
	made     int
}

func newTimedCreates(url, merchant string) *timedCreates {
	return &timedCreates{url: url, merchant: merchant, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}}
}

// run creates invoices until done returns true, which is asked every expiryPoll, and returns
// how long each create took from when it was due.
func (c *timedCreates) run(ctx context.Context, done func(began time.Time) (bool, error)) ([]time.Duration, error) {
	creating, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	var mu sync.Mutex
	var took []time.Duration
	group, creating := errgroup.WithContext(creating)
	group.Go(func() error {
		defer stop()
		for {
			if ended, err := done(began); ended || err != nil {
				return err
			}
			if !wait.Sleep(creating, expiryPoll, nil) {
				return creating.Err()
			}
		}
	})
	expires := began.Add(24 * time.Hour).Unix()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / expiryRate)
		if !wait.Sleep(creating, time.Until(due), nil) {
			break
		}
		c.made++
		body := newInvoice(aShop, c.merchant, int64(499_000+c.made), expires) // of other amounts than those that expire
		group.Go(func() error {
			err := post(ctx, c.client, c.url+"/api/invoices", "", body)
			mu.Lock()
			took = append(took, time.Since(due))
			mu.Unlock()
			return err
		})
	}
	err := group.Wait()
	slices.Sort(took)
	return took, err
}
