package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/tracing"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
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
)

// Config configures a Server. Listeners, Database, Chains, Now, Rand and Logger are required.
type Config struct {
	Listeners []*Listener // at most one for each door; Run closes them
	Database  string      // as db.Open takes it
	ReadOnly  string      // a standby of the database that serves lists, as db.OpenWithStandby takes it; empty: none
	Chains    []Chain
	Merchants Merchants
	// AllowListDelay is the delay before a change of a merchant's allowed addresses takes effect.
	AllowListDelay time.Duration
	Providers      []api.Provider
	// WebhookAllow are the address ranges outside the public internet that
	// webhooks may reach, without TLS.
	WebhookAllow []netip.Prefix
	WebhookCA    []byte   // see webhooks.ClientConfig
	WebhookProxy *url.URL // the same
	Access       Access
	// Keyring seals the secrets of endpoints that are set through the API. If it is nil, the API cannot
	// set endpoints.
	Keyring *access.Keyring
	// KeepEvents and KeepAttempts are how long finished events and their delivery
	// attempts are kept. If one is 0, all are kept.
	KeepEvents, KeepAttempts time.Duration
	// PublicURL is the base URL of the public door, without a trailing slash; empty if
	// it is not known.
	PublicURL string
	// DashboardURL is the base URL of the dashboard, without a trailing slash; empty if it is not
	// configured.
	DashboardURL string
	// OIDC is the provider that signs people in, without RedirectURL and Now; nil without one.
	OIDC *identity.Config
	// SMTP is the server that takes mails; if nil, none are sent. It needs
	// PublicURL.
	SMTP mailer.Sender
	// Screening is the hook that is asked about payers; if nil, no payment is screened.
	Screening *Screening
	// PerOwner and PerAddress are how many requests a second an owner of keys may make, and a client
	// address at the public door. 0 means no limit.
	PerOwner, PerAddress int
	// TLS configures the certificate of listeners with HTTPS. It is required with such a listener.
	TLS *TLS
	// Proxies are the reverse proxies that report the address of a client.
	Proxies limits.Proxies
	// Hosts are the public names of the service, under which a reverse proxy
	// passes requests on. Requests for any other host are refused, except for
	// loopback names and the listener's address.
	Hosts []string
	// StopDelay is how long a stopping service accepts requests while /readyz
	// reports that it is not ready.
	StopDelay time.Duration
	// TestWallet, when set, pays invoices from the checkout page. It is for
	// development chains only.
	TestWallet checkout.TestWallet
	// OpenFiles is how many file descriptors the process may use; 0 means the
	// system's limit.
	OpenFiles int
	// Isolated runs the service on a copy of a database without effects outside: at loopback addresses,
	// read-only to requests, and sending nothing out except reads from nodes.
	Isolated bool
	// IsCopy declares that the database is a copy. An isolated service then marks it as one. db.Backup
	// marks its copies already.
	IsCopy bool
	Build  Build
	Tracer trace.Tracer // nil: no traces
	// Player plays scenarios, for a development service only.
	Player dashboard.Player
	// Routes are additional routes by pattern, for a development service only.
	Routes map[string]http.Handler
	// Dial replaces the network for connections to nodes and webhook receivers; nil means the network.
	Dial chain.DialFunc
	// TestClock, when set, is the clock that Now shows, for a development service only.
	TestClock *TestClock
	Now       func() time.Time
	Rand      io.Reader
	Logger    *slog.Logger
	// Ready, if set, is called once with the base URL when the server accepts requests.
	Ready func(baseURL string)
}

// Server is a running service.
type Server struct {
	cfg           Config
	store         *db.DB
	settle        *ledger.Service
	chains        []*chainWorkers
	byKey         map[string]*chainWorkers
	worker        *webhooks.Worker
	endpoints     *webhooks.Directory
	merchants     *access.MerchantManager
	authenticator *access.Authenticator
	keys          *access.KeyManager
	sessions      *access.SessionManager
	metrics       *metrics
	txMetrics     *txmgr.Metrics
	registry      *prometheus.Registry
	stopping      atomic.Bool
	origins       *http.CrossOriginProtection
	former        *formerHosts // nil without a public URL
	budget        limits.Budget
	watchdog      *clock.Watchdog
	certs         certificates // nil without HTTPS
	limits        *requestLimits
	refused       *refusedLog
	feed          *webhooks.Feed
	page          *checkout.Checkout
	board         *dashboard.Dashboard
	byPattern     map[string]webpage.Route // all routes
	openings      *openings
	long          context.Context // of the feed and of long requests; endLong ends it
	endLong       context.CancelFunc
	clock         *db.Clock      // of the delivery schedule
	mailer        *mailer.Mailer // nil without an SMTP server
	direct        *mailer.Direct // nil without an SMTP server or a URL of the dashboard
	ids           *invoice.IDs   // of requests
	share         *Share         // of the chains; nil if this replica reads all
	requests      *access.Log

	configured chain.ConfiguredChains           // the configuration of chains
	remembered chain.RememberedChains           // earlier configurations of chains, once this one is applied
	replica    string                           // a random id
	stale      atomic.Pointer[chain.StaleError] // once others run a newer revision; set once

	gate             gate
	restored         atomic.Pointer[db.Recovery] // once there is evidence that the database was restored; set once
	recovering       bool                        // Recover runs, and not the service
	deliveryWake     chan struct{}               // wakes the webhook worker
	remainderCursors map[string]string           // where assignRemainders ended, by chain
}

// newServer returns a server without a database and without components.
func newServer(cfg Config) (*Server, error) {
	if cfg.TestClock == nil {
		cfg.TestClock = &TestClock{Real: cfg.Now} // which is never advanced
	}
	cfg.Logger = limitOutageLogs(slog.New(logFilter{cfg.Logger.Handler(), addRequest}))
	s := &Server{
		cfg: cfg, byKey: make(map[string]*chainWorkers), registry: prometheus.NewRegistry(), watchdog: clock.New(0), ids: invoice.NewIDs(cfg.Now, cfg.Rand),
		deliveryWake: make(chan struct{}, 1), remainderCursors: make(map[string]string),
	}
	var err error
	if cfg.Isolated {
		if s.cfg, err = isolate(s.cfg); err != nil {
			return nil, err
		}
		s.gate.close(isolatedReason)
		s.cfg.Logger.Warn("isolated copy: nothing is sent out, and requests change nothing")
	}
	if s.origins, err = newOrigins(s.cfg.Hosts, s.cfg.PublicURL); err != nil {
		return nil, fmt.Errorf("public names: %w", err)
	}
	if s.budget, err = s.newBudget(); err != nil {
		return nil, err
	}
	s.metrics = newMetrics(s.registry)
	s.limits = newLimits(s.cfg, s.metrics)
	s.refused = &refusedLog{logger: s.cfg.Logger}
	s.long, s.endLong = context.WithCancel(context.Background())
	s.txMetrics = txmgr.NewMetrics(s.registry)
	return s, nil
}

// Run runs the service until ctx ends, and then stops it in order: it answers the
// requests in flight, finishes or releases the leased deliveries, and closes the
// database. It returns nil if all of that succeeds.
func Run(ctx context.Context, cfg Config) (err error) {
	defer func() { err = errors.Join(err, closeAll(cfg.Listeners)) }()
	ctx = tracing.WithTracer(ctx, cfg.Tracer)
	s, err := newServer(cfg)
	if err != nil {
		return err
	}
	unlock, err := db.LockService(cfg.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if s.store, err = s.openStore(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if err := s.prepareStore(ctx); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := s.openCertificates(); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if err := s.buildAccess(); err != nil {
		return err
	}
	s.requests = access.NewRequestLog(access.RequestLogConfig{Store: access.NewTables(s.store), IDs: s.ids, Now: s.cfg.Now, Dropped: func(n int) { s.metrics.unlogged.Add(float64(n)) }, Logger: s.cfg.Logger})
	defer func() {
		for _, run := range s.chains {
			run.pool.Close()
		}
	}()
	if err := s.prepareLedger(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

// build builds the components and connects them.
func (s *Server) build(ctx context.Context) error {
	if err := chain.CheckDistinct(s.networks()); err != nil {
		return err
	}
	var err error
	if s.clock, err = db.OpenClock(ctx, db.ClockConfig{
		Store: s.store, Wall: s.cfg.Now, Elapsed: s.cfg.TestClock.Elapsed, MaxGap: s.cfg.TestClock.MaxGap, Wake: s.cfg.TestClock.Advanced,
		Logger: s.cfg.Logger,
	}); err != nil {
		return err
	}
	var keys []string
	for _, c := range s.cfg.Chains {
		keys = append(keys, c.Key)
	}
	if err := s.buildMerchants(ctx, keys); err != nil {
		return err
	}
	if err := s.plan(ctx); err != nil {
		return err
	}
	if err := s.recordMerchants(ctx); err != nil {
		return err
	}
	if err := s.buildDelivery(ctx); err != nil {
		return err
	}
	s.feed = webhooks.NewFeed(webhooks.FeedConfig{Log: s.eventLog(), Watchdog: s.watchdog, Logger: s.cfg.Logger})
	s.openings = newOpenings(s.store, s.cfg.Now, s.cfg.Logger)
	s.settle = ledger.New(ledger.Config{
		Store: s.store, Chains: s.networks(), Merchants: directory{s.cfg.Merchants, s.endpoints, s.merchants}, OptionalEvents: s.endpoints.OptionalEvents, Keyring: s.cfg.Keyring, Now: s.cfg.Now, Schedule: s.clock.Now, Confirmed: s.clock.Confirmed, Rand: s.cfg.Rand,
		Signals: ledger.Signals{
			WakeDeliverer: countEvents(s.registry, s.committed),
			WakeTxManager: func(key string) {
				if run := s.byKey[key]; run != nil {
					clock.Wake(run.wake)
				}
			},
			WakeIndexer: func(key string) {
				if run := s.byKey[key]; run != nil {
					run.indexer.Wake()
				}
			},
			OnUnattributed:  newUnattributed(s.registry, keys, s.cfg.Now, s.cfg.Logger).observe,
			OnAuthorization: countAuthorizations(s.registry), OnForeignTx: s.queueForeignTx,
		},
		VerifyContracts: s.verifyContracts, VerifyChain: s.verifyChain, Remembered: s.remembered, Gasless: s.gasless(), Screens: s.cfg.Screening != nil, Recovery: s.recovering,
	})
	if err := s.buildChains(); err != nil {
		return err
	}
	s.registerMetrics()
	return nil
}

// buildDelivery builds the directory of endpoints and the webhook worker.
func (s *Server) buildDelivery(ctx context.Context) (err error) {
	guard := webhooks.NewGuard(s.cfg.WebhookAllow)
	client := webhooks.NewClient(webhooks.ClientConfig{Guard: guard, Connections: s.budget.Webhooks, Idle: s.budget.IdleWebhooks, CA: s.cfg.WebhookCA, Proxy: s.cfg.WebhookProxy, Dial: s.cfg.Dial})
	s.endpoints, err = webhooks.OpenDirectory(ctx, webhooks.DirectoryConfig{
		Store: s.store, Breakers: clockedStore{s.store, s.clock}.Breakers, Configured: s.cfg.Merchants.Configured, Fallback: s.cfg.Merchants.Fallback, Known: s.merchants.Known,
		Keyring: s.cfg.Keyring, Guard: guard, Ping: webhooks.NewPoster(webhooks.PosterConfig{Client: client, Now: s.cfg.Now, SignatureNow: s.cfg.TestClock.Real}).Ping, Changed: func() { clock.Wake(s.deliveryWake) }, Now: s.cfg.Now, Rand: s.cfg.Rand, Logger: s.cfg.Logger,
	})
	if err != nil {
		return err
	}
	s.worker = webhooks.NewWorker(webhooks.WorkerConfig{
		Store: webhooks.NewTables(s.store), Endpoints: s.endpoints.Endpoints, Configured: s.endpoints.Fingerprint(), Client: client, Now: s.cfg.Now, SignatureNow: s.cfg.TestClock.Real, Schedule: s.clock.Now, Rand: s.cfg.Rand,
		Logger: s.cfg.Logger, Wake: s.deliveryWake, Metrics: webhooks.NewMetrics(s.registry), Watchdog: s.watchdog,
		Limits:  webhooks.LimitsFor(s.budget.Webhooks - s.budget.IdleWebhooks),
		GiveWay: func(ctx context.Context, most time.Duration) { s.settle.GiveWay(ctx, most) },
	})
	return nil
}

// serve serves requests and runs the workers until ctx ends.
func (s *Server) serve(ctx context.Context) error {
	entrances := s.entrances()
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range entrances {
		group.Go(func() error {
			if err := e.serve(); !s.stopping.Load() && !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve requests: %w", err)
			}
			return nil
		})
	}
	serving, ended := context.WithCancel(context.WithoutCancel(ctx)) // until the last request was answered
	group.Go(func() error {
		defer ended()
		<-ctx.Done()
		return s.stop(ctx, entrances)
	})
	group.Go(func() error {
		s.watchdog.Run(ctx, s.cfg.Logger)
		return nil
	})
	group.Go(func() error {
		s.clock.Run(ctx)
		return nil
	})
	if s.certs != nil {
		group.Go(func() error {
			s.certs.Run(ctx)
			return nil
		})
	}
	group.Go(func() error { return s.refused.run(serving) })
	for _, run := range []func(context.Context){s.authenticator.Run, s.requests.Run} {
		group.Go(func() error {
			run(serving)
			return nil
		})
	}
	for _, run := range []func(context.Context){s.feed.Run, s.page.Run, s.board.Run} {
		group.Go(func() error {
			run(s.long)
			return nil
		})
	}
	s.startWork(ctx, group)
	if s.cfg.Ready != nil {
		s.cfg.Ready(s.baseURL())
	}
	return group.Wait()
}
