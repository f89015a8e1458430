package store

import (
	"context"
	"database/sql"
)

// Recorded returns a store that reads as s does and reports its statements.
func Recorded(s *Store, report func(query string, args []any)) *Store {
	return &Store{queries: queries{run: recorder{s.run, report}, postgres: s.postgres}, dialect: s.dialect}
}

// RecordedTx returns a transaction that does what tx does and reports its
// statements.
func RecordedTx(tx *Tx, report func(query string, args []any)) *Tx {
	return &Tx{queries{run: recorder{tx.run, report}, postgres: tx.postgres}}
}

// recorder reports the statements that pass through it.
type recorder struct {
	runner
	report func(query string, args []any)
}

func (r recorder) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r.report(query, args)
	return r.runner.ExecContext(ctx, query, args...)
}

func (r recorder) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	r.report(query, args)
	return r.runner.QueryContext(ctx, query, args...)
}

func (r recorder) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	r.report(query, args)
	return r.runner.QueryRowContext(ctx, query, args...)
}
