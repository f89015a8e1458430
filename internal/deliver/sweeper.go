package deliver

import (
	"context"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/watchdog"
)

const (
	// sweepBatch is how many events one transaction of the sweeper looks at.
	sweepBatch = 500
	// sweepTimeout bounds it.
	sweepTimeout = 30 * time.Second
	// sweepEvery is the time between two rounds.
	sweepEvery = time.Hour
	// sweepAnew is how often the log of attempts is gone through from its
	// beginning: of events that were pending when they were passed, or were sent
	// again since, it is still there.
	sweepAnew = 24 * time.Hour
	// sweepShare is the part of the time that the sweeper keeps the database
	// busy: after a batch it rests for so many times as long as that took, so
	// that no delivery waits behind more than one batch.
	sweepShare = 10
)

// Log is what the sweeper shortens, as *store.Store keeps it.
type Log interface {
	SweepEvents(ctx context.Context, before, after int64, limit int) (done int64, more bool, err error)
	SweepAttempts(ctx context.Context, before, after int64, limit int) (done int64, more bool, err error)
	DropRetiredSecrets(ctx context.Context, now int64) (int64, error)
}

// Sweeper removes what has been kept for long enough. What is still to be
// delivered is kept in any case.
type Sweeper struct {
	Log          Log
	KeepEvents   time.Duration // events, with all that is known of their deliveries
	KeepAttempts time.Duration // the log of attempts
	// Now is what the age of an event is counted to. What is removed is gone, so
	// it must not jump forward.
	Now      func() time.Time
	Logger   *slog.Logger
	Watchdog *watchdog.Watchdog // told of each batch; nil for none
}

// Run sweeps until the context ends. An error is logged; the next round goes
// on from there.
func (s *Sweeper) Run(ctx context.Context) {
	var attempts int64 // up to where the log of attempts is swept
	anew := s.Now()
	for {
		if now := s.Now(); now.Sub(anew) >= sweepAnew {
			anew, attempts = now, 0
		}
		if err := s.round(ctx, &attempts); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "old events could not be removed; trying again later", "error", err)
		}
		if !rest(ctx, sweepEvery) {
			return
		}
	}
}

func (s *Sweeper) round(ctx context.Context, attempts *int64) error {
	now := s.Now()
	var events int64
	if err := s.batches(ctx, s.Log.SweepEvents, now.Add(-s.KeepEvents), &events); err != nil {
		return err
	}
	if err := s.batches(ctx, s.Log.SweepAttempts, now.Add(-s.KeepAttempts), attempts); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	_, err := s.Log.DropRetiredSecrets(ctx, now.Unix())
	return err
}

type sweep func(ctx context.Context, before, after int64, limit int) (done int64, more bool, err error)

func (s *Sweeper) batches(ctx context.Context, sweep sweep, before time.Time, done *int64) error {
	for more := true; more && ctx.Err() == nil; {
		began := time.Now()
		var err error
		if *done, more, err = s.batch(ctx, sweep, before, *done); err != nil {
			return err
		}
		if more {
			rest(ctx, sweepShare*time.Since(began))
		}
	}
	return ctx.Err()
}

// batch makes one call of the database.
func (s *Sweeper) batch(ctx context.Context, sweep sweep, before time.Time, done int64) (int64, bool, error) {
	if s.Watchdog != nil {
		task := s.Watchdog.Begin("events: sweep")
		defer task.End()
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return sweep(ctx, before.Unix(), done, sweepBatch)
}

// rest waits. It reports false when the context ended before.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
