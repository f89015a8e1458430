package dispatcher

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/wait"
	"github.com/quittance/quittance/internal/watchdog"
)

const (
	// cleanBatch is how many events one transaction of the cleaner looks at, and how many pages of a SQLite file one
	// returns to the disk.
	cleanBatch = 500
	// cleanTimeout bounds it.
	cleanTimeout = 30 * time.Second
	// cleanEvery is the default time between two rounds.
	cleanEvery = time.Hour
	// restartEvery is how often the log of attempts is gone through from its
	// beginning, to remove the attempts of events that were pending when they were
	// passed, or that were sent again since.
	restartEvery = 24 * time.Hour
	// restFactor is how many times as long as a batch took the cleaner rests
	// after it, so that no delivery waits behind more than one batch. It is halved each time
	// that a round lasts as long as the time between two, down to 1: otherwise more events
	// than that would be recorded in the same time, without end.
	restFactor = 10
)

// Log is what the cleaner removes old entries of. *store.Store is one.
type Log interface {
	CleanEvents(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error)
	CleanAttempts(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error)
	// MaintainPartitions makes partitions for new attempts and drops those of events before a time. It
	// returns the time before which CleanAttempts deletes what is left.
	MaintainPartitions(ctx context.Context, now, before time.Time) (rowsBefore time.Time, err error)
	DropRetiredSecrets(ctx context.Context, now time.Time) (int64, error)
	// ReturnSpace returns up to limit pages to the disk, and reports whether it may do more.
	ReturnSpace(ctx context.Context, limit int) (more bool, err error)
}

// CleanerConfig configures a Cleaner. All fields but Every and Watchdog are required.
type CleanerConfig struct {
	Log          Log
	KeepEvents   time.Duration // events, with all that is known of their deliveries
	KeepAttempts time.Duration // the log of attempts
	Every        time.Duration // between two rounds; default one hour
	// Now ends the age of an event. It must not jump forward, since nothing that
	// was removed comes back.
	Now      func() time.Time
	Logger   *slog.Logger
	Watchdog *watchdog.Watchdog // notices a batch that makes no progress; nil for none
}

// Cleaner removes events and attempts that have been kept for long enough,
// except events that are still to be delivered. Afterwards it has a SQLite file shrink.
type Cleaner struct{ conf CleanerConfig }

// NewCleaner returns a cleaner.
func NewCleaner(conf CleanerConfig) *Cleaner {
	if conf.Watchdog == nil {
		conf.Watchdog = watchdog.New(0)
	}
	conf.Every = cmp.Or(conf.Every, cleanEvery)
	return &Cleaner{conf}
}

// Run cleans until the context ends. An error is logged; the next round goes on
// from there.
func (c *Cleaner) Run(ctx context.Context) {
	var attempts int64 // up to where the log of attempts is cleaned
	restarted := c.conf.Now()
	for {
		if now := c.conf.Now(); now.Sub(restarted) >= restartEvery {
			restarted, attempts = now, 0
		}
		if err := c.round(ctx, &attempts); err != nil && ctx.Err() == nil {
			c.conf.Logger.ErrorContext(ctx, "removal of old events failed, will retry", "err", err)
		}
		if !wait.Sleep(ctx, c.conf.Every, nil) {
			return
		}
	}
}

func (c *Cleaner) round(ctx context.Context, attempts *int64) error {
	now := c.conf.Now()
	var events int64
	if err := c.batches(ctx, c.conf.Log.CleanEvents, now.Add(-c.conf.KeepEvents), &events); err != nil {
		return err
	}
	before, err := c.partitions(ctx, now)
	if err != nil {
		return err
	}
	if err := c.batches(ctx, c.conf.Log.CleanAttempts, before, attempts); err != nil {
		return err
	}
	if err := c.dropSecrets(ctx, now); err != nil {
		return err
	}
	return c.batches(ctx, func(ctx context.Context, _ time.Time, after int64, limit int) (int64, bool, error) {
		more, err := c.conf.Log.ReturnSpace(ctx, limit)
		return after, more, err
	}, before, new(int64))
}

func (c *Cleaner) dropSecrets(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	_, err := c.conf.Log.DropRetiredSecrets(ctx, now)
	return err
}

// partitions maintains the partitions of attempts.
func (c *Cleaner) partitions(ctx context.Context, now time.Time) (rowsBefore time.Time, err error) {
	task := c.conf.Watchdog.Begin("attempts: partitions")
	defer task.End()
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return c.conf.Log.MaintainPartitions(ctx, now, now.Add(-c.conf.KeepAttempts))
}

type cleanFunc func(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error)

func (c *Cleaner) batches(ctx context.Context, clean cleanFunc, before time.Time, done *int64) error {
	round := time.Now()
	for more := true; more && ctx.Err() == nil; {
		began := time.Now()
		var err error
		if *done, more, err = c.batch(ctx, clean, before, *done); err != nil {
			return err
		}
		if more {
			factor := max(1, restFactor>>(time.Since(round)/c.conf.Every))
			wait.Sleep(ctx, time.Duration(factor)*time.Since(began), nil)
		}
	}
	return ctx.Err()
}

// batch makes one call of the database.
func (c *Cleaner) batch(ctx context.Context, clean cleanFunc, before time.Time, done int64) (int64, bool, error) {
	task := c.conf.Watchdog.Begin("events: clean")
	defer task.End()
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return clean(ctx, before, done, cleanBatch)
}
