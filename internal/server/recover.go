package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/webhooks"
)

// Limits of a recovery.
const (
	// maxPasses bounds how often the chains are read from the backup on. After a pass that finds lost
	// invoices, another one follows, because their addresses are watched as well.
	maxPasses = 5
	// keptPast is how long after a recovery a new one keeps the block at which it began, for the copies of
	// invoices that arrive late.
	keptPast = 90 * 24 * time.Hour
)

// RecoverOptions are the choices of a recovery.
type RecoverOptions struct {
	// Dismiss ends a false alarm: the database was not restored.
	Dismiss bool
	// KeepKeys selects the keys of the API that stay valid: KeepAll, KeepNone, or their ids. The database
	// does not know which of them were revoked since the backup. The others are revoked. If it is empty
	// and there are keys, the recovery does not end.
	KeepKeys []string
	// Patience is how long a chain may make no progress before the recovery ends with an error; 0 means
	// DefaultPatience.
	Patience time.Duration
	// OldHeads accepts a newest block that is older than maxHeadAge, of a chain that has stopped.
	OldHeads bool
}

// Values of RecoverOptions.KeepKeys.
const (
	KeepAll  = "all"
	KeepNone = "none"
)

// Recover prepares a database that was restored from a backup for Run: it starts a new timeline, ends
// sessions and links that sign in, and reads the chains from the backup on. It sends nothing out. It
// returns a report that a person must check. If it fails, the database stays in recovery, and Recover
// continues when it is called again. Every replica must be stopped.
func Recover(ctx context.Context, cfg Config, o RecoverOptions) (report RecoveryReport, err error) {
	s, closeAll, err := openAlone(ctx, cfg)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	if err := s.checkIntact(ctx); err != nil {
		return report, err
	}
	if o.Dismiss {
		return report, s.dismissRecovery(ctx)
	}
	if err := s.checkKept(ctx, o.KeepKeys); err != nil { // before the recovery begins and the chains are read
		return report, err
	}
	watched, err := s.beginRecovery(ctx)
	if err != nil {
		return report, err
	}
	if err := s.build(ctx); err != nil {
		return report, err
	}
	if err := s.commitConfiguration(ctx); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.leaveRevision(ctx)) }() // so that the next start finds no replica
	if err := s.readPast(ctx, o, watched); err != nil {
		return report, err
	}
	return s.endRecovery(ctx, o)
}

// openAlone opens the database of a stopped service, for a process that sends nothing out. It fails
// while a service uses the database. closeAll closes everything that the server has opened.
func openAlone(ctx context.Context, cfg Config) (s *Server, closeAll func() error, err error) {
	if s, err = newServer(cfg); err != nil {
		return nil, nil, err
	}
	s.recovering = true
	if err := db.CheckExists(cfg.Database); err != nil { // before its lock
		return nil, nil, err
	}
	unlock, err := db.LockService(cfg.Database)
	if err != nil {
		return nil, nil, err
	}
	if s.store, err = db.OpenExisting(ctx, cfg.Database); err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	closeAll = func() error {
		s.closePools()
		return errors.Join(s.store.Close(), unlock())
	}
	for _, check := range []func(context.Context) error{s.store.CheckWritable, s.checkAlone} {
		if err := check(ctx); err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
	}
	return s, closeAll, nil
}

// checkAlone returns an error if a replica uses the database. A SQLite database was locked.
func (s *Server) checkAlone(ctx context.Context) error {
	return admin.CheckAlone(ctx, s.store, s.cfg.Now, s.cfg.Logger)
}

// dismissRecovery makes the state normal again without a recovery.
func (s *Server) dismissRecovery(ctx context.Context) error {
	was, err := s.store.Recovery(ctx)
	if err != nil || was.State == db.RecoveryNormal {
		return err
	}
	begun, err := ledger.IsRecovering(ctx, s.store) // a backup of such a database has another state
	switch {
	case err != nil:
		return err
	case begun || was.State == db.RecoveryUnderWay:
		return errors.New(`a recovery has begun, which cannot be dismissed; run "quittance recover --config FILE" to finish it`)
	}
	is := db.Recovery{State: db.RecoveryNormal, Since: s.cfg.Now()}
	return s.store.Update(ctx, func(tx *db.Tx) error {
		if !was.MarkedByHand() {
			return s.setRecovery(ctx, tx, access.ActionRecoveryDismiss, was, is)
		}
		if err := webhooks.UnmarkCopy(ctx, tx, s.cfg.Now()); err != nil {
			return err
		}
		return s.auditRecovery(ctx, tx, access.ActionRecoveryDismiss, was, is)
	})
}

// auditedRecovery is the audit log's form of the state of the database.
type auditedRecovery struct {
	State    db.RecoveryState `json:"state"`
	Reason   string           `json:"reason,omitempty"`
	Timeline string           `json:"timeline,omitempty"` // id of the timeline that the recovery began
}

// setRecovery changes the state of the database and records it in the audit log.
func (s *Server) setRecovery(ctx context.Context, tx *db.Tx, action access.Action, was, is db.Recovery) error {
	if err := tx.SetRecovery(ctx, is); err != nil {
		return err
	}
	if is.State == db.RecoveryNormal {
		if err := tx.AdoptDatabase(ctx); err != nil {
			return err
		}
	}
	return s.auditRecovery(ctx, tx, action, was, is)
}

// auditRecovery records in the audit log that the state of the database has changed.
func (s *Server) auditRecovery(ctx context.Context, tx *db.Tx, action access.Action, was, is db.Recovery) error {
	all, err := webhooks.Timelines(ctx, tx)
	if err != nil {
		return err
	}
	after := auditedRecovery{State: is.State, Reason: is.Reason}
	if len(all) > 0 {
		after.Timeline = all[len(all)-1].ID
	}
	return access.AppendAudit(ctx, tx, access.NewEntry(ctx, s.cfg.Now(), access.Change{
		Action: action, Object: "database", Before: auditedRecovery{State: was.State, Reason: was.Reason}, After: after,
	}))
}

// beginRecovery starts a timeline and ends sessions, unless a recovery has begun already. A recovery
// that has ended continues if no service has run since: its findings stay, and imports count from the
// backup on. It returns the results of ledger.RecoverFrom if it has started a new one.
func (s *Server) beginRecovery(ctx context.Context) (watched map[string]int, err error) {
	watched = make(map[string]int)
	err = s.store.Update(ctx, func(tx *db.Tx) error {
		was, err := tx.Recovery(ctx)
		if err != nil || was.State == db.RecoveryUnderWay {
			return err
		}
		if was.IsMoved() {
			return was.Err()
		}
		is := db.Recovery{State: db.RecoveryUnderWay, Reason: was.Reason, Since: s.cfg.Now()}
		if was.State == db.RecoveryNormal {
			is.Reason = "nothing was found, and a person asked for the recovery"
		}
		if was.State == db.RecoveryNormal && !was.Ended.IsZero() {
			is.Reason = "it is run again, and no service has run since it ended"
			if err := ledger.ResumeRecovery(ctx, tx); err != nil {
				return err
			}
			return s.setRecovery(ctx, tx, access.ActionRecoveryBegin, was, is)
		}
		if watched, err = s.startRecovery(ctx, tx, was); err != nil {
			return err
		}
		return s.setRecovery(ctx, tx, access.ActionRecoveryBegin, was, is)
	})
	return watched, err
}

// startRecovery starts a timeline, records where the chains are read from, and ends what may have ended since the backup.
// It returns the results of ledger.RecoverFrom.
func (s *Server) startRecovery(ctx context.Context, tx *db.Tx, was db.Recovery) (watched map[string]int, err error) {
	all, err := webhooks.Timelines(ctx, tx)
	if err != nil {
		return nil, err
	}
	if _, err := webhooks.StartTimeline(ctx, tx, s.ids.New(invoice.PrefixTimeline), s.cfg.Now()); err != nil {
		return nil, err
	}
	isRecent := len(all) > 0 && s.cfg.Now().Sub(all[len(all)-1].StartedAt) < keptPast
	if watched, err = ledger.RecoverFrom(ctx, tx, isRecent || !was.Ended.IsZero(), s.cfg.Now()); err != nil {
		return nil, err
	}
	return watched, endWhatMayHaveEnded(ctx, tx, s.cfg.Now())
}

// endWhatMayHaveEnded ends sessions, and cancels mails and changes of addresses that waited, since that may have
// happened after the backup. The backup is not older than its newest block and its newest change.
func endWhatMayHaveEnded(ctx context.Context, tx *db.Tx, now time.Time) error {
	read, err := ledger.BackupTime(ctx, tx)
	if err != nil {
		return fmt.Errorf("find out when the backup was made: %w", err)
	}
	changed, err := access.LastAudited(ctx, tx)
	if err != nil {
		return fmt.Errorf("find out when the backup was made: %w", err)
	}
	if err := access.EndSessions(ctx, tx); err != nil {
		return err
	}
	if err := access.DropPendingAddresses(ctx, tx, clock.Later(read, changed), now); err != nil {
		return err
	}
	return mailer.CancelAll(ctx, tx)
}

// readPast reads the chains from the backup to their heads, and again for lost invoices that it finds. The given number
// of lost addresses of a chain were watched whenever its blocks were read.
func (s *Server) readPast(ctx context.Context, o RecoverOptions, watched map[string]int) error {
	if err := s.settle.RecordRegistries(ctx); err != nil {
		return fmt.Errorf("record the registries: %w", err)
	}
	if err := s.recoverFrom(ctx); err != nil {
		return err
	}
	for range maxPasses {
		if err := s.readToHeads(ctx, o); err != nil {
			return err
		}
		if more, err := s.watchLost(ctx, watched); !more || err != nil {
			return err
		}
		s.closePools()
		if err := s.buildChains(); err != nil {
			return err
		}
	}
	return s.readToHeads(ctx, o)
}

// recoverFrom finds the first block of each chain that the recovery reads. For a chain that the
// backup had never read, the database has no such block: it is read from startBlock on, even if an
// earlier recovery has read only newer blocks. Without startBlock, that is an error.
func (s *Server) recoverFrom(ctx context.Context) error {
	from, err := ledger.RecoveredFrom(ctx, s.store)
	if err != nil {
		return err
	}
	for _, c := range s.cfg.Chains {
		if _, known := from[c.Key]; known {
			continue
		}
		if c.StartBlock == nil {
			return fmt.Errorf("the backup was made before the service first read %s, so it does not say in which blocks the lost invoices are. "+
				"Set startBlock of this chain in the configuration to a block before its first invoice, such as the one that deployed the registry, and run this again. "+
				"If the service never used the chain, name its newest block", c.Key)
		}
		from[c.Key] = max(*c.StartBlock, 1) // block 0 holds no transactions
		if err := s.settle.ReadAgain(ctx, c.Key, from[c.Key]); err != nil {
			return fmt.Errorf("read %s again: %w", c.Key, err)
		}
		err := s.store.Update(ctx, func(tx *db.Tx) error { return ledger.RecoverChainFrom(ctx, tx, c.Key, from[c.Key]) })
		if err != nil {
			return fmt.Errorf("record where the recovery begins to read %s: %w", c.Key, err)
		}
	}
	return nil
}

// watchLost watches the addresses of lost invoices, and schedules the chains with newly found ones to
// be read again. It reports whether there is such a chain.
func (s *Server) watchLost(ctx context.Context, watched map[string]int) (more bool, err error) {
	from, err := ledger.RecoveredFrom(ctx, s.store)
	if err != nil {
		return false, err
	}
	for _, c := range s.cfg.Chains {
		n, err := s.settle.WatchLost(ctx, c.Key)
		if err != nil {
			return false, err
		}
		if n <= watched[c.Key] {
			continue
		}
		watched[c.Key], more = n, true
		if err := s.settle.ReadAgain(ctx, c.Key, from[c.Key]); err != nil {
			return false, fmt.Errorf("read %s again: %w", c.Key, err)
		}
	}
	return more, nil
}

// closePools closes the connections to the nodes and drops the workers of the chains.
func (s *Server) closePools() {
	for _, run := range s.chains {
		run.pool.Close()
	}
	s.chains = nil
	clear(s.byKey)
}
