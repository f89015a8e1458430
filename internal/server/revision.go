package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// revisionInterval is how often a replica compares its revision with the newest one.
	revisionInterval = time.Second
	// abandonedAfter is how long no replica may run the newest revision before one with an older one ends. A replica
	// that is restarted needs about as long.
	abandonedAfter = 15 * time.Second
	// leaveTimeout bounds the time in which a replica that stops removes its note of the revision, or gives back its
	// leases.
	leaveTimeout = 5 * time.Second
)

// staleRoutes are the paths that a replica with an older revision still serves.
var staleRoutes = []string{"/healthz", "/readyz", "/status", "/metrics"}

// errConfigurationChanged is the error of a start while another replica changed the recorded
// configuration.
var errConfigurationChanged = errors.New("another replica started with another configuration at the same time; start again")

// decides returns the settings that affect money.
func (c Config) decides() chain.ConfiguredChains {
	configured := chain.ConfiguredChains{Merchants: make(map[string]invoice.Merchant)}
	if c.Screening != nil {
		configured.Screening = "open"
		if c.Screening.Closed {
			configured.Screening = "closed"
		}
	}
	for id, m := range c.Merchants.Configured {
		configured.Merchants[id] = m.Merchant
	}
	for _, of := range c.Chains {
		configured.Chains = append(configured.Chains, of.Chain)
	}
	return configured
}

// ApplyConfiguration makes a configuration the newest revision, even if it was an earlier one and
// other replicas run. These stop their work. The only service of a SQLite database would stop reading
// and not be restarted, so ApplyConfiguration fails while one runs.
func ApplyConfiguration(ctx context.Context, cfg Config) (err error) {
	unlock, err := db.LockService(cfg.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	store, err := db.Open(ctx, cfg.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, _, err = ledger.Remember(ctx, store, ledger.Start{Configured: cfg.decides(), Now: cfg.Now(), Force: true})
	return err
}

// plan compares the configuration with the revisions in the database, and adds to the chains the
// tokens that are still read. It only reads the database. It fails if the configuration contradicts
// the database.
func (s *Server) plan(ctx context.Context) error {
	s.configured = s.cfg.decides()
	if s.store.Shared() {
		s.replica = s.ids.New("rep_")
	}
	after, _, err := ledger.Remember(ctx, s.store, ledger.Start{Configured: s.configured, Now: s.cfg.Now(), Scheduled: s.clock.Now(), Plan: true})
	if err != nil {
		return err
	}
	s.remembered, s.cfg.Chains = after, slices.Clone(s.cfg.Chains)
	for i, c := range after.Configure(s.configured.Chains) {
		s.cfg.Chains[i].Chain = c
		for _, t := range c.Former {
			s.cfg.Logger.Info("token is read although it is not configured, for payments that may still come", "chain", c.Key,
				"currency", t.Currency, "token", chain.Checksum(t.Address))
		}
	}
	return nil
}

// commitConfiguration makes the configuration the newest revision. Replicas with another one stop
// their work, so it is the last step before the service reads and serves. Before it, the service must
// not read chains or accept requests.
func (s *Server) commitConfiguration(ctx context.Context) error {
	after, changes, err := ledger.Remember(ctx, s.store, ledger.Start{
		Configured: s.configured, Replica: s.replica, Now: s.cfg.Now(), Scheduled: s.clock.Now(),
	})
	if err != nil {
		return err
	}
	if !slices.EqualFunc(after.Configure(s.configured.Chains), s.networks(), readTheSame) {
		return errConfigurationChanged
	}
	for _, c := range changes {
		s.cfg.Logger.Info("configuration changed", "change", c.String(), "kind", string(c.Kind))
	}
	s.settle.SetRemembered(after)
	return nil
}

// readTheSame reports whether two configurations of a chain are read for the same former tokens.
func readTheSame(a, b chain.Chain) bool {
	return slices.EqualFunc(a.Former, b.Former, func(s, t chain.Token) bool { return s.Address == t.Address && s.Currency == t.Currency })
}

// whileCurrent returns a context that ends with ctx, or once others run a newer revision. The replica
// then only serves /readyz until it is restarted. If no replica is left that runs the newer revision,
// the group ends with an error, so that the replica is started again and takes over.
func (s *Server) whileCurrent(ctx context.Context, group *errgroup.Group) context.Context {
	if s.replica == "" {
		return ctx
	}
	work, end := context.WithCancel(ctx)
	group.Go(func() error {
		for current := true; current && clock.Sleep(ctx, revisionInterval, nil); {
			current = s.isCurrent(ctx)
		}
		end()
		if err := s.leaveRevision(ctx); err != nil {
			s.cfg.Logger.Warn("note of the running revision not removed, it will expire", "err", err)
		}
		return s.awaitAbandoned(ctx)
	})
	return work
}

// leaveRevision removes the note that this replica runs a revision, although ctx has ended.
func (s *Server) leaveRevision(ctx context.Context) error {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return s.store.LeaveWork(leaving, s.replica)
}

// whileTrusted returns a context that ends with ctx, or once there is evidence that the database was
// restored while the service runs. The replica then only serves /readyz.
func (s *Server) whileTrusted(ctx context.Context, group *errgroup.Group) context.Context {
	if s.cfg.Isolated { // it is known to be a copy
		return ctx
	}
	work, end := context.WithCancel(ctx)
	group.Go(func() error {
		defer end()
		for clock.Sleep(ctx, revisionInterval, nil) {
			if r := s.store.Noticed(s.cfg.Now()); r.Err() != nil {
				s.restored.Store(&r)
				s.gate.close(r.Reason)
				s.cfg.Logger.Error("this replica stops its work, the database may have been restored from a backup", "err", r.Err())
				return nil
			}
		}
		return nil
	})
	return work
}

// awaitAbandoned returns nil when ctx ends, or an error once no replica has run a newer revision for abandonedAfter.
func (s *Server) awaitAbandoned(ctx context.Context) error {
	since := s.clock.Now()
	for clock.Sleep(ctx, revisionInterval, nil) {
		now := s.clock.Now()
		newest, err := s.store.NewestRevision(ctx)
		if err != nil {
			since = now
			continue
		}
		if others, err := s.store.RevisionReplicas(ctx, newest.Number, now); err != nil || others > 0 {
			since = now
		}
		if now.Sub(since) >= abandonedAfter {
			return fmt.Errorf("no replica runs configuration revision %d any more, and this one ran an older one; it ends, and takes over when it is started again", newest.Number)
		}
	}
	return nil
}

// isCurrent reports whether no other replica is known to run a newer revision.
func (s *Server) isCurrent(ctx context.Context) bool {
	now := s.clock.Now()
	err := s.store.KeepRevision(ctx, s.replica, now, now.Add(ledger.RevisionTTL))
	var stale *chain.StaleError
	if !errors.As(err, &stale) {
		return true // other errors are database errors, which /readyz shows
	}
	s.stale.Store(stale)
	s.cfg.Logger.Error("this replica stops its work, other replicas run a newer configuration; restart it with that", "revision", stale.Own, "newest", stale.Newest)
	return false
}

// onlyCurrent returns a handler that answers 503 once others run a newer revision, except for the routes that
// report on the replica.
func (s *Server) onlyCurrent(writeError errorWriter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stale, restored := s.stale.Load(), s.restored.Load()
		switch {
		case stale == nil && restored == nil, slices.Contains(staleRoutes, r.URL.Path):
			next.ServeHTTP(w, r)
		case stale != nil:
			writeError(w, r, stale)
		default:
			writeError(w, r, db.RestoredError{Recovery: *restored})
		}
	})
}

// startWork starts the workers that read, write and send, until ctx ends, others run a newer revision,
// or there is evidence that the database was restored.
func (s *Server) startWork(ctx context.Context, group *errgroup.Group) {
	ctx = s.whileTrusted(s.whileCurrent(ctx, group), group)
	if !s.cfg.Isolated {
		group.Go(s.runWorker(ctx, s.worker.Run))
		group.Go(func() error { return s.runMailer(ctx) })
		group.Go(func() error { return s.runDirect(ctx) })
		group.Go(func() error {
			s.board.NotifyApprovers(ctx)
			return nil
		})
		group.Go(func() error { return s.runScreening(ctx) })
	}
	s.startMaintenance(ctx, group)
	if s.cfg.KeepEvents > 0 && s.cfg.KeepAttempts > 0 {
		cleaner := s.cleaner(webhooks.NewTables(s.store))
		group.Go(func() error {
			cleaner.Run(ctx)
			return nil
		})
	}
	s.startChains(ctx, group)
}

// prepareLedger refuses a database that has lost operators' transactions, and then makes the configuration the newest revision.
func (s *Server) prepareLedger(ctx context.Context) error {
	if err := s.compareNonces(ctx); err != nil {
		return err
	}
	if err := s.settle.RecordRegistries(ctx); err != nil {
		return fmt.Errorf("record the registries: %w", err)
	}
	if err := s.settle.AssignTransferAmounts(ctx); err != nil { // before their chains are read
		return fmt.Errorf("assign amounts to the remainders of invoices: %w", err)
	}
	if err := s.commitConfiguration(ctx); err != nil {
		return err
	}
	if err := s.store.BeginService(ctx); err != nil {
		return err
	}
	return s.rememberPublicURL(ctx)
}

// rememberPublicURL records the host of the public URL, and reads the former hosts.
func (s *Server) rememberPublicURL(ctx context.Context) error {
	u, err := url.Parse(s.cfg.PublicURL)
	if err != nil || u.Host == "" {
		return err
	}
	hosts, err := s.store.UsePublicHost(ctx, strings.ToLower(u.Hostname()), s.cfg.Now())
	s.former = &formerHosts{hosts, s.cfg.PublicURL}
	return err
}
