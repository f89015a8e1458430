package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// beats is what a process keeps in memory to notice that the database was replaced.
type beats struct {
	mu   sync.Mutex
	last int64       // the beat that was committed last; 0 before the first
	seen Recovery    // as of the last beat
	file os.FileInfo // of a SQLite database; nil for PostgreSQL
}

// beat counts a reading of the clock. If the database has counted fewer readings than this process has
// committed, it was restored while the process ran, and beat records that.
func (tx *Tx) beat(ctx context.Context, known int64, now time.Time) (beat int64, r Recovery, err error) {
	beat, err = QueryRow(ctx, tx, ScanSeq, "UPDATE recovery SET heartbeats = heartbeats + 1 WHERE id = 1 RETURNING heartbeats")
	if err != nil {
		return 0, r, err
	}
	if beat <= known {
		reason := fmt.Sprintf("this process had committed reading %d of the schedule's clock, and the database has only %d: it was restored, or a failover lost commits", known, beat-1)
		if err := tx.SuspectRestore(ctx, reason, now); err != nil {
			return 0, r, err
		}
	}
	r, err = tx.Recovery(ctx)
	return beat, r, err
}

// committed keeps a beat that was committed.
func (b *beats) committed(beat int64, r Recovery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = max(b.last, beat)
	if b.seen.Err() == nil {
		b.seen = r
	}
}

func (b *beats) known() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Noticed returns the state of the database as of the last reading of the clock. Once a process has
// seen another state than normal, Noticed never returns normal again. A SQLite file that was replaced,
// moved or removed while it is open counts as restored, because what is written to it now is lost.
func (s *DB) Noticed(now time.Time) Recovery {
	s.beats.mu.Lock()
	defer s.beats.mu.Unlock()
	if s.beats.seen.Err() != nil {
		return s.beats.seen
	}
	if db, ok := s.dialect.(*sqliteDB); ok {
		is, err := os.Stat(db.path)
		switch {
		case s.beats.file == nil:
			s.beats.file = is // nil if it cannot be read now
		case errors.Is(err, fs.ErrNotExist):
			s.beats.seen = Recovery{State: RecoverySuspected, Reason: "the file " + db.path + " was moved or removed while the service ran", Since: now}
		case err == nil && !os.SameFile(s.beats.file, is):
			s.beats.seen = Recovery{State: RecoverySuspected, Reason: "the file " + db.path + " was replaced by another one while the service ran", Since: now}
		}
	}
	return s.beats.seen
}

// identity identifies the database and its PostgreSQL cluster. Fields that the role may not read are
// zero.
type identity struct {
	cluster            string // system identifier
	oid                int64  // of the database
	timeline, position int64  // of the cluster's WAL
	target             string // setting recovery_target* that is set
}

// identify reads the identity. Each function is called only if the role may execute it, because managed services
// forbid some.
func (q *Queries) identify(ctx context.Context) (id identity, err error) {
	for _, ask := range []struct {
		function, query string
		to              any
	}{
		{"pg_control_system()", "SELECT CAST(system_identifier AS TEXT) FROM pg_control_system()", &id.cluster},
		{"pg_current_wal_lsn()", "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS BIGINT)", &id.position},
		{"pg_walfile_name(pg_lsn)", "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int::bigint", &id.timeline},
	} {
		may, err := QueryRow(ctx, q, func(row Scanner) (may bool, err error) { return may, row.Scan(&may) },
			"SELECT coalesce(has_function_privilege(CAST(to_regprocedure($1) AS oid), 'EXECUTE'), false)", "pg_catalog."+ask.function)
		if err != nil {
			return id, err
		}
		if !may {
			continue
		}
		if _, err := QueryRow(ctx, q, func(row Scanner) (struct{}, error) { return struct{}{}, row.Scan(ask.to) }, ask.query); err != nil {
			return id, err
		}
	}
	if id.oid, err = QueryRow(ctx, q, ScanSeq, "SELECT CAST(oid AS BIGINT) FROM pg_database WHERE datname = current_database()"); err != nil {
		return id, err
	}
	id.target, err = QueryRow(ctx, q, func(row Scanner) (t string, err error) { return t, row.Scan(Text(&t)) },
		`SELECT min(name || ' = ' || setting) FROM pg_settings WHERE setting <> ''
			AND name IN ('recovery_target', 'recovery_target_time', 'recovery_target_xid', 'recovery_target_name', 'recovery_target_lsn')`)
	return id, err
}

// differs returns the evidence that a database was restored, compared with the stored identity, or "".
// A failover raises the timeline, and so does a recovery to a point in time, which also leaves its
// target in the settings.
func (id identity) differs(was identity) string {
	switch {
	case was.cluster != "" && id.cluster != "" && was.cluster != id.cluster:
		return fmt.Sprintf("the database was last used in the PostgreSQL cluster with system identifier %s, and is now in %s", was.cluster, id.cluster)
	case was.oid != 0 && was.oid != id.oid:
		return fmt.Sprintf("the database was last used with oid %d, and has %d now: it was created anew", was.oid, id.oid)
	case was.timeline != 0 && id.timeline > was.timeline && id.target != "":
		return fmt.Sprintf("PostgreSQL was recovered to a point in time: its timeline is %d, it was %d, and it has the setting %s", id.timeline, was.timeline, id.target)
	case was.timeline != 0 && id.timeline == was.timeline && id.position != 0 && id.position < was.position:
		return fmt.Sprintf("PostgreSQL's WAL was at byte %d, and is at %d", was.position, id.position)
	}
	return ""
}

// NoticeRestore compares the PostgreSQL database with its stored identity at the last start, records
// evidence of a restore, and returns the state. In the normal state it stores the current identity.
func (s *DB) NoticeRestore(ctx context.Context, now time.Time) (r Recovery, err error) {
	if !s.OnPostgres() {
		return s.Recovery(ctx)
	}
	id, err := s.identify(ctx)
	if err != nil {
		return r, fmt.Errorf("identify the database: %w", err)
	}
	err = s.Update(ctx, func(tx *Tx) error {
		was, err := QueryRow(ctx, tx, func(row Scanner) (was identity, err error) {
			return was, row.Scan(Text(&was.cluster), Int(&was.oid), Int(&was.timeline), Int(&was.position))
		}, "SELECT cluster, database_oid, wal_timeline, wal_position FROM recovery WHERE id = 1 FOR UPDATE")
		if err != nil {
			return err
		}
		if reason := id.differs(was); reason != "" {
			if err := tx.SuspectRestore(ctx, reason, now); err != nil {
				return err
			}
		}
		if r, err = tx.Recovery(ctx); err != nil || r.State != RecoveryNormal {
			return err
		}
		return tx.adopt(ctx, id)
	})
	return r, err
}

// adopt stores the identity of the database.
func (tx *Tx) adopt(ctx context.Context, id identity) error {
	_, err := tx.Exec(ctx, "UPDATE recovery SET cluster = $1, database_oid = $2, wal_timeline = $3, wal_position = $4 WHERE id = 1",
		OrNull(id.cluster), OrNull(id.oid), OrNull(id.timeline), OrNull(id.position))
	return err
}

// AdoptDatabase stores the identity of the database, at the end of a recovery or a false alarm.
func (tx *Tx) AdoptDatabase(ctx context.Context) error {
	if !tx.OnPostgres() {
		return nil
	}
	id, err := tx.identify(ctx)
	if err != nil {
		return fmt.Errorf("identify the database: %w", err)
	}
	return tx.adopt(ctx, id)
}
