package db

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

const (
	// tolerance is how far the source may deviate from the time that has passed
	// before it counts as a jump. Clocks are slewed and corrected all the time.
	tolerance = 2 * time.Second
	// longestOutage bounds the time that counts between two readings in which the service could not work:
	// no process ran, or it was frozen, or the database did not answer. For a process that starts, a
	// longer outage looks the same as a clock that was set forward.
	longestOutage = time.Hour
	// confirmPeriod is how long the source's distance must have been stable, in time of the schedule,
	// until Confirmed follows it. It takes between one and two periods.
	confirmPeriod = 24 * time.Hour
	// readEvery is the interval of readings, and readTimeout bounds each.
	readEvery        = 5 * time.Second
	clockReadTimeout = 10 * time.Second
)

// ClockStore stores the last reading. *db.DB implements it.
type ClockStore interface {
	ReadClock(ctx context.Context, own time.Time, next func(last ClockReading, source time.Time) ClockReading) (ClockReading, error)
}

// ClockConfig configures a Clock. Elapsed, MaxGap and Wake are optional.
type ClockConfig struct {
	Store ClockStore
	Wall  func() time.Time // the clock of this machine, which may be set
	// Elapsed returns how long the process has run, by a monotonic clock. nil means
	// the runtime's.
	Elapsed func() time.Duration
	// MaxGap bounds how far the clock advances from one reading of a running process to
	// the next. 0 means longestOutage.
	MaxGap time.Duration
	Wake   <-chan struct{} // makes Run read immediately
	Logger *slog.Logger
}

// Clock is the schedule's clock. It is safe for concurrent use.
type Clock struct {
	conf ClockConfig

	// mu guards the fields below. Invariant: the time was now when elapsed was at, and it advances with elapsed by up
	// to MaxGap until the next reading.
	mu        sync.Mutex
	now       time.Time
	at        time.Duration
	confirmed time.Duration // the source's distance that Confirmed follows
	offset    time.Duration // the last logged offset
	failed    error         // error of the last reading
	reading   time.Duration // when the reading that is in progress began, by Elapsed; negative without one
}

// OpenClock returns a clock after its first reading.
func OpenClock(ctx context.Context, c ClockConfig) (*Clock, error) {
	if c.Elapsed == nil {
		began := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(began) }
	}
	c.MaxGap = cmp.Or(c.MaxGap, longestOutage)
	k := &Clock{conf: c, reading: -1}
	return k, k.read(ctx)
}

// Now returns the schedule's time.
func (c *Clock) Now() time.Time {
	return c.timeAt(c.conf.Elapsed())
}

// timeAt returns the time at which the process had run for elapsed. A monotonic clock may include the time in which the
// machine was suspended.
func (c *Clock) timeAt(elapsed time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(min(elapsed-c.at, c.conf.MaxGap))
}

// Offset returns how far the clock is ahead of this machine's, or 0 if they differ by less than
// tolerance.
func (c *Clock) Offset() time.Duration {
	if d := c.Now().Sub(c.conf.Wall()); d.Abs() >= tolerance {
		return d
	}
	return 0
}

// Wall converts a time of the schedule to this machine's clock. The zero time
// stays zero.
func (c *Clock) Wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-c.Offset())
}

// Confirmed returns the time by which old data is deleted: the schedule's time plus the smallest
// distance of its source in the last one to two confirmPeriods, and at most this machine's time. So a
// clock that is ahead for less than a day deletes no data early, and data is kept longer only by the
// time that the service was off in the last two days of running.
func (c *Clock) Confirmed() time.Time {
	now, wall := c.Now(), c.conf.Wall()
	c.mu.Lock()
	defer c.mu.Unlock()
	return clock.Earlier(now.Add(c.confirmed), wall)
}

// errReadingHangs means that a disk or server does not answer a commit, which cannot be given up.
var errReadingHangs = errors.New("the schedule's clock has not been stored in time")

// Err returns why the last reading failed, or that one hangs, or nil. A reading is written to the
// database, so a failure shows that the database takes no writes.
func (c *Clock) Err() error {
	elapsed := c.conf.Elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading >= 0 && elapsed-c.reading > clockReadTimeout {
		return errReadingHangs
	}
	return c.failed
}

// Run reads the clock regularly until ctx ends. While the database does not answer, the clock
// continues with only the monotonic clock, for an hour.
func (c *Clock) Run(ctx context.Context) {
	for clock.Sleep(ctx, readEvery, c.conf.Wake) {
		if err := c.read(ctx); err != nil && ctx.Err() == nil {
			c.conf.Logger.WarnContext(ctx, "schedule clock reading failed, will retry", "err", err)
		}
	}
}

// read reads the clock and stores the reading.
func (c *Clock) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clockReadTimeout)
	defer cancel()
	began := c.conf.Elapsed()
	c.mu.Lock()
	c.reading = max(began, 0)
	c.mu.Unlock()
	var at time.Duration // when now was computed; the transaction may take longer, and a test clock may jump in between
	read, err := c.conf.Store.ReadClock(ctx, c.conf.Wall(), func(last ClockReading, source time.Time) ClockReading {
		at = c.conf.Elapsed()
		c.mu.Lock()
		known := !c.now.IsZero()
		c.mu.Unlock()
		if known {
			return confirm(last, follow(last, source, c.timeAt(at)), source)
		}
		return confirm(last, resume(last, source), source)
	})
	c.mu.Lock()
	c.reading = -1
	if c.failed = err; err == nil {
		c.now, c.at, c.confirmed = read.Now, at, min(read.Before, read.Offset)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.logOffset(ctx)
	return nil
}

// logOffset logs a change of the clock's offset from this machine's.
func (c *Clock) logOffset(ctx context.Context) {
	offset := c.Offset()
	c.mu.Lock()
	changed := (offset - c.offset).Abs() >= tolerance
	if changed {
		c.offset = offset
	}
	c.mu.Unlock()
	if changed {
		c.conf.Logger.WarnContext(ctx, "this machine's clock and the schedule's differ; deliveries are scheduled by the schedule's, which no jump moves",
			"ahead", offset.Round(time.Second))
	}
}

// follow returns the time for a running process that computes own. It follows the source if that has
// advanced by about the same time; otherwise the source has jumped, and the clock continues from own.
func follow(last ClockReading, source, own time.Time) time.Time {
	if last.Now.IsZero() {
		return own
	}
	own = clock.Later(own, last.Now)
	followed := last.Now.Add(source.Sub(last.Source))
	if followed.Sub(own).Abs() <= tolerance {
		return clock.Later(followed, last.Now)
	}
	return own
}

// resume returns the time for a process that has just started. It counts at most
// longestOutage since the last reading.
func resume(last ClockReading, source time.Time) time.Time {
	if last.Now.IsZero() {
		return source
	}
	return last.Now.Add(max(0, min(source.Sub(last.Source), longestOutage)))
}

// confirm returns the reading at now with the distances of the source. After a reading by a program
// that stored no distances, the source is followed at first only if it is behind.
func confirm(last ClockReading, now, source time.Time) ClockReading {
	offset := source.Sub(now)
	next := ClockReading{Now: now, Source: source, Since: last.Since, Before: last.Before, Offset: min(last.Offset, offset)}
	switch {
	case last.Now.IsZero():
		next.Since, next.Before, next.Offset = now, offset, offset
	case last.Since.IsZero():
		next.Since, next.Before, next.Offset = now, min(0, offset), offset
	case now.Sub(last.Since) >= confirmPeriod:
		next.Since, next.Before, next.Offset = now, last.Offset, offset
	}
	return next
}
