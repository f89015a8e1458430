package store

import (
	"context"
	"errors"
	"fmt"
)

// ClockReading is what the schedule's clock said when it was read last, in Unix
// milliseconds. Both are 0 before the first reading.
type ClockReading struct {
	NowMS    int64 // of the schedule's clock
	SourceMS int64 // of the clock that it follows
}

// ReadClock reads the schedule's clock, and returns what next makes of its last
// reading and of what the clock that it follows says: on PostgreSQL that of the
// database, which is one for all replicas; on SQLite ownMS. next may be called
// more than once.
func (s *Store) ReadClock(ctx context.Context, ownMS int64, next func(last ClockReading, sourceMS int64) (nowMS int64)) (nowMS int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		// A row of its own is made first, so that there is one to lock.
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
