package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// ErrNotFound is returned when no row has the given identifier.
var ErrNotFound = errors.New("not found")

// ErrConflict is returned by a write with a precondition that no longer holds because another process
// changed the state first.
var ErrConflict = errors.New("state was changed by another process")

// DB is an open database. It is safe for concurrent use.
type DB struct {
	Queries // outside a transaction
	dialect dialect
	standby *standby // nil without one
	created bool     // Open found no tables

	// revision is the configuration revision of this process; 0 allows writes under any revision.
	revision atomic.Int64
	// beats detect that the database was replaced.
	beats beats

	closing  sync.Once
	closeErr error
}

// Tx is a transaction. It must not be used after Update's function returns,
// nor by several goroutines at once.
type Tx struct {
	Queries
	// HeldSince is when the transaction began to keep others from inserting events, by PostgreSQL's clock,
	// which the last round trip reads, or on SQLite by this process's.
	HeldSince time.Time
	// Revision: see DB.SetRevision.
	Revision int64
}

// dialect is the part that differs between the databases.
type dialect interface {
	// update runs fn in a transaction.
	update(ctx context.Context, fn func(*Tx) error) error
	// heartbeat runs fn in a transaction that does not wait for the connections of other work.
	heartbeat(ctx context.Context, fn func(*Tx) error) error
	// migrate brings the schema to the newest version, and reports whether there were no tables. Without
	// create, it returns ErrNoDatabase then.
	migrate(ctx context.Context, create bool) (created bool, err error)
	// ping reports whether the database answers.
	ping(ctx context.Context) error
	// checkWritable returns an error when the database takes no writes.
	checkWritable(ctx context.Context) error
	close() error
}

// Open opens the database at the URL and migrates its schema. The URL is sqlite:PATH, with a file and
// folder that are created if missing, or postgres://….
func Open(ctx context.Context, url string) (*DB, error) { return open(ctx, url, true) }

// open is Open. Without create, it returns ErrNoDatabase for an empty database, and leaves it empty.
func open(ctx context.Context, url string, create bool) (*DB, error) {
	s, err := OpenUnchanged(ctx, url)
	if err != nil {
		return nil, err
	}
	migrating, cancel := context.WithTimeoutCause(ctx, migrateTimeout, ErrTimeout)
	defer cancel()
	if err := classify(migrating, s.migrate(migrating, create)); err != nil {
		if errors.Is(err, ErrNoDatabase) {
			return nil, errors.Join(err, s.Close())
		}
		err = cmp.Or(s.CheckWritable(ctx), fmt.Errorf("bring the database's schema up to date: %w", err))
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ErrNoDatabase is returned for a database in which no service has run yet.
var ErrNoDatabase = errors.New("there is no database yet; quittance serve creates it when it starts. If there was one, correct the setting database")

// OpenExisting is Open for a database in which a service has run. It creates no file, and returns ErrNoDatabase for an
// empty database, too.
func OpenExisting(ctx context.Context, url string) (*DB, error) {
	if err := CheckExists(url); err != nil {
		return nil, err
	}
	return open(ctx, url, false)
}

// CheckExists returns ErrNoDatabase for a SQLite file that does not exist.
func CheckExists(url string) error {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, ErrNoDatabase)
		}
	}
	return nil
}

// OpenUnchanged opens the database at the URL with the schema that it has. See SchemaVersions.
func OpenUnchanged(ctx context.Context, url string) (s *DB, err error) {
	switch {
	case strings.HasPrefix(url, "sqlite:"):
		s, err = openSQLite(ctx, strings.TrimPrefix(url, "sqlite:"))
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		s, err = openPostgres(ctx, url)
	default:
		err = fmt.Errorf("database %q: expected sqlite:PATH or postgres://…", redact(url))
	}
	return s, err
}

// migrate brings the schema to the newest version.
func (s *DB) migrate(ctx context.Context, create bool) (err error) {
	s.created, err = s.dialect.migrate(ctx, create)
	return err
}

// Created reports whether Open found an empty database.
func (s *DB) Created() bool { return s.created }

// redact keeps only the scheme of a URL, since the rest may hold credentials.
func redact(url string) string {
	scheme, _, found := strings.Cut(url, ":")
	if !found {
		return url
	}
	return scheme + ":…"
}

// Update runs fn in one transaction and commits it when fn returns nil. It returns fn's error
// unchanged. fn may run more than once, even after it returned nil: PostgreSQL aborts transactions,
// which are retried, and SQLite runs several in one, which are run again if that fails. So fn must
// assign outer variables, and never append to them.
func (s *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.traced(ctx, countOpen(ctx, fn), s.dialect.update)
}

// heartbeat is Update for transactions that must not wait while other work has all connections.
func (s *DB) heartbeat(ctx context.Context, fn func(*Tx) error) error {
	return s.traced(ctx, fn, s.dialect.heartbeat)
}

// traced runs a transaction in a span.
func (s *DB) traced(ctx context.Context, fn func(*Tx) error, update func(context.Context, func(*Tx) error) error) error {
	ctx, span := tracing.StartChild(ctx, "database transaction", trace.SpanKindClient)
	err := update(ctx, func(tx *Tx) error {
		tx.Revision, tx.idKeys = s.revision.Load(), s.idKeys
		return fn(tx)
	})
	if span.IsRecording() {
		span.SetAttributes(attribute.String("db.system.name", s.system()))
	}
	tracing.End(span, err)
	return err
}

// system returns the name of the database's product in OpenTelemetry's conventions.
func (s *DB) system() string {
	if s.OnPostgres() {
		return "postgresql"
	}
	return "sqlite"
}

// Shared reports whether several services may use the database at the same time.
func (s *DB) Shared() bool { return s.OnPostgres() }

// Ping reports whether the database answers.
func (s *DB) Ping(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	return classify(ctx, s.dialect.ping(ctx))
}

// CheckWritable returns an error if the database, such as a standby, takes no writes. The error
// explains what the operator can do.
func (s *DB) CheckWritable(ctx context.Context) error {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	return classify(ctx, s.dialect.checkWritable(ctx))
}

// Close waits for running transactions and closes the database. A second call
// returns the result of the first.
func (s *DB) Close() error {
	s.closing.Do(func() {
		if s.standby != nil {
			s.closeErr = s.standby.close()
		}
		s.closeErr = errors.Join(s.closeErr, s.dialect.close())
	})
	return s.closeErr
}

// Queries holds the statements. They are written with PostgreSQL's numbered
// parameters ($1); a runner for another database rewrites them.
type Queries struct {
	run      runner
	postgres bool
	// timeout replaces withStatementTimeout, unless it is nil.
	timeout func(ctx context.Context) (context.Context, context.CancelFunc)
	// onError is called with the error of each failed statement, unless it is nil.
	onError func(error)
	// standby may run queries, unless it is nil.
	standby *standby
	// idKeys are the first keys of renamed chains, by their keys.
	idKeys map[string]string
}

// Querier runs statements: a DB, a Reader or a Tx.
type Querier interface {
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Send(ctx context.Context, each func(Scanner) error, query string, args ...any) error
	Insert(ctx context.Context, ins Insertion, rows [][]any) error
	InsertReturningKeys(ctx context.Context, ins Insertion, rows [][]any) (map[string]bool, error)
	UpdateFrom(ctx context.Context, columns []string, rows [][]any, update string) (changed int64, err error)
	SendFrom(ctx context.Context, columns []string, rows [][]any, update string) error
	Wanted(columns []string, rows [][]any, do func(with string, args []any) error) error
	LookUpWanted(columns []string, rows [][]any, do func(with string, args []any) error) error
	WhichExist(ctx context.Context, columns []string, rows [][]any, tableAndConditions string) ([]int, error)
	WhichAddresses(ctx context.Context, chainKey string, among []invoice.Address, tableAndConditions string) (map[invoice.Address]bool, error)
	ForUpdate() string
	IndexedBy(index string) string
	Ordered(expression string) string
	TransferID(prefix string, t invoice.Transfer) string
	OnPostgres() bool
	Base() *Queries
}

// Base implements Querier.
func (q *Queries) Base() *Queries { return q }

// OnPostgres reports whether the database is PostgreSQL; else it is SQLite.
func (q *Queries) OnPostgres() bool { return q.postgres }

// withTimeout returns the context of a statement.
func (q *Queries) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.timeout != nil {
		return q.timeout(ctx)
	}
	return withStatementTimeout(ctx)
}

// wrapError classifies and reports the error of a statement that ran under ctx.
func (q *Queries) wrapError(ctx context.Context, err error) error {
	err = classify(ctx, err)
	if err != nil && q.onError != nil {
		q.onError(err)
	}
	return err
}

// Exec runs a statement and returns how many rows it changed. Every other
// statement runs through QueryAll, QueryRow or Send; all four bound its duration.
func (q *Queries) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, cancel := q.withTimeout(ctx)
	defer cancel()
	n, err := q.run.exec(ctx, query, args...)
	return n, q.wrapError(ctx, err)
}

// Do runs a statement, whatever number of rows it changes.
func (q *Queries) Do(ctx context.Context, query string, args ...any) error {
	_, err := q.Exec(ctx, query, args...)
	return err
}

// Change runs a statement, and returns ErrNotFound if it changed no row.
func (q *Queries) Change(ctx context.Context, query string, args ...any) error {
	n, err := q.Exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// Send runs a statement without a result that is needed before the transaction ends. In a transaction
// of PostgreSQL it is sent with the next statement that is not deferred, or with the commit, which
// then returns its error. each, which may be nil, is called with its rows.
func (q *Queries) Send(ctx context.Context, each func(Scanner) error, query string, args ...any) error {
	ctx, cancel := q.withTimeout(ctx)
	defer cancel()
	var read func(Scanner) (bool, error)
	if each != nil {
		read = func(row Scanner) (bool, error) { return true, each(row) }
	}
	return q.wrapError(ctx, q.run.send(ctx, read, query, args...))
}

// ForUpdate is the clause that locks the rows of a SELECT until the transaction ends. SQLite has one
// writer and needs no clause.
func (q *Queries) ForUpdate() string {
	if q.OnPostgres() {
		return " FOR UPDATE"
	}
	return ""
}

// Flush runs the statements that were sent and not run yet.
func (tx *Tx) Flush(ctx context.Context) error {
	ctx, cancel := tx.withTimeout(ctx)
	defer cancel()
	return tx.wrapError(ctx, tx.run.flush(ctx))
}

// query runs a query on the standby, if there is one and the context allows it, or else on run. It
// calls start before the first row, and again if it starts over.
func (q *Queries) query(ctx context.Context, start func(), each func(Scanner) (bool, error), query string, args []any) error {
	start()
	if q.standby != nil {
		if done, err := q.standby.query(ctx, each, query, args); done {
			return err
		}
		start()
	}
	return q.run.query(ctx, each, query, args...)
}

// QueryAll reads all rows of a query with one scan function.
func QueryAll[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	on := q.Base()
	ctx, cancel := on.withTimeout(ctx)
	defer cancel()
	var all []T
	err := on.query(ctx, func() { all = nil }, func(row Scanner) (bool, error) {
		v, err := scan(row)
		if err != nil {
			return false, err
		}
		all = append(all, v)
		return true, nil
	}, query, args)
	if err != nil {
		return nil, on.wrapError(ctx, err)
	}
	return all, nil
}

// ForEach reads all rows of a query with read, which keeps what it reads.
func ForEach(ctx context.Context, q Querier, read func(Scanner) error, query string, args ...any) error {
	_, err := QueryAll(ctx, q, func(row Scanner) (struct{}, error) { return struct{}{}, read(row) }, query, args...)
	return err
}

// QueryRow reads the single row of a query, or returns ErrNotFound.
func QueryRow[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, args ...any) (v T, err error) {
	on := q.Base()
	ctx, cancel := on.withTimeout(ctx)
	defer cancel()
	found := false
	err = on.query(ctx, func() { found = false }, func(row Scanner) (bool, error) {
		found = true
		v, err = scan(row)
		return false, err
	}, query, args)
	if err == nil && !found {
		return v, ErrNotFound
	}
	return v, on.wrapError(ctx, err)
}
