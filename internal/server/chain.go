package server

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/indexer"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/txmgr"
)

// Chain is a chain that the service reads and, with an OperatorKey, writes.
type Chain struct {
	chain.Chain
	OperatorKey *ecdsa.PrivateKey // nil: commitments are not recorded on chain
	// Gasless bounds the authorizations that are sent for payers; nil: the service sends no
	// authorizations. It takes an OperatorKey.
	Gasless *ledger.AuthorizationBudget
	// PollInterval is how often the head is asked for; 0 is
	// indexer.DefaultPollInterval.
	PollInterval time.Duration
	// IdleInterval is how often the chain is read while no payment on it is awaited; 0 is the
	// PollInterval.
	IdleInterval time.Duration
}

// sendsAuthorizations reports whether the service sends payers' authorizations on the chain.
func (c Chain) sendsAuthorizations() bool { return c.Gasless != nil && c.OperatorKey != nil }

// chainWorkers are the indexer of a chain and, with an operator key, its
// transaction manager. A failure of one chain does not affect the others.
type chainWorkers struct {
	chain.Chain
	pool    *chain.Pool
	indexer *indexer.Supervisor
	writer  *txmgr.Writer     // nil without an operator key
	wake    chan struct{}     // of the writer
	foreign chan invoice.Hash // transactions to be judged
}

func (s *Server) buildChains() error {
	s.share = s.newShare()
	for _, c := range s.cfg.Chains {
		run, err := s.newChainWorkers(c)
		if err != nil {
			return fmt.Errorf("chain %s: %w", c.Key, err)
		}
		s.chains = append(s.chains, run)
		s.byKey[c.Key] = run
	}
	return nil
}

func (s *Server) newChainWorkers(c Chain) (_ *chainWorkers, err error) {
	run := &chainWorkers{Chain: c.Chain, wake: make(chan struct{}, 1), foreign: make(chan invoice.Hash, maxForeignTxs)}
	run.pool, err = chain.OpenPool(chain.PoolConfig{
		Chain: c.Chain, Now: s.cfg.Now, Jitter: rand.Float64, Logger: s.cfg.Logger, Dial: s.cfg.Dial,
		OnRefused: func(limit string) { s.metrics.refused.WithLabelValues(limit).Inc() },
	})
	if err != nil {
		return nil, err
	}
	others, senior := s.others(c.Key)
	run.indexer = indexer.NewSupervisor(indexer.Config{
		Chain: c.Chain, Pool: run.pool, Ledger: s.settle, Logger: s.cfg.Logger, Now: s.cfg.Now,
		Others: others, Senior: others[:senior],
		Jitter: rand.Float64, PollInterval: c.PollInterval, Watchdog: s.watchdog, Reads: s.reads(c.Key),
		IdleInterval: c.IdleInterval, Awaited: func(ctx context.Context) (indexer.Awaited, error) { return s.settle.Awaited(ctx, c.Key) },
	})
	if c.OperatorKey != nil {
		run.writer, err = txmgr.New(txmgr.Config{
			Chain: c.Chain, Key: c.OperatorKey, Client: run.pool.Writer(), Nodes: nodesOf(run.pool.Writer()), Store: s.store, Leases: clockedStore{s.store, s.clock},
			Logger: s.cfg.Logger, Wake: run.wake, Metrics: s.txMetrics, Gasless: c.Gasless != nil, Now: s.cfg.Now, Schedule: s.clock.Now, Rand: s.cfg.Rand,
		})
		if err != nil {
			run.pool.Close()
			return nil, err
		}
	}
	return run, nil
}

// verifyContracts is ledger.Config.VerifyContracts.
func (s *Server) verifyContracts(ctx context.Context, chainKey string) error {
	if run := s.byKey[chainKey]; run != nil {
		return run.pool.Verified(ctx)
	}
	return nil
}

// verifyChain is ledger.Config.VerifyChain. While its nodes do not answer, a chain that was verified
// before is assumed to be right, except for tokens that were added since.
func (s *Server) verifyChain(ctx context.Context, chainKey string, token invoice.Address) error {
	run := s.byKey[chainKey]
	if run == nil {
		return nil
	}
	if err := run.pool.Mismatch(); err != nil {
		return err
	}
	known, _ := s.remembered.Chain(chainKey)
	if (known.Genesis != nil || known.Read) && (run.pool.WasVerified() || s.wasReadFor(ctx, known, token)) {
		return nil
	}
	return run.pool.Verified(ctx)
}

// wasReadFor reports whether blocks of a chain were read for a token. Then a node has confirmed the
// token.
func (s *Server) wasReadFor(ctx context.Context, c chain.KnownChain, token invoice.Address) bool {
	t, _ := c.TokenAt(token)
	if t.FirstBlock == nil { // it is as old as the chain
		return true
	}
	cur, err := s.settle.Cursor(ctx, c.Key)
	return err == nil && cur.Indexed.Number >= *t.FirstBlock
}

// others returns the keys of the other chains in the order of the configuration, and how many of them
// precede the chain of the given key. Chains that the database remembers and that are no longer configured come last.
func (s *Server) others(key string) (keys []string, before int) {
	configured := make(map[string]bool)
	for _, c := range s.cfg.Chains {
		configured[c.Key] = true
		if c.Key == key {
			before = len(keys)
			continue
		}
		keys = append(keys, c.Key)
	}
	for _, known := range s.remembered.Chains {
		if !configured[known.Key] && known.Read && !known.Retired {
			keys = append(keys, known.Key)
		}
	}
	return keys, before
}

// nodesOf returns a function that returns the usable nodes.
func nodesOf(w chain.Writer) func() []txmgr.Client {
	return func() []txmgr.Client {
		nodes := w.Callers()
		clients := make([]txmgr.Client, len(nodes))
		for i, n := range nodes {
			clients[i] = n
		}
		return clients
	}
}

// startChains starts the workers of all chains in the group, which end with ctx.
func (s *Server) startChains(ctx context.Context, group *errgroup.Group) {
	if s.share != nil {
		s.share.Join(ctx)
		group.Go(s.runWorker(ctx, s.share.Run))
	}
	for _, run := range s.chains {
		group.Go(s.runWorker(ctx, run.run))
		group.Go(func() error { return s.judgeForeignTxs(ctx, run) })
	}
}

// run runs the workers until ctx ends.
func (r *chainWorkers) run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return r.indexer.Run(ctx) })
	if r.writer != nil {
		group.Go(func() error { return r.writer.Run(ctx) })
	}
	return group.Wait()
}

// networks returns the configurations of the chains.
func (s *Server) networks() []chain.Chain {
	all := make([]chain.Chain, len(s.cfg.Chains))
	for i, c := range s.cfg.Chains {
		all[i] = c.Chain
	}
	return all
}
