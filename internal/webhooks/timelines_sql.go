package webhooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Timeline is a history of the logs. A new one begins when the database was restored from a backup:
// the numbers after the backup are given again, to other events.
type Timeline struct {
	Number    int64 // 1 is the first
	ID        string
	StartedAt time.Time
	LastSeq   int64 // number of the last event in common with the timeline before
	LastAudit int64 // number of the last audit log entry in common with the timeline before
}

var timelineTable = db.NewTable("timelines", func(t *Timeline) []db.Column {
	return []db.Column{
		db.Col("number", db.Int(&t.Number)),
		db.Col("id", db.Text(&t.ID)),
		db.Col("started_at", db.Seconds(&t.StartedAt)),
		db.Col("last_seq", db.Int(&t.LastSeq)),
		db.Col("last_audit", db.Int(&t.LastAudit)),
	}
})

// Timelines returns all timelines, the oldest first; the last one is the current one. There is
// one from the first start of a service on.
func Timelines(ctx context.Context, q db.Querier) ([]Timeline, error) {
	all, err := db.QueryAll(ctx, q, timelineTable.Scan, timelineTable.Select()+" ORDER BY number")
	return all, db.During("read the timelines", err)
}

// BeginFirstTimeline starts the first timeline, unless there is one.
func BeginFirstTimeline(ctx context.Context, s *db.DB, id string, now time.Time) error {
	err := s.Update(ctx, func(tx *db.Tx) error { return beginFirstTimeline(ctx, tx, id, now) })
	return db.During("start the first timeline", err)
}

func beginFirstTimeline(ctx context.Context, tx *db.Tx, id string, now time.Time) error {
	return timelineTable.Insert(ctx, tx, "ON CONFLICT (number) DO NOTHING", Timeline{Number: 1, ID: id, StartedAt: now})
}

// firstOf returns the id of the first timeline that begins together with the second one.
func firstOf(id string) string { return id + "_1" }

// StartTimeline starts a timeline behind the newest event. Services must not run, because they
// keep the current timeline in memory.
func StartTimeline(ctx context.Context, tx *db.Tx, id string, now time.Time) (Timeline, error) {
	t := Timeline{ID: id, StartedAt: invoice.Unix(now.Unix())}
	if err := beginFirstTimeline(ctx, tx, firstOf(id), now); err != nil { // a backup of a version without timelines
		return Timeline{}, err
	}
	all, err := Timelines(ctx, tx)
	if err != nil {
		return Timeline{}, err
	}
	t.Number = all[len(all)-1].Number + 1
	if t.LastSeq, err = NewReader(tx).LastSeq(ctx); err != nil {
		return Timeline{}, fmt.Errorf("find the newest event: %w", err)
	}
	head, err := access.NewReader(tx).AuditHead(ctx)
	if err != nil {
		return Timeline{}, fmt.Errorf("find the newest entry of the audit log: %w", err)
	}
	t.LastAudit = head.Seq
	if err := timelineTable.Insert(ctx, tx, "", t); err != nil {
		return Timeline{}, fmt.Errorf("start a timeline: %w", err)
	}
	return t, nil
}

// LogState decides from which positions readers can continue in the logs.
type LogState struct {
	Timelines []Timeline // oldest first
	Head      int64      // number of the newest event, or 0
	Oldest    int64      // number of the oldest event, or 0
	// Removed is the highest number of an event that retention removed, or 0. Events with lower numbers
	// may be stored if their deliveries were pending.
	Removed       int64
	RemovedBefore time.Time // removed events were created before; zero if that is not known
}

var errNoTimeline = errors.New("the database has no timeline: expected the one that the service starts when it opens the database")

// LogState returns the state that decides which positions in the logs can be continued, by a reader of
// the events of a merchant or, if that is empty, of all. Events that a program without timelines
// removed count only for readers of all events, because that program did not record the merchants.
func (q Reader) LogState(ctx context.Context, merchantID string) (LogState, error) {
	var s LogState
	var err error
	s.Timelines, err = db.QueryAll(ctx, q, func(row db.Scanner) (Timeline, error) {
		return timelineTable.ScanAfter(row, db.Int(&s.Head), db.Int(&s.Oldest), db.Int(&s.Removed), db.Seconds(&s.RemovedBefore))
	}, `SELECT (SELECT max(seq) FROM events), (SELECT min(seq) FROM events),
		(SELECT removed_seq FROM event_retention WHERE merchant_id = $1), (SELECT removed_before FROM event_retention WHERE merchant_id = $1),
		`+timelineTable.List()+` FROM timelines ORDER BY number`, merchantID)
	if err == nil && len(s.Timelines) == 0 {
		err = errNoTimeline
	}
	if err != nil {
		return LogState{}, fmt.Errorf("read the state of the logs: %w", err)
	}
	if merchantID == "" {
		s.Removed = max(s.Removed, s.Oldest-1)
	}
	return s, nil
}

// noteRemoved records that retention removes events, which were created before a time. highest has the
// highest number by merchant, and the highest of all under the empty id.
func noteRemoved(ctx context.Context, tx *db.Tx, highest map[string]int64, before time.Time) error {
	for _, merchantID := range slices.Sorted(maps.Keys(highest)) {
		err := tx.Send(ctx, nil, `INSERT INTO event_retention (merchant_id, removed_seq, removed_before) VALUES ($1, $2, $3) ON CONFLICT (merchant_id) DO UPDATE
			SET removed_seq = excluded.removed_seq, removed_before = excluded.removed_before WHERE excluded.removed_seq > event_retention.removed_seq`,
			merchantID, highest[merchantID], before.Unix())
		if err != nil {
			return err
		}
	}
	return nil
}

// UnmarkCopy removes a person's mark from a database that is not a copy, and begins the retry windows of the deliveries
// that were not attempted, such as deliveries of events that were written in isolation. It returns ErrIsolated for any other
// copy. The record of the database's identity stays, so that a start still notices a real copy.
func UnmarkCopy(ctx context.Context, tx *db.Tx, now time.Time) error {
	r, err := tx.Recovery(ctx)
	if err != nil {
		return err
	}
	if !r.MarkedByHand() {
		return db.ErrIsolated
	}
	if _, err := tx.Exec(ctx, "UPDATE deliveries SET due_ms = $1, deadline_ms = $2 WHERE attempts = 0 AND lease_id IS NULL",
		now.UnixMilli(), now.Add(RetryWindow).UnixMilli()); err != nil {
		return err
	}
	return tx.Do(ctx, "UPDATE recovery SET state = 'normal', reason = '', since = $1, isolated_at = NULL WHERE id = 1", r.Isolated.Unix())
}
