package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// lifeClients is how many create and pay invoices at the same time, and lifeInterval the time
// between blocks.
const lifeClients, lifeInterval = 16, 250 * time.Millisecond

// lives creates and pays invoices for a time, and waits until all are paid and all their events
// delivered.
func (r *costRun) lives(during time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		l := payingClients{costRun: r, until: time.Now().Add(during)}
		clients, life := errgroup.WithContext(ctx)
		for i := range lifeClients {
			clients.Go(func() error { return l.run(life, r.shop(int64(i))) })
		}
		ended := make(chan error, 1)
		go func() { ended <- clients.Wait() }()
		if err := r.sealUntil(ctx, ended); err != nil {
			return err
		}
		made := l.made.Load()
		r.made += made
		if err := r.until(ctx, "SELECT count(*) FROM invoices WHERE status = 'paid'", made); err != nil {
			return err
		}
		return r.untilDelivered(ctx)
	}
}

// payingClients create invoices and pay them until some time.
type payingClients struct {
	*costRun

	until  time.Time
	made   atomic.Int64
	paying sync.Mutex // the transfers of one account are sent one after the other
}

// run is one client, of a merchant of its own: a merchant gets few events at once.
func (l *payingClients) run(ctx context.Context, merchant string) error {
	for time.Now().Before(l.until) {
		made, err := l.requestFor(ctx, merchant, 1_000_000+1000*int(l.made.Add(1)))
		if err != nil {
			return err
		}
		l.paying.Lock()
		err = l.pay(ctx, made)
		l.paying.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// sealUntil seals a block in each interval until the clients have ended, and then as many as make
// the last payments final.
func (r *costRun) sealUntil(ctx context.Context, ended <-chan error) error {
	tick := time.NewTicker(lifeInterval)
	defer tick.Stop()
	for more := true; more; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			more = false
		case <-tick.C:
		}
		if err := r.node.Seal(ctx); err != nil {
			return err
		}
	}
	for range finalBlocks() {
		if err := r.node.Seal(ctx); err != nil {
			return err
		}
	}
	return nil
}
