// Package clock is the time by which work is scheduled: due times, deadlines,
// leases and breakers. It follows a clock that may be set, but never jumps with
// it: while a process runs, it goes on by that process's monotonic clock, and
// all replicas share it through the database.
//
// Its time may thus differ from that of the clock that it follows, for good
// after an outage or a jump. What is shown to people is converted by Wall.
package clock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/store"
)

const (
	// tolerance is by how much the clock that is followed may differ from the time
	// that has passed and is still followed: clocks are slewed and corrected a
	// little all the time.
	tolerance = 2 * time.Second
	// longestOutage is how much of the time is counted in which no process ran.
	// Longer outages cannot be told from a clock that was set forward.
	longestOutage = time.Hour
	// readEvery is the time between two readings, and readTimeout bounds one.
	readEvery   = 5 * time.Second
	readTimeout = 10 * time.Second
)

// Store keeps the last reading. *store.Store is one.
type Store interface {
	ReadClock(ctx context.Context, ownMS int64, next func(last store.ClockReading, sourceMS int64) (nowMS int64)) (nowMS int64, err error)
}

// Config says what a clock is made of. All but Elapsed must be set.
type Config struct {
	Store Store
	Wall  func() time.Time // the clock of this machine, which may be set
	// Elapsed returns how long the process has run, by a clock that nobody can
	// set. nil is the runtime's.
	Elapsed func() time.Duration
	Logger  *slog.Logger
}

// Clock is the schedule's. It is safe for concurrent use. The invariant of its
// lock: the time was now when elapsed was at.
type Clock struct {
	Config

	mu     sync.Mutex
	now    time.Time
	at     time.Duration
	offset time.Duration // by which it was ahead of Wall when that was logged last
	failed error         // of the last reading
}

// Open returns a clock that has been read.
func Open(ctx context.Context, c Config) (*Clock, error) {
	if c.Elapsed == nil {
		began := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(began) }
	}
	k := &Clock{Config: c}
	return k, k.read(ctx)
}

// Now returns the schedule's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.Elapsed() - c.at)
}

// Offset returns by how much the clock is ahead of this machine's. What is less
// than two seconds is no difference.
func (c *Clock) Offset() time.Duration {
	if d := c.Now().Sub(c.Config.Wall()); d.Abs() >= tolerance {
		return d
	}
	return 0
}

// Wall returns what this machine's clock says at a time of the schedule's, both
// in Unix milliseconds. 0 stays 0.
func (c *Clock) Wall(ms int64) int64 {
	if ms == 0 {
		return 0
	}
	return ms - c.Offset().Milliseconds()
}

// Earlier returns this machine's time or the schedule's, whichever is earlier.
// What is old by it is old by both: nothing is removed for good because one of
// them jumped.
func (c *Clock) Earlier() time.Time {
	now, wall := c.Now(), c.Config.Wall()
	if now.Before(wall) {
		return now
	}
	return wall
}

// Err returns why the last reading failed, or nil. A reading is written to the
// database, so one that fails shows that the database takes no writes.
func (c *Clock) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Run keeps the clock until the context ends. While the database does not
// answer, it goes on by itself.
func (c *Clock) Run(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := c.read(ctx); err != nil && ctx.Err() == nil {
			c.Logger.WarnContext(ctx, "the schedule's clock cannot be kept; it goes on by itself", "err", err)
		}
	}
}

// read reads the clock.
func (c *Clock) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	nowMS, err := c.Store.ReadClock(ctx, c.Config.Wall().UnixMilli(), func(last store.ClockReading, sourceMS int64) int64 {
		c.mu.Lock()
		known := !c.now.IsZero()
		c.mu.Unlock()
		if known {
			return follow(last, sourceMS, c.Now().UnixMilli())
		}
		return resume(last, sourceMS)
	})
	c.mu.Lock()
	if c.failed = err; err == nil {
		c.now, c.at = time.UnixMilli(nowMS), c.Elapsed()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.report(ctx)
	return nil
}

// report logs when the clock's distance from this machine's has changed.
func (c *Clock) report(ctx context.Context) {
	offset := c.Offset()
	c.mu.Lock()
	changed := (offset - c.offset).Abs() >= tolerance
	if changed {
		c.offset = offset
	}
	c.mu.Unlock()
	if changed {
		c.Logger.WarnContext(ctx, "this machine's clock and the schedule's differ; deliveries are scheduled by the schedule's, which no jump moves",
			"ahead", offset.Round(time.Second))
	}
}

// follow returns the time when a process is at work for which it is ownMS. Where
// the source says about the same it is followed; else it has jumped, and goes on
// from where it is.
func follow(last store.ClockReading, sourceMS, ownMS int64) int64 {
	if last.NowMS == 0 {
		return ownMS
	}
	ownMS = max(ownMS, last.NowMS)
	followed := last.NowMS + sourceMS - last.SourceMS
	if (time.Duration(followed-ownMS) * time.Millisecond).Abs() <= tolerance {
		return max(followed, last.NowMS)
	}
	return ownMS
}

// resume returns the time for a process that has just begun. Of the time since
// the last reading it counts no more than an outage may last.
func resume(last store.ClockReading, sourceMS int64) int64 {
	if last.NowMS == 0 {
		return max(sourceMS, 1)
	}
	since := time.Duration(sourceMS-last.SourceMS) * time.Millisecond
	return last.NowMS + max(0, min(since, longestOutage)).Milliseconds()
}
