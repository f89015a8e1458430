package store

import (
	"context"
	"fmt"
	"time"
)

// CleanEvents deletes events that were created before a time,
// with their deliveries and attempts, unless a delivery is pending. It examines
// up to limit events with sequence numbers greater than after. It returns the
// last number examined and whether there may be more. It keeps the newest
// event, since numbering continues from it.
func (s *Store) CleanEvents(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error) {
	return s.clean(ctx, before, after, limit, "attempts", "finished_deliveries", "events")
}

// CleanAttempts deletes only the attempts of such events. Attempts of pending
// deliveries are kept until a later call finds them finished.
func (s *Store) CleanAttempts(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error) {
	return s.clean(ctx, before, after, limit, "attempts")
}

func (s *Store) clean(ctx context.Context, before time.Time, after int64, limit int, tables ...string) (done int64, more bool, err error) {
	err = s.Update(ctx, func(tx *Tx) (err error) {
		done, more, err = tx.clean(ctx, before, after, limit, tables...)
		return err
	})
	if err != nil {
		return after, false, fmt.Errorf("remove old events: %w", err)
	}
	return done, more, nil
}

func (tx *Tx) clean(ctx context.Context, before time.Time, after int64, limit int, tables ...string) (done int64, more bool, err error) {
	newest, err := tx.LastSeq(ctx)
	if err != nil {
		return after, false, err
	}
	type candidate struct{ seq, createdAt, pending int64 }
	events, err := queryAll(ctx, &tx.queries, func(row scanner) (c candidate, err error) {
		err = row.Scan(&c.seq, &c.createdAt, nullInt{&c.pending})
		return c, err
	}, `SELECT seq, created_at, (SELECT 1 FROM deliveries WHERE deliveries.seq = events.seq)
		FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`, after, limit)
	if err != nil {
		return after, false, err
	}
	more = len(events) == limit
	var old []int64
	for _, e := range events {
		if e.createdAt >= before.Unix() || e.seq == newest {
			more = false
			break
		}
		after = e.seq
		if e.pending == 0 {
			old = append(old, e.seq)
		}
	}
	for _, table := range tables {
		if err := sendIn(ctx, &tx.queries, "DELETE FROM "+table+" WHERE seq IN ", old); err != nil {
			return after, false, err
		}
	}
	return after, more, nil
}
