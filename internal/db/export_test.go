package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// ConnectTimeout returns how long a connection to the server of a URL may take.
func ConnectTimeout(url string) (time.Duration, error) {
	cfg, err := parsePostgres(url, nil)
	if err != nil {
		return 0, err
	}
	return cfg.ConnectTimeout, nil
}

// FallsBack reports whether a connection to the server of a URL may be plaintext although it began with TLS.
func FallsBack(url string) (bool, error) {
	cfg, err := parsePostgres(url, nil)
	return err == nil && cfg.TLSConfig != nil && slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil }), err
}

// OwnTables returns the tables that the schema has.
func OwnTables() []string { return ownTables() }

// Statements is statements.
type Statements = statements

// Locked reports whether the cache is locked.
func (s *statements) Locked() bool {
	free := s.mu.TryLock()
	if free {
		s.mu.Unlock()
	}
	return !free
}

// NewStatements returns statements on a database, and a function that returns how many are prepared.
func NewStatements(db sqliteConn) (on *Statements, prepared func() int) {
	s := &statements{on: db}
	return s, func() int { return len(s.cache) }
}

// Setting returns the value of a setting of PostgreSQL in a transaction.
func (tx *Tx) Setting(ctx context.Context, name string) (string, error) {
	return QueryRow(ctx, tx, ScanID, "SELECT current_setting($1)", name)
}

// LimitPages bounds the size of a SQLite database, as a full disk does.
func (s *DB) LimitPages(ctx context.Context, n int) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := QueryRow(ctx, tx, ScanID, fmt.Sprintf("PRAGMA max_page_count = %d", n))
		return err
	})
}

// NewestMigration is newestMigration.
func NewestMigration() int64 { return newestMigration() }

// MakeRelease makes the schema of a release in an empty database, and records the migrations up to its version.
func MakeRelease(ctx context.Context, url, current string, version int64) error {
	return onDatabase(ctx, url, func(s schema, db *sql.DB) error {
		var sources []*goose.Source
		for v := range version {
			sources = append(sources, &goose.Source{Version: v + 1})
		}
		s.current = current
		return s.create(ctx, db, sources)
	})
}

// Migrate upgrades a database, or makes an empty one, as a program with this schema and these migrations does.
func Migrate(ctx context.Context, url, current string, migrations fs.FS, empty bool) error {
	return onDatabase(ctx, url, func(s schema, db *sql.DB) error {
		s.current, s.migrations = current, migrations
		return s.migrate(ctx, db, empty)
	})
}

// onDatabase opens a database as it is.
func onDatabase(ctx context.Context, url string, do func(schema, *sql.DB) error) error {
	s, err := OpenUnchanged(ctx, url)
	if err != nil {
		return err
	}
	var db *sql.DB
	kind := goose.DialectSQLite3
	switch d := s.dialect.(type) {
	case *sqliteDB:
		db = d.write
	case *postgresDB:
		db, kind = d.db, goose.DialectPostgres
	}
	of, err := schemaOf(kind)
	if err == nil {
		err = do(of, db)
	}
	return errors.Join(err, s.Close())
}

// SetVersion records a version of the schema, as a newer program does.
func (s *DB) SetVersion(ctx context.Context, version int64) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, $2)", version, true)
		return err
	})
}

// BoundTransactions sets how long a statement may take in a transaction of SQLite.
func (s *DB) BoundTransactions(d time.Duration) {
	s.dialect.(*sqliteDB).writer.timeout = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, d, ErrTimeout)
	}
}

// ReadForEver runs a SQLite query that does not end.
func (tx *Tx) ReadForEver(ctx context.Context) error {
	_, err := QueryRow(ctx, tx, ScanSeq, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
	return err
}

// WriteForEver inserts a row again and again.
func (tx *Tx) WriteForEver(ctx context.Context) error {
	_, err := tx.Exec(ctx, `INSERT INTO merchants SELECT 'same', 1 FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)
		WHERE true ON CONFLICT DO NOTHING`)
	return err
}

// BreakCommit writes a row that makes SQLite refuse the commit.
func (tx *Tx) BreakCommit(ctx context.Context) error {
	_, err := tx.Exec(ctx, `INSERT INTO transfer_amounts (invoice_id, base, merchant_address, chain_key, token, from_block, expires_at, remainder, live, closed_block)
		VALUES ('none', '1', '0xaa', 'base', '0xbb', 1, 1, 1, 0, 1)`)
	return err
}

// Read reads outside of a transaction, and calls reading while it does.
func (s *DB) Read(ctx context.Context, reading func()) error {
	_, err := QueryRow(ctx, s, func(Scanner) (struct{}, error) {
		reading()
		return struct{}{}, nil
	}, "SELECT 1")
	return err
}

// ConnShares returns how many connections requests have: merchants that read, all that read, and all.
func (s *DB) ConnShares() (merchants, readers, requests int64) {
	if s.postgres {
		return postgresMerchantReads, postgresReads, postgresRequests
	}
	return sqliteMerchantReads, sqliteReads, sqliteRequests
}

// PostgresConns is postgresConns.
const PostgresConns = postgresConns

// HeartbeatConns is heartbeatConns.
const HeartbeatConns = heartbeatConns

// OpenHeartbeats returns how many connections for heartbeats are open.
func (s *DB) OpenHeartbeats() int {
	return s.dialect.(*postgresDB).heartbeats.Stats().OpenConnections
}

// UpdateTogether runs transactions that share a commit of SQLite, while the store has no other use,
// and returns their errors.
func UpdateTogether(ctx context.Context, s *DB, fns ...func(*Tx) error) (errs []error) {
	group := make([]*job, len(fns))
	for i, fn := range fns {
		group[i] = &job{ctx: ctx, fn: fn, result: make(chan error, 1)}
	}
	s.dialect.(*sqliteDB).writer.commit(group)
	for _, j := range group {
		errs = append(errs, <-j.result)
	}
	return errs
}

// LeaveTransactionOpen begins a transaction of SQLite that never ends, with a merchant "open" in it.
func (s *DB) LeaveTransactionOpen(ctx context.Context) error {
	w := s.dialect.(*sqliteDB).writer
	return errors.Join(w.exec(ctx, "BEGIN IMMEDIATE"), w.exec(ctx, "INSERT INTO merchants VALUES ('open', 1)"))
}
