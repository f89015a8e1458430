package store

import (
	"context"
	"errors"
	"fmt"
)

// ClockReading is the last stored reading of the schedule's clock, in Unix
// milliseconds. Both fields are 0 before the first reading.
type ClockReading struct {
	NowMS    int64 // of the schedule's clock
	SourceMS int64 // of the clock that it follows
}

// ReadClock updates the schedule's clock. It calls next with the last reading
// and the time of the source clock, stores what next returns, and returns it.
// The source is the database's clock on PostgreSQL, which all replicas share,
// and ownMS on SQLite. next may be called more than once.
func (s *Store) ReadClock(ctx context.Context, ownMS int64, next func(last ClockReading, sourceMS int64) (nowMS int64)) (nowMS int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		// The row is inserted first, so that it can be locked.
		if _, err := tx.exec(ctx, "INSERT INTO schedule_clock (id, now_ms, source_ms) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING"); err != nil {
			return err
		}
		last, err := queryRow(ctx, &tx.queries, func(row scanner) (r ClockReading, err error) {
			err = row.Scan(&r.NowMS, &r.SourceMS)
			return r, err
		}, "SELECT now_ms, source_ms FROM schedule_clock WHERE id = 1"+tx.forUpdate())
		if err != nil {
			return err
		}
		sourceMS := ownMS
		if tx.postgres {
			if sourceMS, err = queryRow(ctx, &tx.queries, scanSeq, "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"); err != nil {
				return err
			}
		}
		nowMS = next(last, sourceMS)
		n, err := tx.exec(ctx, "UPDATE schedule_clock SET now_ms = $1, source_ms = $2 WHERE id = 1", nowMS, sourceMS)
		if err == nil && n == 0 {
			err = errors.New("its row is gone")
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the schedule's clock: %w", err)
	}
	return nowMS, nil
}
