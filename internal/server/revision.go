package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/drift"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// revisionInterval is how often a replica compares its revision with the newest one.
	revisionInterval = time.Second
	// leaveTimeout bounds giving up the note that a replica runs a revision.
	leaveTimeout = 5 * time.Second
)

// staleRoutes are the paths that a replica with an older revision still serves.
var staleRoutes = []string{"/healthz", "/readyz", "/status", "/metrics"}

// remember compares the configuration with what the database remembers, and sets the chains to what they
// are to be read for. It fails if the configuration contradicts the database.
func (s *Server) remember(ctx context.Context) error {
	start := settle.Start{Configured: drift.Configured{Chains: s.networks(), Merchants: s.cfg.Merchants.profiles()}, Now: s.cfg.Now(), Scheduled: s.clock.Now()}
	if s.store.Shared() {
		s.replica = s.ids.New("rep_")
		start.Replica = s.replica
	}
	after, changes, err := settle.Remember(ctx, s.store, start)
	if err != nil {
		return err
	}
	for _, c := range changes {
		s.cfg.Logger.Info("configuration changed", "change", c.String(), "kind", string(c.Kind))
	}
	s.remembered, s.cfg.Chains = after, slices.Clone(s.cfg.Chains)
	for i, c := range after.Configure(s.networks()) {
		s.cfg.Chains[i].Chain = c
		for _, t := range c.Former {
			s.cfg.Logger.Info("token is read although it is not configured, for payments that may still come", "chain", c.Key,
				"currency", t.Currency, "token", chain.Checksum(t.Address))
		}
	}
	return nil
}

// whileCurrent returns a context that ends with ctx, or once others run a newer revision. The replica keeps
// serving /readyz then, and does nothing else until it is restarted.
func (s *Server) whileCurrent(ctx context.Context, group *errgroup.Group) context.Context {
	if s.replica == "" {
		return ctx
	}
	work, end := context.WithCancel(ctx)
	group.Go(func() error {
		defer end()
		for current := true; current && wait.Sleep(ctx, revisionInterval, nil); {
			current = s.isCurrent(ctx)
		}
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		if err := s.store.LeaveWork(leaving, s.replica); err != nil {
			s.cfg.Logger.Warn("note of the running revision not removed, it will expire", "err", err)
		}
		return nil
	})
	return work
}

// whileTrusted returns a context that ends with ctx, or once there is evidence that the database was restored while
// the service runs. The replica keeps serving /readyz then, and sends nothing out.
func (s *Server) whileTrusted(ctx context.Context, group *errgroup.Group) context.Context {
	work, end := context.WithCancel(ctx)
	if s.cfg.Isolated {
		group.Go(func() error {
			<-ctx.Done()
			end()
			return nil
		})
		return work
	}
	group.Go(func() error {
		defer end()
		for wait.Sleep(ctx, revisionInterval, nil) {
			if r := s.store.Noticed(s.cfg.Now()); r.State != "" && r.State != store.RecoveryNormal {
				s.restored.Store(&r)
				s.gate.close(r.Reason)
				s.cfg.Logger.Error("this replica stops its work: "+r.Err().Error(), "state", string(r.State))
				return nil
			}
		}
		return nil
	})
	return work
}

// isCurrent reports whether no other replica runs a newer revision, as far as is known.
func (s *Server) isCurrent(ctx context.Context) bool {
	now := s.clock.Now()
	err := s.store.KeepRevision(ctx, s.replica, now, now.Add(settle.RevisionTTL))
	var stale *drift.StaleError
	if !errors.As(err, &stale) {
		return true // other errors are those of the database, which /readyz shows
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
		if (stale != nil || restored != nil) && !slices.Contains(staleRoutes, r.URL.Path) {
			if stale != nil {
				writeError(w, r, stale)
			} else {
				writeError(w, r, store.RestoredError{Recovery: *restored})
			}
			return
		}
		next.ServeHTTP(w, r)
	})
}

// startWork starts what reads, writes and sends, until ctx ends, others run a newer revision, or the database turns
// out to be restored.
func (s *Server) startWork(ctx context.Context, group *errgroup.Group) {
	ctx = s.whileTrusted(s.whileCurrent(ctx, group), group)
	if !s.cfg.Isolated {
		group.Go(s.runWorker(ctx, s.worker.Run))
		group.Go(func() error { return s.runMailer(ctx) })
	}
	s.startMaintenance(ctx, group)
	if s.cfg.KeepEvents > 0 && s.cfg.KeepAttempts > 0 {
		cleaner := s.cleaner(s.store)
		group.Go(func() error {
			cleaner.Run(ctx)
			return nil
		})
	}
	s.startChains(ctx, group)
}
