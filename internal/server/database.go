package server

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// errLiveDatabase is the error of an isolated service on a database that is no copy.
var errLiveDatabase = errors.New("replicas of the service use this database, so it is no copy; restore the backup into another database, and name that one in the setting database")

// openStore opens the database, and its standby if there is one.
func (s *Server) openStore(ctx context.Context) (*db.DB, error) {
	if s.cfg.ReadOnly == "" {
		return db.Open(ctx, s.cfg.Database)
	}
	return db.OpenWithStandby(ctx, s.cfg.Database, db.StandbyConfig{URL: s.cfg.ReadOnly, OnRead: countReads(s.registry), Logger: s.cfg.Logger})
}

// prepareStore returns an error that explains what to do if the database takes no writes, may have
// been restored from a backup, or is damaged. It starts the first timeline.
func (s *Server) prepareStore(ctx context.Context) error {
	if err := s.store.CheckWritable(ctx); err != nil {
		return err
	}
	if err := s.checkRecovery(ctx); err != nil {
		return err
	}
	if err := s.checkIntact(ctx); err != nil {
		return err
	}
	if s.store.Created() && !s.cfg.Merchants.AcceptAll {
		s.cfg.Logger.Warn("the database was empty, and a new installation begins in it; if there was one before, stop this service and correct the setting database")
	}
	return webhooks.BeginFirstTimeline(ctx, s.store, s.ids.New(invoice.PrefixTimeline), s.cfg.Now())
}

// checkIntact returns an error if the database is damaged.
func (s *Server) checkIntact(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.IntactTimeout)
	defer cancel()
	complete, err := s.store.CheckIntact(ctx)
	if err == nil && !complete {
		s.cfg.Logger.Info("the database is too large to be checked for damage at the start; `quittance backup` checks all of it")
	}
	return err
}

// checkRecovery returns an error that explains what to do if the database is a copy, or may have been
// restored from one. An isolated service runs only on a copy, and marks the copy.
func (s *Server) checkRecovery(ctx context.Context) error {
	if s.cfg.Isolated {
		if err := s.checkCopy(ctx); err != nil {
			return err
		}
		return s.store.MarkIsolated(ctx, s.cfg.IsCopy, s.cfg.Now())
	}
	r, err := s.store.NoticeRestore(ctx, s.cfg.Now())
	if err != nil {
		return err
	}
	return r.Err()
}

// checkCopy returns an error while replicas use the database, unless it was served in isolation before.
func (s *Server) checkCopy(ctx context.Context) error {
	r, err := s.store.Recovery(ctx)
	if err != nil || !r.Isolated.IsZero() {
		return err
	}
	if err = s.checkAlone(ctx); errors.Is(err, admin.ErrReplicaRuns) {
		return errLiveDatabase
	}
	return err
}
