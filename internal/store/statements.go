package store

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"
	"sync"
)

// statements runs our statements on SQLite: it rewrites the parameters $1 of
// PostgreSQL (no statement here has a dollar sign of another meaning) and
// prepares each text once, since parsing costs more than most of them.
// The number of texts is bounded: each is a constant, or one of few forms.
type statements struct {
	on interface {
		runner
		PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	}
	mu   sync.Mutex
	held map[string]*sql.Stmt
}

func (s *statements) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.held[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(ctx, sqliteText(query))
	if err != nil {
		return nil, err
	}
	if s.held == nil {
		s.held = make(map[string]*sql.Stmt)
	}
	s.held[query] = stmt
	return stmt, nil
}

var numbered = regexp.MustCompile(`\$\d+`)

// limited is a limit that is a parameter.
var limited = regexp.MustCompile(`LIMIT (\$\d+)`)

// sqliteText writes the parameters as ?1, or as ? where each stands once and
// they stand in order. To SQLite a number is a name, and its driver looks every
// parameter's name up among all: with many, that costs more than the statement.
// A limit becomes a sum: SQLite plans a statement whose limit is a mere
// parameter anew for each value.
func sqliteText(query string) string {
	query = limited.ReplaceAllString(query, "LIMIT 0 + $1")
	n, ordered := 0, true
	text := numbered.ReplaceAllStringFunc(query, func(found string) string {
		n++
		ordered = ordered && found == parameter(n)
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
	return stmt.ExecContext(ctx, args...)
}

func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (s *statements) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		// A Row cannot be made with an error: this meets the same one.
		return s.on.QueryRowContext(ctx, sqliteText(query), args...)
	}
	return stmt.QueryRowContext(ctx, args...)
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.held {
		errs = append(errs, stmt.Close())
	}
	s.held = nil
	return errors.Join(errs...)
}
