// Package server puts the service together: it opens the database, runs the
// indexers, the on-chain writers and the webhook worker, serves the API, the
// checkout and the health of it all, and ends them in order.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/checkout"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/deliver"
	"github.com/quittance/quittance/internal/descriptors"
	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/wait"
	"github.com/quittance/quittance/internal/watchdog"
)

// Limits of the server.
const (
	// readHeaderTimeout bounds the headers of a request.
	readHeaderTimeout = 5 * time.Second
	// readTimeout bounds a whole request.
	readTimeout = 15 * time.Second
	// writeTimeout bounds an answer.
	writeTimeout = 30 * time.Second
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes bounds the headers of a request.
	maxHeaderBytes = 16 << 10
	// sweepInterval is how often idempotency keys past their window are
	// forgotten.
	sweepInterval = 10 * time.Minute
	// untoldInterval is how often invoices are looked for that lack an amount to
	// tell for what remains of them.
	untoldInterval = 30 * time.Second
)

// Config says what to run. Listener, Database, Chains, Now, Rand and Logger are
// required.
type Config struct {
	Listener  *Listener // Run closes it
	Database  string    // as store.Open takes it
	Chains    []Chain
	Merchants Merchants
	Providers []api.Provider
	// WebhookAllow are the ranges of addresses that webhooks may reach beside
	// the public internet, and without TLS.
	WebhookAllow []netip.Prefix
	// Keyring seals the secrets of endpoints that are set through the API. It may
	// be nil: then none can be set.
	Keyring *keyring.Keyring
	// KeepEvents and KeepAttempts are how long finished events, and the
	// attempts to deliver them, are kept. Unless both are set, all are.
	KeepEvents, KeepAttempts time.Duration
	// Hosts are the public names of the service, under which a reverse proxy
	// passes requests on. Requests for other hosts than these, loopback ones and
	// the address that is listened on are refused.
	Hosts []string
	// StopDelay is how long a service that is told to stop still takes requests
	// while it calls itself not ready.
	StopDelay time.Duration
	// TestWallet, when set, lets the checkout page pay by itself: on a
	// development chain alone.
	TestWallet checkout.TestWallet
	// OpenFiles is how many file descriptors the process may use; 0 is as many
	// as the system grants it.
	OpenFiles int
	// Routes are further ones, by their patterns: of a development world alone.
	Routes map[string]http.Handler
	Now    func() time.Time
	Rand   io.Reader
	Logger *slog.Logger
	// Ready, when set, is called once with the base URL when requests are
	// answered.
	Ready func(baseURL string)
}

// Server is a running service.
type Server struct {
	Config
	store     *store.Store
	settle    *settle.Service
	chains    []*chainRun
	byKey     map[string]*chainRun
	worker    *deliver.Worker
	due       chan struct{} // says that deliveries became due
	hooks     *endpoint.Directory
	metrics   *metrics
	txMetrics *txmgr.Metrics
	registry  *prometheus.Registry
	adopted   string            // the newest invoice whose registry was looked for
	untold    map[string]string // where the last run of tellUntold ended, by chain
	stopping  atomic.Bool
	origins   *http.CrossOriginProtection
	budget    descriptors.Budget // of the whole process
	dog       *watchdog.Watchdog // of the work that must go on
	clock     *clock.Clock       // of the schedule
}

// Run runs the service until the context ends, and then ends it in order:
// requests under way are answered, deliveries under way finished or given
// back, the database closed. It returns nil when that went well.
func Run(ctx context.Context, cfg Config) (err error) {
	defer func() { err = errors.Join(err, cfg.Listener.Close()) }()
	cfg.Logger = quieted(cfg.Logger)
	s := &Server{Config: cfg, byKey: make(map[string]*chainRun), registry: prometheus.NewRegistry(), dog: watchdog.New(0)}
	if s.origins, err = newOrigins(s.Hosts); err != nil {
		return fmt.Errorf("public names: %w", err)
	}
	if s.budget, err = s.divide(); err != nil {
		return err
	}
	s.metrics = newMetrics(s.registry)
	s.txMetrics = txmgr.NewMetrics(s.registry)
	unlock, err := store.LockService(cfg.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s.store, err = store.Open(ctx, cfg.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if err := s.store.CheckWritable(ctx); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	defer func() {
		for _, run := range s.chains {
			run.pool.Close()
		}
	}()
	if err := s.settle.RecordRegistries(ctx); err != nil {
		return fmt.Errorf("record the registries: %w", err)
	}
	if s.adopted, err = s.settle.AdoptRegistries(ctx, ""); err != nil {
		return fmt.Errorf("find the registries of older invoices: %w", err)
	}
	if err := s.settle.TellUntold(ctx); err != nil { // before their chains are read
		return fmt.Errorf("tell amounts for what remains of invoices: %w", err)
	}
	s.untold = make(map[string]string)
	return s.serve(ctx)
}

// divide returns what each part of the process may have of its descriptors.
func (s *Server) divide() (descriptors.Budget, error) {
	limit := s.OpenFiles
	if limit == 0 {
		var err error
		if limit, err = descriptors.Limit(); err != nil {
			return descriptors.Budget{}, err
		}
	}
	nodes := 0
	for _, c := range s.Chains {
		nodes += len(c.RPC)
	}
	return descriptors.New(limit, nodes)
}

// build builds the components and connects them.
func (s *Server) build(ctx context.Context) error {
	if err := chain.CheckDistinct(s.networks()); err != nil {
		return err
	}
	s.due = make(chan struct{}, 1)
	var err error
	if s.clock, err = clock.Open(ctx, clock.Config{Store: s.store, Wall: s.Now, Logger: s.Logger}); err != nil {
		return err
	}
	if err := s.buildDelivery(ctx); err != nil {
		return err
	}
	var keys []string
	for _, c := range s.Chains {
		keys = append(keys, c.Key)
	}
	s.settle = settle.New(settle.Config{
		Store: s.store, Chains: s.networks(), Merchants: directory{s.Merchants, s.hooks}, Optional: s.hooks.OptionalEvents, Now: s.Now, Schedule: s.clock.Now, Rand: s.Rand,
		Signals: settle.Signals{
			Deliveries: func() { wait.Wake(s.due) },
			Intents: func(key string) {
				if run := s.byKey[key]; run != nil {
					wait.Wake(run.wake)
				}
			},
			Look: func(key string) {
				if run := s.byKey[key]; run != nil {
					run.watcher.Wake()
				}
			},
			Unattributed: newUnattributed(s.registry, keys, s.Now, s.Logger).saw,
		},
	})
	for _, c := range s.Chains {
		run, err := s.newChain(c)
		if err != nil {
			return fmt.Errorf("chain %s: %w", c.Key, err)
		}
		s.chains = append(s.chains, run)
		s.byKey[c.Key] = run
	}
	s.registry.MustRegister(providerMetrics{s.chains}, chainCollector{s.chains}, stallMetrics{s.dog}, clockOffset(s.clock))
	return nil
}

// buildDelivery builds the directory of endpoints and the webhook worker.
func (s *Server) buildDelivery(ctx context.Context) (err error) {
	guard := poster.NewGuard(s.WebhookAllow)
	client := poster.NewClient(poster.ClientConfig{Guard: guard, Connections: s.budget.Webhooks, Idle: s.budget.IdleWebhooks})
	s.hooks, err = endpoint.Open(ctx, endpoint.Config{
		Store: clockedStore{s.store, s.clock}, Configured: s.Merchants.Endpoints, Fallback: s.Merchants.Fallback, Optional: s.Merchants.Optional, Known: s.Merchants.Known,
		Keyring: s.Keyring, Guard: guard, Ping: poster.New(poster.Config{Client: client, Now: s.Now}).Ping, Changed: func() { wait.Wake(s.due) }, Now: s.Now, Rand: s.Rand, Logger: s.Logger,
	})
	if err != nil {
		return err
	}
	s.worker = deliver.New(deliver.Config{
		Store: s.store, Endpoints: s.hooks.Endpoints, Configured: s.hooks.Fingerprint(), Client: client, Now: s.Now, Schedule: s.clock.Now, Rand: s.Rand,
		Logger: s.Logger, Wake: s.due, Metrics: deliver.NewMetrics(s.registry), Watchdog: s.dog,
		Limits: deliver.LimitsFor(s.budget.Webhooks - s.budget.IdleWebhooks),
	})
	return nil
}

// networks returns the chains without what the server adds to them.
func (s *Server) networks() []chain.Chain {
	all := make([]chain.Chain, len(s.Chains))
	for i, c := range s.Chains {
		all[i] = c.Chain
	}
	return all
}

// serve answers requests and works until the context ends.
func (s *Server) serve(ctx context.Context) error {
	conns := newConnections(s.Listener, s.budget.Accepted, s.metrics, s.Logger)
	httpServer := &http.Server{
		ConnState: conns.observe,
		Handler:   s.handler(), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(NetLog(s.Logger, slog.LevelDebug), "", 0),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := httpServer.Serve(conns); !s.stopping.Load() && !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve requests: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return s.stop(ctx, httpServer, conns)
	})
	group.Go(func() error {
		s.dog.Run(ctx, s.Logger)
		return nil
	})
	group.Go(func() error {
		s.clock.Run(ctx)
		return nil
	})
	group.Go(s.atStop(ctx, s.worker.Run))
	group.Go(func() error { return every(ctx, sweepInterval, s.sweep) })
	group.Go(func() error { return every(ctx, untoldInterval, s.tellUntold) })
	if s.KeepEvents > 0 && s.KeepAttempts > 0 {
		cleaner := s.cleaner(s.store)
		group.Go(func() error {
			cleaner.Run(ctx)
			return nil
		})
	}
	for _, run := range s.chains {
		group.Go(s.atStop(ctx, run.run))
	}
	if s.Ready != nil {
		s.Ready("http://" + s.Listener.Addr().String())
	}
	return group.Wait()
}

// cleaner returns what removes old events and attempts from the log.
func (s *Server) cleaner(log deliver.Log) deliver.Cleaner {
	return deliver.Cleaner{Log: log, KeepEvents: s.KeepEvents, KeepAttempts: s.KeepAttempts, Now: s.clock.Earlier, Logger: s.Logger, Watchdog: s.dog}
}

// every does something at once and then at an interval, until the context ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		do(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sweep forgets idempotency keys past their window, and finds the registries of
// invoices that a process of an older version made meanwhile.
func (s *Server) sweep(ctx context.Context) {
	if err := s.settle.ForgetKeys(ctx); err != nil && ctx.Err() == nil {
		s.Logger.Error("old idempotency keys could not be forgotten", "err", err)
	}
	var err error
	if s.adopted, err = s.settle.AdoptRegistries(ctx, s.adopted); err != nil && ctx.Err() == nil {
		s.Logger.Error("the registries of older invoices could not be found", "err", err)
	}
}

// tellUntold has amounts told for what remains of invoices that lack one.
func (s *Server) tellUntold(ctx context.Context) {
	if err := s.settle.TellMoreUntold(ctx, s.untold); err != nil && ctx.Err() == nil {
		s.Logger.Error("telling amounts for what remains of invoices failed, will retry", "err", err)
	}
}
