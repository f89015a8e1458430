package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// revisionWork begins the names under which replicas record that they run a revision.
const revisionWork = "revision:"

// configLock is the key of PostgreSQL's advisory lock on the revisions and on the known chains.
const configLock = 0x636f6e66

// SetRevision sets the configuration revision that this process runs. From then on, its transactions
// that lock a chain's cursor or create invoices fail with a *chain.StaleError once other processes run
// a newer revision.
func (s *DB) SetRevision(number int64) { s.revision.Store(number) }

// CheckRevision returns a *chain.StaleError if the process runs an older revision than the newest.
func (tx *Tx) CheckRevision(newest int64) error {
	if tx.Revision > 0 && tx.Revision < newest {
		return &chain.StaleError{Own: tx.Revision, Newest: newest}
	}
	return nil
}

// SendRevisionCheck makes the transaction fail at the next Flush if its process runs an older
// revision. A SQLite database has one replica.
func (tx *Tx) SendRevisionCheck(ctx context.Context) error {
	if !tx.OnPostgres() || tx.Revision == 0 {
		return nil
	}
	return tx.Send(ctx, func(row Scanner) error {
		var newest sql.NullInt64
		if err := row.Scan(&newest); err != nil {
			return err
		}
		return tx.CheckRevision(newest.Int64)
	}, "SELECT max(number) FROM revisions")
}

// IgnoreNotFound returns err, or nil for ErrNotFound.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// NewestRevision returns the newest revision, or ErrNotFound before the first.
func (q *Queries) NewestRevision(ctx context.Context) (chain.Revision, error) {
	return QueryRow(ctx, q, func(row Scanner) (r chain.Revision, err error) {
		err = row.Scan(&r.Number, &r.Hash)
		return r, err
	}, "SELECT number, hash FROM revisions ORDER BY number DESC LIMIT 1")
}

// WasRevision reports whether a revision had the hash.
func (q *Queries) WasRevision(ctx context.Context, hash string) (bool, error) {
	_, err := QueryRow(ctx, q, ScanCount, "SELECT 1 FROM revisions WHERE hash = $1 LIMIT 1", hash)
	return err == nil, IgnoreNotFound(err)
}

// InsertRevision records a revision. From then on, only processes that run it can change chains that
// were read.
func (tx *Tx) InsertRevision(ctx context.Context, r chain.Revision, now time.Time) error {
	if err := tx.Send(ctx, nil, "INSERT INTO revisions (number, hash, created_at) VALUES ($1, $2, $3)", r.Number, r.Hash, invoice.UnixSeconds(now)); err != nil {
		return err
	}
	tx.Revision = r.Number
	return tx.Send(ctx, nil, "UPDATE chains SET config_revision = $1", r.Number)
}

// LockConfiguration waits for other transactions that compare the configuration with the recorded one,
// and has others wait for this one.
func (tx *Tx) LockConfiguration(ctx context.Context) error {
	if !tx.OnPostgres() {
		return nil
	}
	return tx.Send(ctx, nil, "SELECT pg_advisory_xact_lock($1)", configLock)
}

// RevisionReplicas returns how many replicas run a revision, by the schedule's clock.
func (q *Queries) RevisionReplicas(ctx context.Context, number int64, now time.Time) (int, error) {
	return QueryRow(ctx, q, ScanCount, "SELECT count(*) FROM lease_candidates WHERE name = $1 AND until_ms > $2",
		fmt.Sprint(revisionWork, number), now.UnixMilli())
}

// HasLiveReplica reports whether another process uses the database, by the schedule's clock.
func (q *Queries) HasLiveReplica(ctx context.Context, now time.Time) (bool, error) {
	n, err := QueryRow(ctx, q, ScanCount, "SELECT count(*) FROM lease_candidates WHERE until_ms > $1", now.UnixMilli())
	return n > 0, err
}

// RunRevision records until when a replica runs a revision.
func (tx *Tx) RunRevision(ctx context.Context, replica string, number int64, now, until time.Time) error {
	works := []string{fmt.Sprint(revisionWork, number)}
	return tx.nominate(ctx, replica, works, works, now, until)
}

// KeepRevision records until when a replica runs the revision of this process. It fails with a
// *chain.StaleError if others run a newer one.
func (s *DB) KeepRevision(ctx context.Context, replica string, now, until time.Time) error {
	own := s.revision.Load()
	return s.heartbeat(ctx, func(tx *Tx) error {
		newest, err := tx.NewestRevision(ctx)
		if err == nil {
			err = tx.CheckRevision(newest.Number)
		}
		if IgnoreNotFound(err) != nil {
			return err
		}
		return tx.RunRevision(ctx, replica, own, now, until)
	})
}
