package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ClockReading is the last stored reading of the schedule's clock. Now and Source are zero before the
// first reading. The other fields are zero before the first reading by a program that knows them.
type ClockReading struct {
	Now    time.Time // of the schedule's clock
	Source time.Time // of the clock that it follows
	// Offset is the smallest difference of Source and Now since Since, and Before the smallest one of the
	// period before.
	Since          time.Time
	Before, Offset time.Duration
}

// ReadClock updates the schedule's clock. It calls next with the last reading and
// the time of the source clock, stores what next returns, and returns it. The
// source is the database's clock on PostgreSQL, which all replicas share, and own
// on SQLite. Times have a resolution of milliseconds. next may be called more than
// once.
func (s *DB) ReadClock(ctx context.Context, own time.Time, next func(last ClockReading, source time.Time) ClockReading) (now ClockReading, err error) {
	var beat int64
	var state Recovery
	known := s.beats.known()
	err = s.heartbeat(ctx, func(tx *Tx) error {
		if err := tx.probeDisk(ctx); err != nil {
			return err
		}
		// The row is inserted first, so that it can be locked.
		if _, err := tx.Exec(ctx, "INSERT INTO schedule_clock (id, now_ms, source_ms) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING"); err != nil {
			return err
		}
		last, err := QueryRow(ctx, tx, func(row Scanner) (r ClockReading, err error) {
			var before, offset int64
			err = row.Scan(Milliseconds(&r.Now), Milliseconds(&r.Source), Int(&before), Int(&offset), Milliseconds(&r.Since))
			r.Before, r.Offset = time.Duration(before)*time.Millisecond, time.Duration(offset)*time.Millisecond
			return r, err
		}, "SELECT now_ms, source_ms, offset_before_ms, offset_ms, offset_since_ms FROM schedule_clock WHERE id = 1"+tx.ForUpdate())
		if err != nil {
			return err
		}
		source := own.Truncate(time.Millisecond)
		if tx.OnPostgres() {
			if source, err = QueryRow(ctx, tx, func(row Scanner) (at time.Time, err error) {
				err = row.Scan(Milliseconds(&at))
				return at, err
			}, "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"); err != nil {
				return err
			}
		}
		now = next(last, source)
		now.Now = now.Now.Truncate(time.Millisecond)
		n, err := tx.Exec(ctx, `UPDATE schedule_clock SET now_ms = $1, source_ms = $2, offset_before_ms = $3, offset_ms = $4, offset_since_ms = $5 WHERE id = 1`,
			now.Now.UnixMilli(), source.UnixMilli(), now.Before.Milliseconds(), now.Offset.Milliseconds(), now.Since.UnixMilli())
		if err == nil && n == 0 {
			err = errors.New("its row is gone")
		}
		if err == nil {
			beat, state, err = tx.beat(ctx, known, own)
		}
		return err
	})
	if err != nil {
		return ClockReading{}, fmt.Errorf("read the schedule's clock: %w", err)
	}
	s.beats.committed(beat, state)
	return now, nil
}

// probeDisk fails if PostgreSQL's disk is full. The write of a reading shows that too late: it
// replaces a row in its page, and its WAL goes to a segment that already has its full size. So the
// probe makes PostgreSQL write a temporary file of some 100 kB, which leaves no trace in the catalog,
// the WAL or a table.
func (tx *Tx) probeDisk(ctx context.Context) error {
	if !tx.OnPostgres() {
		return nil
	}
	if _, err := tx.Exec(ctx, "SET LOCAL work_mem = '64kB'"); err != nil { // the least, so that the rows do not fit
		return err
	}
	_, err := QueryRow(ctx, tx, ScanSeq, "SELECT count(*) FROM generate_series(1, 10000)")
	return During("write a temporary file", err)
}
