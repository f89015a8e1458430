package db

import (
	"context"
	"database/sql"
	"errors"
)

// runner runs statements: on a pool of connections, or in a transaction.
type runner interface {
	// exec runs a statement and returns how many rows it changed.
	exec(ctx context.Context, query string, args ...any) (int64, error)
	// query runs a statement and calls each with its rows, until each returns false or an error.
	query(ctx context.Context, each func(Scanner) (more bool, err error), query string, args ...any) error
	// send runs a statement like query, but may defer it until the next call or the end of the
	// transaction, which then returns its error. each may be nil.
	send(ctx context.Context, each func(Scanner) (more bool, err error), query string, args ...any) error
	// flush runs the statements that were sent and not run yet.
	flush(ctx context.Context) error
}

// sqlRunner runs statements on database/sql.
type sqlRunner struct {
	on interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

func (r sqlRunner) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := r.on.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (r sqlRunner) query(ctx context.Context, each func(Scanner) (bool, error), query string, args ...any) (err error) {
	rows, err := r.on.QueryContext(ctx, query, args...) //nolint:rowserrcheck // readRows does
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return readRows(rows, each)
}

func (r sqlRunner) send(ctx context.Context, each func(Scanner) (bool, error), query string, args ...any) error {
	if each != nil {
		return r.query(ctx, each, query, args...)
	}
	_, err := r.exec(ctx, query, args...)
	return err
}

func (sqlRunner) flush(context.Context) error { return nil }

// readRows calls each with the rows, until it returns false or an error.
func readRows(rows interface {
	Scanner
	Next() bool
	Err() error
}, each func(Scanner) (bool, error),
) error {
	for rows.Next() {
		if more, err := each(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}
