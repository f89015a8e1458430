package server

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/commit"
	"github.com/quittance/quittance/internal/watch"
)

// Chain is a chain that the service reads and, with an OperatorKey, writes.
type Chain struct {
	chain.Chain
	OperatorKey *ecdsa.PrivateKey // nil: commitments are not recorded on chain
	// PollInterval is how often the head is asked for; 0 is
	// watch.DefaultPollInterval.
	PollInterval time.Duration
}

// chainRun is a chain at work: its indexer and, with an operator key, its
// writer. What befalls one chain touches no other.
type chainRun struct {
	key       string
	logger    *slog.Logger
	endpoints []*chain.Endpoint
	watcher   *watch.Watcher
	writer    *commit.Writer // nil without an operator key
	wake      chan struct{}  // of the writer
}

func (s *Server) newChain(c Chain) (_ *chainRun, err error) {
	run := &chainRun{key: c.Key, logger: s.Logger, wake: make(chan struct{}, 1)}
	var sources []watch.Source
	for _, url := range c.RPC {
		e, err := chain.NewEndpoint(url)
		if err != nil {
			run.close()
			return nil, err
		}
		run.endpoints = append(run.endpoints, e)
		sources = append(sources, e)
	}
	run.watcher = watch.New(watch.Config{
		Chain: c.Chain, Sources: sources, Ledger: s.settle, Logger: s.Logger, Now: s.Now,
		Jitter: rand.Float64, PollInterval: c.PollInterval, OnRound: s.metrics.observeChain,
	})
	if c.OperatorKey != nil {
		run.writer, err = commit.New(commit.Config{
			Chain: c.Chain, Key: c.OperatorKey, Client: chain.Failover(run.endpoints), Store: s.store,
			Logger: s.Logger, Wake: run.wake, Metrics: s.writers, Now: s.Now, Rand: s.Rand,
		})
		if err != nil {
			run.close()
			return nil, err
		}
	}
	return run, nil
}

// run works until the context ends. A chain that is halted stays so; the
// service goes on without it and says so in its health.
func (r *chainRun) run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error {
		err := r.watcher.Run(ctx)
		var halted *watch.HaltedError
		if errors.As(err, &halted) {
			return nil // the watcher has logged it, and /readyz shows it
		}
		return err
	})
	if r.writer != nil {
		group.Go(func() error { return r.writer.Run(ctx) })
	}
	return group.Wait()
}

func (r *chainRun) health(now time.Time) chainHealth {
	st := r.watcher.Status()
	h := chainHealth{
		ChainKey: r.key, Head: st.Head, Indexed: st.Indexed, Confirmed: st.Confirmed,
		Error: st.Error,
	}
	// A chain that was never read is not ready, be its node away or its
	// configuration wrong.
	h.Ready = st.Halted == "" && !st.Succeeded.IsZero() && now.Sub(st.Succeeded) <= stallLimit
	if st.Halted != "" {
		h.Error = st.Halted
	}
	if r.writer != nil {
		h.Writer = r.writer.Status().Err
		h.Ready = h.Ready && h.Writer == ""
	}
	return h
}

func (r *chainRun) close() {
	for _, e := range r.endpoints {
		e.Close()
	}
}
