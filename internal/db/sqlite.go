package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

const (
	// SQLiteReaders is the number of read-only connections.
	SQLiteReaders = 5
	// sqliteRequests is how many of them requests use at a time. Reading requests use sqliteReads of
	// these, and those of merchants and operators sqliteMerchantReads.
	sqliteRequests, sqliteReads, sqliteMerchantReads = 4, 3, 2
	// SQLiteWriterCache is how many KB of pages the writing connection caches.
	SQLiteWriterCache = 8_000
	// SQLiteReaderCache bounds the pages of a read-only connection. Other pages are in the operating
	// system's cache.
	SQLiteReaderCache = 2_000
)

// sqliteDB is a file in WAL mode: one connection writes and others read.
type sqliteDB struct {
	path   string
	write  *sql.DB
	read   *sql.DB
	reader *statements
	writer *groupWriter
}

func openSQLite(ctx context.Context, path string) (*DB, error) {
	if path == "" {
		return nil, errors.New("database sqlite: expected a path, as in sqlite:quittance.db")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the database's folder: %w", err)
	}
	if err := checkNames(path); err != nil {
		return nil, err
	}
	if err := makePrivate(path); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	write, err := sql.Open("sqlite", sqliteDSN(path, SQLiteWriterCache, "_pragma=query_only(0)", shrinking(path)...))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), write.Close())
	}
	read, err := sql.Open("sqlite", sqliteDSN(path, SQLiteReaderCache, "_pragma=query_only(1)"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), write.Close())
	}
	read.SetMaxOpenConns(SQLiteReaders)
	read.SetMaxIdleConns(SQLiteReaders)
	db := &sqliteDB{path: path, write: write, read: read, reader: &statements{on: read}}
	shares := newConnShares(sqliteMerchantReads, sqliteReads, sqliteRequests)
	return &DB{Queries: Queries{run: sharedReads{sqlRunner{db.reader}, shares}}, dialect: db}, nil
}

// makePrivate creates a missing file that only its owner can read; SQLite gives
// its other files the same mode. It does not open an existing file, since
// closing that would release the locks that this process holds on it.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// shrinking returns the setting that lets a new file shrink. It must come before any write.
// ReturnSpace shrinks the file.
func shrinking(path string) []string {
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		return nil
	}
	return []string{"_pragma=auto_vacuum(INCREMENTAL)"}
}

// sqliteDSN adds the settings of every connection: WAL so that readers never wait, synchronous FULL so
// that a commit survives a power loss, foreign keys because SQLite does not check them by default.
// They follow the settings in first.
func sqliteDSN(path string, cache int, extra string, first ...string) string {
	q := strings.Join(append(first, ""), "&") + "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		fmt.Sprintf("&_pragma=foreign_keys(1)&_pragma=cache_size(-%d)&_pragma=temp_store(MEMORY)&", cache) + extra
	return sqliteURI(path, q)
}

// sqliteURI names a file with parameters of its connections.
func sqliteURI(path, query string) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}).String()
}

func (db *sqliteDB) update(ctx context.Context, fn func(*Tx) error) error {
	return db.writer.do(ctx, fn)
}

// heartbeat is update: transactions wait for the only writer in the order of their arrival.
func (db *sqliteDB) heartbeat(ctx context.Context, fn func(*Tx) error) error {
	return db.update(ctx, fn)
}

func (db *sqliteDB) migrate(ctx context.Context, create bool) (created bool, err error) {
	err = db.write.QueryRowContext(ctx, "SELECT count(*) = 0 FROM sqlite_master WHERE name = 'merchants'").Scan(&created)
	if err != nil {
		return false, err
	}
	if created && !create {
		return false, ErrNoDatabase
	}
	schema, err := schemaOf(goose.DialectSQLite3)
	if err == nil {
		err = schema.migrate(ctx, db.write, created)
	}
	if err != nil {
		return false, err
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return false, err
	}
	db.writer = startGroupWriter(conn)
	return created, nil
}

func (db *sqliteDB) ping(ctx context.Context) error { return db.read.PingContext(ctx) }

// checkWritable always succeeds, because opening a file that cannot be written
// fails.
func (db *sqliteDB) checkWritable(context.Context) error { return nil }

func (db *sqliteDB) close() error {
	var err error
	if db.writer != nil {
		err = db.writer.stop()
	}
	return errors.Join(err, db.reader.close(), db.read.Close(), db.write.Close())
}
