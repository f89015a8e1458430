package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// churnPaid: one of so many invoices is paid; the others expire after churnLifetime.
	churnPaid, churnLifetime = 20, 30 * time.Second
	// churnMerchants is the number of merchants, each with an address.
	churnMerchants = 100
	// churnBlock is the time between two blocks, and churnSample that between two samples of
	// the tables.
	churnBlock, churnSample = time.Second, 5 * time.Second
)

// measureChurn measures how PostgreSQL's tables grow while invoices are created at a rate, paid or
// expired, their events delivered, and old events removed by a retention of minutes.
func (b *bench) measureChurn(ctx context.Context, kind string) (err error) {
	if kind == "sqlite" || b.churn == 0 {
		return nil
	}
	sink, port, err := startProcess(ctx, "sink", struct{}{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.stop()) }()
	url, err := b.url(ctx, kind, "churn")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: url, Webhook: poster.Endpoint{URL: "http://127.0.0.1:" + port, Secret: deliverSecret}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return err
	}
	tables, err := newTableSamples(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tables.close()) }()
	c := churn{world: w, url: url, rate: b.churnRate, keep: cmp.Or(b.churnKeep, b.churn/8), began: time.Now(), during: b.churn, tables: tables}
	if err := c.run(ctx); err != nil {
		return err
	}
	return c.report(ctx, b.report, kind)
}

// churn is a run of measureChurn.
type churn struct {
	*world

	url          string
	rate         int
	keep, during time.Duration
	began        time.Time
	tables       *tableSamples
	behind       atomic.Int64 // creates that were begun late by a second and more
	refused      atomic.Int64 // creates with errRefused

	mu   sync.Mutex
	took [4][]time.Duration // of creates from when they were due, by the quarter of the time
}

// run does all work at the same time, until the time is over.
func (c *churn) run(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, c.during)
	defer stop()
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error { return c.create(working) })
	group.Go(func() error { return c.pay(working) })
	group.Go(func() error { return c.seal(working) })
	group.Go(func() error { return c.clean(working) })
	group.Go(func() error { return c.tables.run(working, c.during) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// create creates invoices at the rate.
func (c *churn) create(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var begun atomic.Int64
	group, creating := errgroup.WithContext(ctx)
	for range connections {
		group.Go(func() error {
			for {
				n := begun.Add(1)
				due := c.began.Add(time.Duration(n) * time.Second / time.Duration(c.rate))
				if !wait.Sleep(creating, time.Until(due), nil) {
					return nil
				}
				if time.Since(due) > time.Second {
					c.behind.Add(1)
				}
				switch err := post(creating, client, c.server.url+"/api/invoices", "", churnedInvoice(n)); {
				case creating.Err() != nil:
					return nil //nolint:nilerr // the time is over
				case errors.Is(err, errRefused):
					c.refused.Add(1)
					continue
				case err != nil:
					return err
				}
				c.note(time.Since(due))
			}
		})
	}
	return group.Wait()
}

// churnedInvoice returns the request for the nth invoice that expires, of one of churnMerchants.
func churnedInvoice(n int64) []byte {
	merchant, to := n%churnMerchants, account(int(n%churnMerchants))
	return fmt.Appendf(nil, `{"merchantId":"m%d","merchantAddress":"%s","amount":"%d","currency":"USDC","chainKey":"local","expiresAt":%d}`,
		merchant, to, 1_000_000+1000*n, time.Now().Add(churnLifetime).Unix())
}

// note notes how long a create took.
func (c *churn) note(took time.Duration) {
	quarter := min(3, int(4*time.Since(c.began)/c.during))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[quarter] = append(c.took[quarter], took)
}

// pay creates and pays further invoices.
func (c *churn) pay(ctx context.Context) error {
	err := paced(ctx, max(1, c.rate/churnPaid), c.during, func(n int) error {
		made, err := c.requestOf(ctx, 1_000_500+1000*n)
		if err != nil {
			return err
		}
		return c.world.pay(ctx, made)
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the time is over
	}
	return err
}

// seal seals a block in each churnBlock.
func (c *churn) seal(ctx context.Context) error {
	for wait.Sleep(ctx, churnBlock, nil) {
		if err := c.node.Seal(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// clean removes old events and attempts as the service does, but sooner.
func (c *churn) clean(ctx context.Context) (err error) {
	s, err := store.Open(ctx, c.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	dispatcher.NewCleaner(dispatcher.CleanerConfig{
		Log: agedLog{s, c.keep}, KeepEvents: c.keep, KeepAttempts: c.keep / 2, Every: c.keep / 20, Now: time.Now, Logger: slog.Default(),
	}).Run(ctx)
	return nil
}

// agedLog is a log of events in which a day passes in a shorter time.
type agedLog struct {
	*store.Store

	day time.Duration
}

// MaintainPartitions implements dispatcher.Log.
func (l agedLog) MaintainPartitions(ctx context.Context, now, before time.Time) (time.Time, error) {
	return l.Store.MaintainPartitions(ctx, now.Add(24*time.Hour-l.day), before)
}

// report adds rows about the latency of creates and about the tables.
func (c *churn) report(ctx context.Context, r *report, kind string) error {
	first, last := c.took[0], c.took[3]
	if len(first) == 0 || len(last) == 0 {
		return errors.New("no invoice was created in the first or in the last quarter of the time")
	}
	made := 0
	for _, quarter := range c.took {
		slices.Sort(quarter)
		made += len(quarter)
	}
	figure, ceiling := quantile(last, 0.99), quantile(first, 0.99)
	r.row(kind, fmt.Sprintf("churn of %v, create, p99", c.during), figure, ceiling, fmt.Sprintf("%.2f", float64(figure)/float64(ceiling)),
		fmt.Sprintf("last quarter; ceiling: the first; medians %v and %v; %.0f/s of %d/s, %d a second late, %d refused", quantile(last, 0.5), quantile(first, 0.5),
			float64(made)/c.during.Seconds(), c.rate, c.behind.Load(), c.refused.Load()))
	return c.tables.report(ctx, r, kind, c.keep)
}
