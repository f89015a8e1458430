package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// CleanEvents deletes events that were created before a time, with their deliveries and attempts, unless a delivery is
// pending. It examines up to limit events with sequence numbers greater than after. It returns the number from which to
// continue and whether there may be more. It keeps the newest event, because numbering continues from it. An event with
// a date in the future, written while a clock was wrong, is kept until then, but does not keep the events after it.
func (s Tables) CleanEvents(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error) {
	return clean(ctx, s.DB, before, after, limit, "attempts", "finished_deliveries", "events")
}

// CleanAttempts deletes only attempts of events with a finished delivery. Attempts of pending
// deliveries stay until a later call finds them finished.
func (s Tables) CleanAttempts(ctx context.Context, before time.Time, after int64, limit int) (done int64, more bool, err error) {
	return clean(ctx, s.DB, before, after, limit, "attempts")
}

func clean(ctx context.Context, s *db.DB, before time.Time, after int64, limit int, tables ...string) (done int64, more bool, err error) {
	err = s.Update(ctx, func(tx *db.Tx) (err error) {
		done, more, err = cleanTables(ctx, tx, before, after, limit, tables...)
		return err
	})
	if err != nil {
		return after, false, fmt.Errorf("remove old events: %w", err)
	}
	return done, more, nil
}

func cleanTables(ctx context.Context, tx *db.Tx, before time.Time, after int64, limit int, tables ...string) (done int64, more bool, err error) {
	newest, err := NewReader(tx).LastSeq(ctx)
	if err != nil {
		return after, false, err
	}
	through, _, err := seqsAt(ctx, tx, before, true)
	if err != nil {
		return after, false, err
	}
	type candidate struct {
		seq, createdAt, pending int64
		merchantID              string
	}
	events, err := db.QueryAll(ctx, tx, db.Fields(func(c *candidate) []any {
		return []any{&c.seq, &c.createdAt, &c.merchantID, db.Int(&c.pending)}
	}), `SELECT seq, created_at, merchant_id, (SELECT 1 FROM deliveries WHERE deliveries.seq = events.seq)
		FROM events WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3`, after, through, limit)
	if err != nil || len(events) == 0 {
		return after, false, err
	}
	var old []int64
	highest := make(map[string]int64) // removed number, by merchant, and of all
	for _, e := range events {
		if e.createdAt < before.Unix() && e.seq != newest && e.pending == 0 {
			old = append(old, e.seq)
			highest[e.merchantID], highest[""] = e.seq, e.seq
		}
	}
	if slices.Contains(tables, "events") {
		if err := noteRemoved(ctx, tx, highest, before); err != nil {
			return after, false, err
		}
	}
	for _, table := range tables {
		if err := db.SendIn(ctx, tx, "DELETE FROM "+table+" WHERE seq IN ", old); err != nil {
			return after, false, err
		}
	}
	return events[len(events)-1].seq, len(events) == limit, nil
}
