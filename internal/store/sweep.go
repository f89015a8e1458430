package store

import (
	"context"
	"fmt"
)

// SweepEvents removes events that were made before a time, in Unix seconds,
// with all that is known of their deliveries, unless these are pending. It
// looks at no more than limit events, those behind the number after, and
// returns up to which number it is done and whether older ones may be left.
// The newest event stays whatever its age, since the numbers go on from it.
func (s *Store) SweepEvents(ctx context.Context, before, after int64, limit int) (done int64, more bool, err error) {
	return s.sweep(ctx, before, after, limit, "attempts", "finished_deliveries", "events")
}

// SweepAttempts removes, likewise, the log of their attempts alone. That of
// pending events is removed when they are looked at again, once finished.
func (s *Store) SweepAttempts(ctx context.Context, before, after int64, limit int) (done int64, more bool, err error) {
	return s.sweep(ctx, before, after, limit, "attempts")
}

func (s *Store) sweep(ctx context.Context, before, after int64, limit int, tables ...string) (done int64, more bool, err error) {
	err = s.Update(ctx, func(tx *Tx) (err error) {
		done, more, err = tx.sweep(ctx, before, after, limit, tables...)
		return err
	})
	if err != nil {
		return after, false, fmt.Errorf("remove old events: %w", err)
	}
	return done, more, nil
}

func (tx *Tx) sweep(ctx context.Context, before, after int64, limit int, tables ...string) (done int64, more bool, err error) {
	newest, err := tx.LastSeq(ctx)
	if err != nil {
		return after, false, err
	}
	type candidate struct{ seq, createdAt, pending int64 }
	events, err := collect(ctx, &tx.queries, func(row scanner) (c candidate, err error) {
		err = row.Scan(&c.seq, &c.createdAt, seconds{&c.pending})
		return c, err
	}, `SELECT seq, created_at, (SELECT 1 FROM deliveries WHERE deliveries.seq = events.seq)
		FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`, after, limit)
	if err != nil {
		return after, false, err
	}
	more = len(events) == limit
	var old []int64
	for _, e := range events {
		if e.createdAt >= before || e.seq == newest {
			more = false
			break
		}
		after = e.seq
		if e.pending == 0 {
			old = append(old, e.seq)
		}
	}
	for _, table := range tables {
		if err := execIn(ctx, &tx.queries, "DELETE FROM "+table+" WHERE seq IN ", old); err != nil {
			return after, false, err
		}
	}
	return after, more, nil
}
