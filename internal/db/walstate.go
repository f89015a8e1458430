package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/clock"
)

// walState identifies the database of a connection, and a position in its write-ahead log.
type walState struct {
	recovering    bool  // it is a standby
	readCommitted bool  // each statement has a new snapshot
	system        int64 // identifies the cluster
	database      int64 // identifies the database within the cluster
	table         int64 // identifies the table invoices within the database
	timeline      int64 // changes with each promotion
	lsn           int64 // at the primary, the end of its commits; at a standby, the replayed position
}

// sameDatabase are the columns of a walState that identify a database.
const sameDatabase = `system_identifier, (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
	coalesce(to_regclass('invoices')::oid::bigint, 0)`

// primaryState asks the primary. Every acknowledged commit is flushed, unless synchronous_commit is
// off. If it is on, the end of the inserted WAL would be later than needed, and a standby gets it only
// after the next flush.
const primaryState = `SELECT pg_is_in_recovery(), true, ` + sameDatabase + `,
	('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint,
	(CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint
	FROM pg_control_system()`

// standbyState asks a standby. Its timeline is the one of its last restart point, or of the last page
// that it wrote if that is newer. So a standby that follows a promotion is used some minutes later,
// and one that does not follow it is never used.
const standbyState = `SELECT pg_is_in_recovery(), current_setting('transaction_isolation') = 'read committed', ` + sameDatabase + `,
	greatest((SELECT timeline_id FROM pg_control_checkpoint()), (SELECT min_recovery_end_timeline FROM pg_control_recovery()))::bigint,
	coalesce((pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint, 0)
	FROM pg_control_system()`

func scanWALState(row Scanner) (w walState, err error) {
	err = row.Scan(&w.recovering, &w.readCommitted, &w.system, &w.database, &w.table, &w.timeline, &w.lsn)
	return w, err
}

// position asks the database for its position as a primary.
func (s *DB) position(ctx context.Context) (walState, error) {
	return QueryRow(ctx, s, scanWALState, primaryState)
}

// Reasons for which a standby cannot serve a read.
var (
	errBehind       = errors.New("it is behind the primary")
	errPromoted     = errors.New("it is no standby")
	errForeign      = errors.New("its database is not the primary's")
	errTimeline     = errors.New("it follows another timeline than the primary's, or has not recorded it yet")
	errNotCommitted = errors.New("default_transaction_isolation must be read committed")
)

// serves returns nil if a standby in the state has everything that the primary had in its state.
func (w walState) serves(primary walState) error {
	switch {
	case !w.recovering:
		return errPromoted
	case w.system != primary.system || w.database != primary.database || w.table != primary.table:
		return errForeign
	case w.timeline != primary.timeline:
		return errTimeline
	case !w.readCommitted:
		return errNotCommitted
	case w.lsn < primary.lsn:
		return errBehind
	}
	return nil
}

// unsuitable reports whether serves returned the error because the standby itself is unusable.
func unsuitable(err error) bool {
	return errors.Is(err, errPromoted) || errors.Is(err, errForeign) || errors.Is(err, errTimeline) || errors.Is(err, errNotCommitted)
}

// firstReplayPoll is the pause after the first check of the replay. It doubles each time.
const firstReplayPoll = time.Millisecond

// awaitReplay waits until the standby serves what the primary had, for at most StandbyWait.
func awaitReplay(ctx context.Context, conn *pgx.Conn, primary walState) error {
	waiting, cancel := context.WithTimeout(ctx, StandbyWait)
	defer cancel()
	for pause := firstReplayPoll; ; pause *= 2 {
		state, err := scanWALState(conn.QueryRow(ctx, standbyState))
		if err == nil {
			err = state.serves(primary)
		}
		if !errors.Is(err, errBehind) || !clock.Sleep(waiting, pause, nil) {
			return err
		}
	}
}
