// Package clock is the time by which work is scheduled: due times, deadlines,
// leases and breakers. It follows a source clock that may be set, but never jumps
// with it: while a process runs, it advances with that process's monotonic clock.
// All replicas share it through the database.
//
// So its time may differ from the source's, permanently after an outage or a jump. Wall converts times that are shown
// to people.
//
// There are three times, and docs/operations.md lists which rule uses which:
//
//   - the machine's clock dates stored and shown rows. It ends things that have such a date and can
//     be repaired: sessions, links, keys.
//   - Now, the schedule's time, measures durations: it begins and ends windows, deadlines, leases
//     and budgets.
//   - Confirmed, a time on the machine's clock, decides what cannot be undone: it deletes old data,
//     and frees reserved values.
package clock

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/times"
	"github.com/quittance/quittance/internal/wait"
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
	readEvery   = 5 * time.Second
	readTimeout = 10 * time.Second
)

// Store stores the last reading. *db.DB implements it.
type Store interface {
	ReadClock(ctx context.Context, own time.Time, next func(last db.ClockReading, source time.Time) db.ClockReading) (db.ClockReading, error)
}

// Config configures a Clock. Elapsed, MaxGap and Wake are optional.
type Config struct {
	Store Store
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
	store   Store
	wall    func() time.Time
	elapsed func() time.Duration
	maxGap  time.Duration
	wake    <-chan struct{}
	logger  *slog.Logger

	// mu guards the fields below. Invariant: the time was now when elapsed was at, and it advances with elapsed by up
	// to maxGap until the next reading.
	mu        sync.Mutex
	now       time.Time
	at        time.Duration
	confirmed time.Duration // the source's distance that Confirmed follows
	offset    time.Duration // the last logged offset
	failed    error         // error of the last reading
}

// Open returns a clock after its first reading.
func Open(ctx context.Context, c Config) (*Clock, error) {
	if c.Elapsed == nil {
		began := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(began) }
	}
	k := &Clock{
		store: c.Store, wall: c.Wall, elapsed: c.Elapsed, maxGap: cmp.Or(c.MaxGap, longestOutage), wake: c.Wake, logger: c.Logger,
	}
	return k, k.read(ctx)
}

// Now returns the schedule's time.
func (c *Clock) Now() time.Time {
	return c.timeAt(c.elapsed())
}

// timeAt returns the time at which the process had run for elapsed. A monotonic clock may include the time in which the
// machine was suspended.
func (c *Clock) timeAt(elapsed time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(min(elapsed-c.at, c.maxGap))
}

// Offset returns how far the clock is ahead of this machine's, or 0 if they differ by less than
// tolerance.
func (c *Clock) Offset() time.Duration {
	if d := c.Now().Sub(c.wall()); d.Abs() >= tolerance {
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
	now, wall := c.Now(), c.wall()
	c.mu.Lock()
	defer c.mu.Unlock()
	return times.Earlier(now.Add(c.confirmed), wall)
}

// Err returns why the last reading failed, or nil. A reading is written to the database, so a failure
// shows that the database takes no writes.
func (c *Clock) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Run reads the clock regularly until ctx ends. While the database does not answer, the clock
// continues with only the monotonic clock, for an hour.
func (c *Clock) Run(ctx context.Context) {
	for wait.Sleep(ctx, readEvery, c.wake) {
		if err := c.read(ctx); err != nil && ctx.Err() == nil {
			c.logger.WarnContext(ctx, "schedule clock reading failed, will retry", "err", err)
		}
	}
}

// read reads the clock and stores the reading.
func (c *Clock) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var at time.Duration // when now was computed; the transaction may take longer, and a test clock may jump in between
	read, err := c.store.ReadClock(ctx, c.wall(), func(last db.ClockReading, source time.Time) db.ClockReading {
		at = c.elapsed()
		c.mu.Lock()
		known := !c.now.IsZero()
		c.mu.Unlock()
		if known {
			return confirm(last, follow(last, source, c.timeAt(at)), source)
		}
		return confirm(last, resume(last, source), source)
	})
	c.mu.Lock()
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
		c.logger.WarnContext(ctx, "this machine's clock and the schedule's differ; deliveries are scheduled by the schedule's, which no jump moves",
			"ahead", offset.Round(time.Second))
	}
}

// follow returns the time for a running process that computes own. It follows the source if that has
// advanced by about the same time; otherwise the source has jumped, and the clock continues from own.
func follow(last db.ClockReading, source, own time.Time) time.Time {
	if last.Now.IsZero() {
		return own
	}
	own = times.Later(own, last.Now)
	followed := last.Now.Add(source.Sub(last.Source))
	if followed.Sub(own).Abs() <= tolerance {
		return times.Later(followed, last.Now)
	}
	return own
}

// resume returns the time for a process that has just started. It counts at most
// longestOutage since the last reading.
func resume(last db.ClockReading, source time.Time) time.Time {
	if last.Now.IsZero() {
		return source
	}
	return last.Now.Add(max(0, min(source.Sub(last.Source), longestOutage)))
}

// confirm returns the reading at now with the distances of the source. After a reading by a program
// that stored no distances, the source is followed at first only if it is behind.
func confirm(last db.ClockReading, now, source time.Time) db.ClockReading {
	offset := source.Sub(now)
	next := db.ClockReading{Now: now, Source: source, Since: last.Since, Before: last.Before, Offset: min(last.Offset, offset)}
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
