package webhooks

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

const (
	// cleanBatch is how many events one transaction of the cleaner examines, and how many pages of a SQLite file one
	// transaction returns to the disk.
	cleanBatch = 500
	// cleanTimeout bounds such a transaction.
	cleanTimeout = 30 * time.Second
	// cleanEvery is the default time between two rounds.
	cleanEvery = time.Hour
	// restartEvery is how often the log of attempts is cleaned from its beginning again, to remove the attempts of
	// events that were pending at the time, or were sent again since.
	restartEvery = 24 * time.Hour
	// restFactor is how many times as long as a batch the cleaner rests after it, so that no delivery waits behind more
	// than one batch. It is halved each time a round lasts as long as the time between two rounds, down to 1: otherwise
	// events could be recorded faster than they are removed.
	restFactor = 10
)

// CleanedLog holds the entries that the cleaner removes. Tables implement it.
type CleanedLog interface {
	CleanEvents(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error)
	CleanAttempts(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error)
	DropRetiredSecrets(ctx context.Context, now time.Time) (int64, error)
	// ReturnSpace returns up to limit pages to the disk, and reports whether there may be more.
	ReturnSpace(ctx context.Context, limit int) (more bool, err error)
}

// CleanerConfig configures a Cleaner. Only Every and Watchdog are optional.
type CleanerConfig struct {
	Log          CleanedLog
	KeepEvents   time.Duration // events, with everything about their deliveries
	KeepAttempts time.Duration // the log of attempts
	Every        time.Duration // between two rounds; default one hour
	// Now measures the age of an event. It must not jump forward, since removed entries cannot be restored.
	Now      func() time.Time
	Logger   *slog.Logger
	Watchdog *clock.Watchdog // reports a batch that makes no progress; may be nil
}

// Cleaner removes events and attempts that have been kept long enough, except events that are still to be delivered.
// Afterwards it shrinks a SQLite file.
type Cleaner struct{ conf CleanerConfig }

// NewCleaner returns a cleaner.
func NewCleaner(conf CleanerConfig) *Cleaner {
	if conf.Watchdog == nil {
		conf.Watchdog = clock.New(0)
	}
	conf.Every = cmp.Or(conf.Every, cleanEvery)
	return &Cleaner{conf}
}

// Run cleans until the context ends. It logs an error, and the next round continues where this one failed.
func (c *Cleaner) Run(ctx context.Context) {
	var attempts int64 // how far the log of attempts is cleaned
	restarted := c.conf.Now()
	for {
		if now := c.conf.Now(); now.Sub(restarted) >= restartEvery {
			restarted, attempts = now, 0
		}
		if err := c.round(ctx, &attempts); err != nil && ctx.Err() == nil {
			c.conf.Logger.ErrorContext(ctx, "removal of old events failed, will retry", "err", err)
		}
		if !clock.Sleep(ctx, c.conf.Every, nil) {
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
	if err := c.batches(ctx, c.conf.Log.CleanAttempts, now.Add(-c.conf.KeepAttempts), attempts); err != nil {
		return err
	}
	if err := c.dropSecrets(ctx, now); err != nil {
		return err
	}
	return c.batches(ctx, func(ctx context.Context, _ time.Time, after int64, limit int) (int64, bool, error) {
		more, err := c.conf.Log.ReturnSpace(ctx, limit)
		return after, more, err
	}, now, new(int64))
}

func (c *Cleaner) dropSecrets(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	_, err := c.conf.Log.DropRetiredSecrets(ctx, now)
	return err
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
			clock.Sleep(ctx, time.Duration(factor)*time.Since(began), nil)
		}
	}
	return ctx.Err()
}

// batch makes one database call.
func (c *Cleaner) batch(ctx context.Context, clean cleanFunc, before time.Time, done int64) (int64, bool, error) {
	task := c.conf.Watchdog.Begin("events: clean")
	defer task.End()
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return clean(ctx, before, done, cleanBatch)
}
