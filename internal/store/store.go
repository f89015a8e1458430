// Package store keeps Quittance's state in SQLite or PostgreSQL. It is the
// only package that knows SQL, and has one text of it for both databases
// wherever possible; what differs stands in sqlite.go and postgres.go.
//
// Store.Update runs a function in one transaction: everything that it does is
// kept, or nothing is. Reads outside a transaction are methods of Store too.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrNotFound is returned when no row has the given identifier.
var ErrNotFound = errors.New("not found")

// ErrConflict is returned by a write whose precondition no longer holds:
// another process was faster.
var ErrConflict = errors.New("state was changed by another process")

// Store is an open database. It is safe for concurrent use.
type Store struct {
	queries // outside a transaction
	dialect dialect

	closing  sync.Once
	closeErr error
}

// Tx is a transaction. It must not be used after Update's function returns,
// nor by several goroutines at once.
type Tx struct {
	queries
}

// dialect is what differs between the databases.
type dialect interface {
	// update runs fn in a transaction.
	update(ctx context.Context, fn func(*Tx) error) error
	// migrate brings the schema to the newest version.
	migrate(ctx context.Context) error
	// ping reports whether the database answers.
	ping(ctx context.Context) error
	// checkWritable returns an error when the database takes no writes.
	checkWritable(ctx context.Context) error
	close() error
}

// Open opens the database that the URL names and brings its schema up to
// date. The URL is sqlite:PATH (the file and its folder are made when missing)
// or postgres://….
func Open(ctx context.Context, url string) (*Store, error) {
	var s *Store
	var err error
	switch {
	case strings.HasPrefix(url, "sqlite:"):
		s, err = openSQLite(ctx, strings.TrimPrefix(url, "sqlite:"))
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		s, err = openPostgres(ctx, url)
	default:
		return nil, fmt.Errorf("database %q: expected sqlite:PATH or postgres://…", redact(url))
	}
	if err != nil {
		return nil, err
	}
	migrating, cancel := context.WithTimeoutCause(ctx, migrateTimeout, ErrTimeout)
	defer cancel()
	if err := named(migrating, s.dialect.migrate(migrating)); err != nil {
		err = cmp.Or(s.CheckWritable(ctx), fmt.Errorf("bring the database's schema up to date: %w", err))
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// redact keeps what a URL says before its credentials.
func redact(url string) string {
	scheme, _, found := strings.Cut(url, ":")
	if !found {
		return url
	}
	return scheme + ":…"
}

// Update runs fn in one transaction and commits it when fn returns nil. It
// returns fn's error as it is. fn may be run more than once (a transaction
// that the database aborts is tried again), so it must set, and not add to,
// what it leaves behind outside the database.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.dialect.update(ctx, fn)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return named(ctx, s.dialect.ping(ctx))
}

// CheckWritable returns an error when the database takes no writes, as a standby
// does. It says what to do, for a program that starts and has to write.
func (s *Store) CheckWritable(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return named(ctx, s.dialect.checkWritable(ctx))
}

// Close waits for transactions under way and closes the database. Closing it
// again changes nothing.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closeErr = s.dialect.close() })
	return s.closeErr
}

// runner is a connection pool or a transaction.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// queries holds the statements. They are written with PostgreSQL's numbered
// parameters ($1); a runner for another database rewrites them.
type queries struct {
	run      runner
	postgres bool
	// bound, unless it is nil, bounds a statement in the place of bounded.
	bound func(ctx context.Context) (context.Context, context.CancelFunc)
	// failed, unless it is nil, is told the error of every statement that fails.
	failed func(error)
}

// bounded returns the context of a statement.
func (q *queries) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.bound != nil {
		return q.bound(ctx)
	}
	return bounded(ctx)
}

// done returns the error of a statement that ran under a bounded context.
func (q *queries) done(ctx context.Context, err error) error {
	err = named(ctx, err)
	if err != nil && q.failed != nil {
		q.failed(err)
	}
	return err
}

// exec runs a statement and returns how many rows it changed. Like collect and
// one, through which every other statement goes, it bounds how long that takes.
func (q *queries) exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, cancel := q.bounded(ctx)
	defer cancel()
	res, err := q.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, q.done(ctx, err)
	}
	return res.RowsAffected()
}

// forUpdate is the clause that locks the rows of a SELECT until the
// transaction ends. SQLite has one writer and needs none.
func (q *queries) forUpdate() string {
	if q.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// collect reads all rows of a query with one scan function.
func collect[T any](ctx context.Context, q *queries, scan func(scanner) (T, error), query string, args ...any) (_ []T, err error) {
	ctx, cancel := q.bounded(ctx)
	defer cancel()
	defer func() { err = q.done(ctx, err) }()
	rows, err := q.run.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// one reads the single row of a query, or returns ErrNotFound.
func one[T any](ctx context.Context, q *queries, scan func(scanner) (T, error), query string, args ...any) (T, error) {
	ctx, cancel := q.bounded(ctx)
	defer cancel()
	v, err := scan(q.run.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return v, ErrNotFound
	}
	return v, q.done(ctx, err)
}
