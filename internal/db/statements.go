package db

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"sync"
)

// SQLiteStatements is how many prepared statements SQLite's writing connection keeps, and each reading
// connection.
const SQLiteStatements = 500

// statements runs statements on SQLite. It rewrites PostgreSQL's parameters ($1) and caches a prepared
// statement for each of the first SQLiteStatements texts, since parsing costs more than running most
// of them. The service has about 200 texts, but combinations of list filters make many more. No
// statement may contain a dollar sign with another meaning.
type statements struct {
	on    sqliteConn
	mu    sync.Mutex
	cache map[string]*sql.Stmt // at most SQLiteStatements
}

// sqliteConn is a connection, or a pool of them.
type sqliteConn interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// prepared returns the prepared statement of a text, or nil for a text beyond SQLiteStatements. It prepares without
// the lock, because that may open a connection and wait for the file.
func (s *statements) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, more := s.cached(query); stmt != nil || !more {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(ctx, SQLiteText(query))
	if err != nil {
		return nil, err
	}
	kept := s.keep(query, stmt)
	if kept != stmt {
		err = stmt.Close()
	}
	return kept, err
}

// cached returns the statement of a text if there is one, and whether the cache has room.
func (s *statements) cached(query string) (stmt *sql.Stmt, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache[query], len(s.cache) < SQLiteStatements
}

// keep returns the statement of a text that the cache keeps: this one, one of another caller, or nil.
func (s *statements) keep(query string, stmt *sql.Stmt) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil {
		s.cache = make(map[string]*sql.Stmt)
	}
	if s.cache[query] == nil && len(s.cache) < SQLiteStatements {
		s.cache[query] = stmt
	}
	return s.cache[query]
}

var numbered = regexp.MustCompile(`\$\d+`)

// limitParameter matches a limit that is a parameter.
var limitParameter = regexp.MustCompile(`LIMIT (\$\d+)`)

// SQLiteText rewrites parameters to ?1, or to ? if each occurs once and in order: SQLite's driver
// looks up every numbered parameter by name among all, which costs more than the statement if there
// are many. A limit becomes a sum, because SQLite replans a statement for each new value of a limit
// that is a bare parameter.
func SQLiteText(query string) string {
	query = limitParameter.ReplaceAllString(query, "LIMIT 0 + $1")
	n, ordered := 0, true
	text := numbered.ReplaceAllStringFunc(query, func(found string) string {
		n++
		ordered = ordered && found == Parameter(n)
		return "?"
	})
	if !ordered {
		return strings.ReplaceAll(query, "$", "?")
	}
	return text
}

func (s *statements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return s.on.ExecContext(ctx, SQLiteText(query), args...)
	}
	return stmt.ExecContext(ctx, args...)
}

func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return s.on.QueryContext(ctx, SQLiteText(query), args...)
	}
	return stmt.QueryContext(ctx, args...)
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.cache {
		errs = append(errs, stmt.Close())
	}
	s.cache = nil
	return errors.Join(errs...)
}
