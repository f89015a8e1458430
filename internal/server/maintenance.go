package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// maintenanceInterval is how often maintain runs.
	maintenanceInterval = 10 * time.Minute
	// remainderInterval is how often assignRemainders runs.
	remainderInterval = 30 * time.Second
	// refundInterval is how often expireRefunds runs.
	refundInterval = 30 * time.Second
	// attributionInterval is how often applyAttributions runs.
	attributionInterval = 5 * time.Second
	// rollupInterval is how often advanceRollups runs.
	rollupInterval = time.Minute
	// backlogPause is the least time between two transactions of a backlog that takes minutes, such as
	// after a year of payments was loaded. The pause is at least as long as the last transaction, so that
	// others can write at least half of the time.
	backlogPause = 20 * time.Millisecond
	// eraseInterval is how often eraseCustomers runs. Most customers are erased by the request itself.
	eraseInterval = 10 * time.Second
	// statisticsInterval is how often updateStatistics runs.
	statisticsInterval = 2 * time.Second
)

// startMaintenance starts the periodic jobs, which run until ctx ends.
func (s *Server) startMaintenance(ctx context.Context, group *errgroup.Group) {
	rollups := report.NewRollups(s.store, s.cfg.Now, s.cfg.Logger)
	for _, work := range []struct {
		interval time.Duration
		do       func(context.Context)
	}{
		{maintenanceInterval, s.maintain},
		{remainderInterval, s.assignRemainders},
		{refundInterval, s.expireRefunds},
		{attributionInterval, s.applyAttributions},
		{access.QuotaInterval, s.countInvoices},
		{rollupInterval, func(ctx context.Context) { s.advanceRollups(ctx, rollups) }},
		{statisticsInterval, s.updateStatistics},
		{eraseInterval, s.eraseCustomers},
	} {
		group.Go(func() error { return every(ctx, work.interval, work.do) })
	}
	group.Go(func() error { return s.openings.run(ctx) })
}

// every calls do immediately and then at an interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) error {
	for {
		do(ctx)
		if !clock.Sleep(ctx, interval, nil) {
			return nil
		}
	}
}

// maintain deletes expired idempotency keys and sessions and old requests of the API.
func (s *Server) maintain(ctx context.Context) {
	if err := s.settle.DeleteOldKeys(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("delete of expired idempotency keys failed, will retry", "err", err)
	}
	if err := s.sessions.Clean(ctx, s.clock.Confirmed()); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("delete of ended sessions failed, will retry", "err", err)
	}
	if err := s.requests.Clean(ctx, s.clock.Confirmed()); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("delete of old requests of the API failed, will retry", "err", err)
	}
}

// expireRefunds stores which prepared refunds have expired, which ends their reservations.
func (s *Server) expireRefunds(ctx context.Context) {
	if err := s.settle.ExpireRefunds(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("expiry of prepared refunds failed, will retry", "err", err)
	}
}

// applyAttributions attributes the payments for which people decided that, and did not undo it.
func (s *Server) applyAttributions(ctx context.Context) {
	if err := s.settle.ApplyAttributions(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("attribution of payments failed, will retry", "err", err)
	}
}

// countInvoices counts the invoices of merchants against their quotas.
func (s *Server) countInvoices(ctx context.Context) {
	if err := s.settle.CountInvoices(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("count of invoices failed, will retry", "err", err)
	}
}

// assignRemainders assigns an amount to the remainder of partly paid invoices that
// lack one.
func (s *Server) assignRemainders(ctx context.Context) {
	if err := s.settle.AssignMoreTransferAmounts(ctx, s.remainderCursors); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("assignment of remainder amounts failed, will retry", "err", err)
	}
}

// updateStatistics has the database's planner count tables that have grown.
func (s *Server) updateStatistics(ctx context.Context) {
	grown, err := s.store.UpdateStatistics(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.cfg.Logger.Warn("update of the planner's statistics failed, will retry", "err", err)
	case len(grown) > 0:
		s.cfg.Logger.Debug("planner's statistics updated", "tables", grown)
	}
}

// advanceRollups adds up settled amounts until all are added up.
func (s *Server) advanceRollups(ctx context.Context, rollups *report.Rollups) {
	s.workOff(ctx, func(ctx context.Context) (more bool, err error) {
		more, err = rollups.Advance(ctx)
		if err != nil && ctx.Err() == nil {
			s.cfg.Logger.Error("sums of settled payments not added up, will retry", "err", err)
		}
		return more, err
	})
}

// eraseCustomers erases the customers with an unfinished request to erase them. A failure does not
// stop the others.
func (s *Server) eraseCustomers(ctx context.Context) {
	from := ""
	s.workOff(ctx, func(ctx context.Context) (more bool, err error) {
		e, err := s.settle.EraseMore(ctx, from)
		if err != nil && ctx.Err() == nil {
			s.cfg.Logger.Error("erasure of a customer failed, will retry", "erasure", e.ID, "err", err)
			if e.ID != "" {
				from, err = e.ID+"0", nil // behind it
			}
		}
		return e.ID != "", err
	})
}

// workOff calls do until no work is left, or it fails. Other jobs run in between.
func (s *Server) workOff(ctx context.Context, do func(context.Context) (more bool, err error)) {
	for {
		began := time.Now()
		more, err := do(ctx)
		if err != nil || !more || !clock.Sleep(ctx, max(backlogPause, time.Since(began)), nil) {
			return
		}
	}
}

// cleaner returns the cleaner of old events and attempts.
func (s *Server) cleaner(log webhooks.CleanedLog) *webhooks.Cleaner {
	return webhooks.NewCleaner(webhooks.CleanerConfig{
		Log: log, KeepEvents: s.cfg.KeepEvents, KeepAttempts: s.cfg.KeepAttempts, Now: s.clock.Confirmed, Logger: s.cfg.Logger, Watchdog: s.watchdog,
	})
}
