package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/wait"
)

const (
	// timedRate is how many invoices timedCreates creates in a second.
	timedRate = 200
	// timedPoll is the interval at which it asks whether it is done.
	timedPoll = 200 * time.Millisecond
)

// creates reports the latency of timedCreates with other work and without.
func (r *report) creates(kind, during, before string, with, without []time.Duration, more string) {
	figure, ceiling := quantile(with, 0.99), quantile(without, 0.99)
	r.row(kind, fmt.Sprintf("create, %d/s, p99 %s", timedRate, during), figure, ceiling, fmt.Sprintf("%.2f", float64(figure)/float64(ceiling)),
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

// run creates invoices until done returns true, which is asked every timedPoll, and returns
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
			if !wait.Sleep(creating, timedPoll, nil) {
				return creating.Err()
			}
		}
	})
	expires := began.Add(24 * time.Hour).Unix()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / timedRate)
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
